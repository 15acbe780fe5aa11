package engine

import (
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/actors/policy"
)

// exposures holds the files with secrets that a search of a directory would show, for the
// directories of recent calls. The zero value is ready to use, by several goroutines at once.
type exposures struct {
	mu    sync.Mutex
	found map[string]exposure
}

type exposure struct {
	at    time.Time
	files []string
}

// exposureAge is the time for which a result is used again. A file that is made meanwhile is found
// afterwards.
const exposureAge = 5 * time.Second

// files returns the exposed files below directories of this machine, as full paths. It ignores
// directories that are not absolute.
func (e *exposures) files(p *policy.Policy, dirs ...string) (files []string) {
	e.mu.Lock()
	defer e.mu.Unlock() // the lock covers the walk, so that calls about the same project share one walk
	var walked []string
	for _, dir := range dirs {
		dir = path.Clean(dir)
		if !path.IsAbs(dir) || slices.ContainsFunc(walked, func(other string) bool { return dir == other || strings.HasPrefix(dir, other+"/") }) {
			continue
		}
		walked = append(walked, dir)
		have, ok := e.found[dir]
		if !ok || time.Since(have.at) >= exposureAge {
			if e.found == nil || len(e.found) >= maxProjects {
				e.found = map[string]exposure{}
			}
			have = exposure{time.Now(), policy.ThisDisk{}.Exposed(p, dir)}
			e.found[dir] = have
		}
		files = append(files, have.files...)
	}
	return files
}
