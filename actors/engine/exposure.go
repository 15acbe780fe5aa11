package engine

import (
	"path"
	"slices"
	"sync"
	"time"

	"github.com/nodbus/nod/actors/policy"
)

// exposures holds the files with secrets that a search of a directory would show, for the
// directories of recent calls. The zero value is ready to use, by several goroutines at once.
type exposures struct {
	mu    sync.Mutex
	found map[string]*exposure
}

// exposure lists the exposed files below one directory.
type exposure struct {
	mu    sync.Mutex // locked during the walk, so that calls about the same directory share one walk
	at    time.Time
	files []string
	whole bool // false if the directory has too many names to find all files
}

// exposureAge is how long a result is reused. The next walk finds files that were made in that
// time.
const exposureAge = 5 * time.Second

// files returns the exposed files below directories of this machine, as full paths, and the
// directories that hold too many names to find all such files. It ignores directories that are
// not absolute.
func (e *exposures) files(p *policy.Policy, dirs ...string) (files, unsearched []string) {
	var walked []string
	for _, dir := range dirs {
		dir = path.Clean(dir)
		// A walk of a directory above leaves out dir if dir is hidden or ignored, but a search that names
		// dir does not. So only the same directory is left out.
		if !path.IsAbs(dir) || slices.Contains(walked, dir) {
			continue
		}
		walked = append(walked, dir)
		found, whole := e.of(dir).walk(p, dir)
		files = append(files, found...)
		if !whole {
			unsearched = append(unsearched, dir)
		}
	}
	return files, unsearched
}

// of returns the exposure of a directory.
func (e *exposures) of(dir string) *exposure {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.found == nil || len(e.found) >= maxProjects && e.found[dir] == nil {
		e.found = map[string]*exposure{}
	}
	if e.found[dir] == nil {
		e.found[dir] = &exposure{}
	}
	return e.found[dir]
}

// walk returns the result for dir, at most exposureAge old.
func (x *exposure) walk(p *policy.Policy, dir string) (files []string, whole bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.at.IsZero() || time.Since(x.at) >= exposureAge {
		x.files, x.whole = policy.ThisDisk{}.Exposed(p, dir)
		x.at = time.Now()
	}
	return x.files, x.whole
}
