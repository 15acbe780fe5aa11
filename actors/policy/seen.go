package policy

import (
	"slices"

	"github.com/nodbus/nod/actors/policy/pathname"
)

// Looks are the places on the disk on which the verdict on a call depends.
type Looks = pathname.Looks

// Search is a path that a search reads, with all files below it.
type Search = pathname.Search

// Seen are the facts about the disk that the verdict on a call depends on. The zero Seen means
// that nothing is known, as for calls from another machine: Check then judges by names alone.
type Seen struct {
	// Exposed are files with secrets that a search of their directory would show, as ThisDisk
	// finds them. nil means that no such file is known.
	Exposed []string
	// Unsearched are directories that hold too many names for ThisDisk to find all such files.
	// A search of them asks.
	Unsearched []string
	// Searched are the searches for which Exposed and Unsearched are complete. Any other search
	// asks. nil means that they are complete for all searches.
	Searched []Search
	// Tracked are the secrets that repositories track, by the directory in which git looks for the
	// repository. git commands that print files of a directory's repository which is missing here
	// ask. nil means that nothing is known about repositories.
	Tracked map[string]Tracked
	// Links are the true paths of the call's paths that lead through symbolic links.
	Links map[string][]string
}

// Looks returns the places at which Check needs to look for a call, each once. It ignores what
// the call already knows of them.
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
	// maxSearches is the largest number of searches of a call that are walked. The call asks if
	// it has more.
	maxSearches = 64
	// maxIncomplete is the number of searches with too many names after which no further search
	// of the call is walked, because each of them takes a large part of a second.
	maxIncomplete = 2
)

// Look returns the facts about this disk that the verdict of p on a call depends on. The function
// walk returns the result of Exposed for a search, which it may have kept.
func (ThisDisk) Look(p *Policy, c Call, walk func(s Search) (files []string, whole bool)) Seen {
	return new(Repositories).Look(p, c, walk)
}

// Look is ThisDisk.Look, with what r keeps of the repositories.
func (r *Repositories) Look(p *Policy, c Call, walk func(s Search) (files []string, whole bool)) Seen {
	d := ThisDisk{}
	looks := p.Looks(c)
	seen := Seen{Links: d.Follow(p, c, looks.Paths), Searched: []Search{}, Tracked: map[string]Tracked{}}
	for _, dir := range looks.Repositories {
		seen.Tracked[dir] = r.Tracked(dir)
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
