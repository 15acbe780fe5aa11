package engine

import (
	"sync"
	"time"

	"github.com/nodbus/nod/actors/policy"
)

// exposures caches the files with secrets that the searches of recent calls would show, and the files
// that repositories track. The zero value is ready for concurrent use.
type exposures struct {
	mu    sync.Mutex
	found map[policy.Search]*exposure
	repos policy.Repositories
}

// exposure lists the exposed files of one search.
type exposure struct {
	mu    sync.Mutex // locked during the walk, so that calls with the same search share one walk
	at    time.Time
	files []string
	whole bool // false if the search names too many files to find all of them
}

// exposureAge is how long the result of a walk through a search's directories is reused. Only the
// next walk finds files that are made in this time.
const exposureAge = 5 * time.Second

// look returns the facts about this machine's disk that the verdict on a call depends on.
func (e *exposures) look(p *policy.Policy, c policy.Call) policy.Seen {
	return e.repos.Look(p, c, func(s policy.Search) ([]string, bool) { return e.of(s).walk(p, s) })
}

// The method of returns the files that a search would expose.
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

// walk returns the exposed files of a search, from a walk through the searched directories that is at
// most exposureAge old.
func (x *exposure) walk(p *policy.Policy, s policy.Search) (files []string, whole bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.at.IsZero() || time.Since(x.at) >= exposureAge {
		x.files, x.whole = policy.ThisDisk{}.Exposed(p, s)
		x.at = time.Now()
	}
	return x.files, x.whole
}
