package policy

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/tools"
)

// Exposure finds the files with secrets in a project that a search of whole directories would
// show: files on the list of secrets that are neither hidden nor ignored. The zero Exposure is
// ready to use, by several goroutines at once.
type Exposure struct {
	mu    sync.Mutex
	found map[string]exposure
}

type exposure struct {
	at    time.Time
	files []string
}

// IsSearch reports whether the tool with this name searches files.
func IsSearch(tool string) bool { return tools.Named(tool).Kind == tools.Search }

const (
	// exposureAge is the time for which a result is used again. A file that was made meanwhile is
	// found afterwards.
	exposureAge = 5 * time.Second
	// maxWalked bounds the names at which a walk looks. Files behind it are not found.
	maxWalked = 30000
	// maxExposed bounds the result.
	maxExposed = 64
	// maxExposures bounds the number of projects with a result.
	maxExposures = 64
)

// Files returns the exposed files below directories of this machine, as full paths. p knows the
// names of secrets. Files ignores directories that are not absolute.
func (e *Exposure) Files(p *Policy, dirs ...string) (files []string) {
	e.mu.Lock()
	defer e.mu.Unlock() // calls about the same project then share one walk
	var walked []string
	for _, dir := range dirs {
		dir = path.Clean(dir)
		if !path.IsAbs(dir) || slices.ContainsFunc(walked, func(other string) bool { return pathname.Within(dir, other) }) {
			continue
		}
		walked = append(walked, dir)
		have, ok := e.found[dir]
		if !ok || time.Since(have.at) >= exposureAge {
			if e.found == nil || len(e.found) >= maxExposures {
				e.found = map[string]exposure{}
			}
			have = exposure{time.Now(), p.exposed(dir)}
			e.found[dir] = have
		}
		files = append(files, have.files...)
	}
	return files
}

func (p *Policy) exposed(dir string) (files []string) {
	var ignored []ignoreFile
	walked := 0
	_ = filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if walked++; walked > maxWalked || len(files) >= maxExposed {
			return fs.SkipAll
		}
		name := path.Base(at)
		switch {
		case err != nil:
			return nil // neither can a search read it
		case at != dir && (strings.HasPrefix(name, ".") || ignores(ignored, at)):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			if name == "node_modules" && at != dir {
				return fs.SkipDir
			}
			if own, ok := readIgnoreFile(at); ok {
				ignored = append(ignored, own)
			}
		case d.Type().IsRegular() && p.shell.Secrets.Listed(at):
			files = append(files, at)
		}
		return nil
	})
	return files
}

// ignoreFile holds the plain patterns of a .gitignore: names without a slash, which count at any
// depth, and paths from its directory. Other patterns are left out, so that a file may count as
// exposed that is not.
type ignoreFile struct {
	dir      string
	patterns []string
}

// readIgnoreFile reads the .gitignore of a directory. ok is false if there is none, or if it also
// includes files again.
func readIgnoreFile(dir string) (f ignoreFile, ok bool) {
	text, err := os.ReadFile(dir + "/.gitignore")
	if err != nil {
		return f, false
	}
	f.dir = dir
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "!") {
			return f, false
		}
		if line != "" && line[0] != '#' && !strings.ContainsAny(line, `\\`) {
			f.patterns = append(f.patterns, strings.TrimSuffix(strings.TrimPrefix(line, "**/"), "/"))
		}
	}
	return f, true
}

func ignores(files []ignoreFile, at string) bool {
	for _, f := range files {
		rel, below := strings.CutPrefix(at, f.dir+"/")
		if !below {
			continue
		}
		for _, pattern := range f.patterns {
			name := path.Base(at)
			if strings.Contains(pattern, "/") {
				pattern, name = strings.TrimPrefix(pattern, "/"), rel
			}
			if ok, err := path.Match(pattern, name); ok && err == nil {
				return true
			}
		}
	}
	return false
}
