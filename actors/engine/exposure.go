package engine

import (
	"sync"
	"time"

	"github.com/nodbus/nod/actors/policy"
)

// exposures holds the files with secrets that a search would show, for the searches of recent
// calls. The zero value is ready to use, by several goroutines at once.
type exposures struct {
	mu    sync.Mutex
	found map[policy.Search]*exposure
}

// exposure lists the exposed files of one search.
type exposure struct {
	mu    sync.Mutex // locked during the walk, so that calls with the same search share one walk
	at    time.Time
	files []string
	whole bool // false if the search has too many names to find all files
}

const (
	// exposureAge is how long a result is reused. The next walk finds files that were made in
	// that time.
	exposureAge = 5 * time.Second
	// maxSearches is the largest number of searches of a call that are walked. The call asks if
	// it has more.
	maxSearches = 64
	// maxIncomplete is the number of searches with too many names after which no further search
	// of the call is walked, because each of them takes a large part of a second.
	maxIncomplete = 2
)

// look returns the facts about this machine's disk that the verdict on a call depends on.
func (e *exposures) look(p *policy.Policy, c policy.Call) policy.Seen {
	looks := p.Looks(c)
	seen := policy.Seen{Links: policy.ThisDisk{}.Follow(c, looks.Paths), Searched: []policy.Search{}}
	for _, s := range looks.Searches {
		if len(seen.Searched) == maxSearches || len(seen.Unsearched) == maxIncomplete {
			break
		}
		seen.Searched = append(seen.Searched, s)
		if (policy.ThisDisk{}).Public(c, s) {
			continue
		}
		files, whole := e.of(s).walk(p, s)
		if seen.Exposed = append(seen.Exposed, files...); !whole {
			seen.Unsearched = append(seen.Unsearched, s.Top())
		}
	}
	return seen
}

// of returns the exposure of a search.
func (e *exposures) of(s policy.Search) *exposure {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.found == nil || len(e.found) >= maxProjects && e.found[s] == nil {
		e.found = map[policy.Search]*exposure{}
	}
	if e.found[s] == nil {
		e.found[s] = &exposure{}
	}
	return e.found[s]
}

// walk returns the result for a search, at most exposureAge old.
func (x *exposure) walk(p *policy.Policy, s policy.Search) (files []string, whole bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.at.IsZero() || time.Since(x.at) >= exposureAge {
		x.files, x.whole = policy.ThisDisk{}.Exposed(p, s)
		x.at = time.Now()
	}
	return x.files, x.whole
}
