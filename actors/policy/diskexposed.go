package policy

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/nodbus/nod/actors/policy/tools"
)

// IsSearch reports whether the tool with this name searches files.
func IsSearch(tool string) bool { return tools.Named(tool).Kind == tools.Search }

const (
	maxWalked  = 30000 // the number of names at which Exposed looks
	maxExposed = 64    // the largest number of files that Exposed returns

	maxIgnoreFile = 64 << 10 // in bytes; Exposed treats a longer .gitignore as if there were none
)

// Exposed returns the files with secrets that a search of a whole directory would show: files
// on the list of secrets in p that are neither hidden nor ignored. Exposed looks at no more
// than maxWalked names.
func (ThisDisk) Exposed(p *Policy, dir string) (files []string) {
	var ignored []ignoreFile
	walked := 0
	_ = filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if walked++; walked > maxWalked || len(files) >= maxExposed {
			return fs.SkipAll
		}
		name := path.Base(at)
		switch {
		case err != nil:
			return nil // a search cannot read this entry either
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

// ignoreFile holds the plain patterns of a .gitignore: names without a slash, which count at
// any depth, and paths from its directory. Other patterns are left out, so a file that only
// such a pattern ignores counts as exposed.
type ignoreFile struct {
	dir      string
	patterns []string
}

// readIgnoreFile reads the .gitignore of a directory. ok is false if the directory has no
// .gitignore, if the file is long, or if a pattern with ! in it includes files again. Like git,
// readIgnoreFile reads no symbolic link: a repository may contain a link to a device, which has
// no end.
func readIgnoreFile(dir string) (f ignoreFile, ok bool) {
	name := dir + "/.gitignore"
	if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
		return f, false
	}
	text, err := os.ReadFile(name)
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
