package policy

import (
	"slices"

	"github.com/nodbus/nod/actors/policy/pathname"
)

// Looks lists the places on the disk that can change the verdict on a call.
type Looks = pathname.Looks

// Search is a path that a search reads, with all files below it.
type Search = pathname.Search

// Seen has the facts about the disk on which the verdict on a call depends. The zero Seen means
// that nothing is known, as for a call from another machine. Check then decides by names alone.
type Seen struct {
	// Exposed are files with secrets, found by ThisDisk, that a search of their directory would
	// show. nil means that no such file is known.
	Exposed []string
	// Unsearched are directories with too many names for ThisDisk to find all exposed files. nod
	// asks about a search of such a directory.
	Unsearched []string
	// Searched are the searches for which Exposed and Unsearched are complete; nil means all
	// searches. nod asks about any other search.
	Searched []Search
	// Tracked has the secrets that repositories track, by the directory in which git looks for the
	// repository. If the directory is missing, nod asks about git commands that print files of its
	// repository. nil means that nothing is known about repositories.
	Tracked map[string]Tracked
	// Remotes has the remotes of repositories, by the directory in which git looks for the repository.
	// They only describe the call to people.
	Remotes map[string]pathname.Remotes
	// Links maps each path of the call that leads through symbolic links to the true paths.
	Links map[string][]string
}

// Looks returns the places on the disk about which Check needs facts for the call c, without
// duplicates. It ignores the facts in c.Seen.
func (p *Policy) Looks(c Call) Looks {
	looks := Looks{Searches: []Search{}, Repositories: []string{}}
	c.Seen, c.looked = Seen{}, &looks
	p.Check(c)
	slices.Sort(looks.Paths)
	looks.Paths = slices.Compact(looks.Paths)
	searches := looks.Searches
	looks.Searches = []Search{}
	for _, s := range searches {
		if !slices.Contains(looks.Searches, s) {
			looks.Searches = append(looks.Searches, s)
		}
	}
	return looks
}

const (
	// maxSearches is the largest number of searches of a call for which Look lists files. nod asks
	// about a call with more searches.
	maxSearches = 64
	// maxIncomplete limits the searches with too many names, because each such search takes a large
	// part of a second. After this number, Look lists no more files for the call.
	maxIncomplete = 2
)

// Look returns the facts about this disk on which the verdict of p on a call depends. The function
// walk returns the result of Exposed for a search. It may return an earlier result from a cache.
func (ThisDisk) Look(p *Policy, c Call, walk func(s Search) (files []string, whole bool)) Seen {
	return new(Repositories).Look(p, c, walk)
}

// Look does the same as ThisDisk.Look, but reuses what r has already read from the repositories.
func (r *Repositories) Look(p *Policy, c Call, walk func(s Search) (files []string, whole bool)) Seen {
	d := ThisDisk{}
	looks := p.Looks(c)
	seen := Seen{Links: d.Follow(p, c, looks.Paths), Searched: []Search{}, Tracked: map[string]Tracked{}, Remotes: map[string]pathname.Remotes{}}
	for _, dir := range looks.Repositories {
		seen.Tracked[dir] = r.Tracked(dir)
	}
	for _, dir := range looks.Remotes {
		if _, known := seen.Remotes[dir]; !known && len(seen.Remotes) < maxIncomplete {
			seen.Remotes[dir] = d.Remotes(c, dir)
		}
	}
	for _, s := range looks.Searches {
		if len(seen.Searched) == maxSearches || len(seen.Unsearched) == maxIncomplete {
			break
		}
		seen.Searched = append(seen.Searched, s)
		if d.Public(c, s) {
			continue
		}
		files, whole := walk(s)
		if seen.Exposed = append(seen.Exposed, files...); !whole {
			seen.Unsearched = append(seen.Unsearched, s.Top())
		}
	}
	return seen
}
