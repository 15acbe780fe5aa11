package policy

import (
	"slices"

	"github.com/nodbus/nod/actors/policy/pathname"
)

// Looks lists the places on the disk whose state can change the verdict on a call.
type Looks = pathname.Looks

// Search is a path that a search reads. If the path is a directory, the search reads all files below it too.
type Search = pathname.Search

// Seen has the facts about the disk on which the verdict on a call depends. The zero Seen has no facts, as
// for a call from another machine; Check then decides by names alone.
type Seen struct {
	// Exposed are the files with secrets that a search of their directory would show. nil means that no such
	// file is known.
	Exposed []string
	// Unsearched are directories that have too many names, so that Exposed may be incomplete for them. nod
	// asks about a search of such a directory.
	Unsearched []string
	// Searched are the searches for which nod has looked for exposed files. nod asks about any other search.
	// nil means that nod has looked for all searches.
	Searched []Search
	// Tracked has the secrets that a repository tracks. The key is the directory in which git looks for the
	// repository. If this directory is missing from the map, nod asks about a git command that prints files
	// there. A nil map means that nothing is known about repositories.
	Tracked map[string]Tracked
	// Remotes has the remotes of a repository, for the description of the call to people. The key is the
	// directory in which git looks for the repository.
	Remotes map[string]pathname.Remotes
	// Links has the true paths of each path in the call that leads through symbolic links.
	Links map[string][]string
}

// Looks returns the places on the disk about which Check needs facts for the call c, each place once. It
// ignores the facts in c.Seen.
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
	// maxSearches is the largest number of searches for which Look lists the exposed files of a call. nod
	// asks about a call with more searches.
	maxSearches = 64
	// maxIncomplete is the number of searches with too many names after which Look lists no more files for a
	// call, because each of them takes a large part of a second.
	maxIncomplete = 2
)

// Look returns the facts about this disk on which the verdict of p on a call depends. For each search of the
// call, Look calls the function walk, which returns the result of Exposed, perhaps from a cache.
func (ThisDisk) Look(p *Policy, c Call, walk func(s Search) (files []string, whole bool)) Seen {
	return new(Repositories).Look(p, c, walk)
}

// Look does the same as ThisDisk.Look, but does not read again what r already knows about the repositories.
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
