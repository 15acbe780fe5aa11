package policy

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/nodbus/nod/actors/policy/tools"
)

// IsSearch reports whether the tool with this name searches files.
func IsSearch(tool string) bool { return tools.Named(tool).Kind == tools.Search }

const (
	maxWalked  = 200_000 // the number of names at which Exposed looks: about 0.2 s
	maxExposed = 64      // the largest number of files that Exposed returns
	readAtOnce = 512     // the number of names that Exposed reads from a directory at once

	maxIgnoreFile = 64 << 10 // in bytes; Exposed treats a longer .gitignore as if there were none
)

// Exposed returns the files with secrets that a search of a whole directory would show: files
// on the list of secrets in p that are neither hidden nor ignored. whole is false if the
// directory holds more than maxWalked names or more than maxExposed such files. Other such
// files may then exist.
func (ThisDisk) Exposed(p *Policy, dir string) (files []string, whole bool) {
	w := exposedWalk{policy: p}
	whole = w.read(dir)
	return w.files, whole
}

// exposedWalk is one walk of Exposed.
type exposedWalk struct {
	policy  *Policy
	ignored []ignoreFile
	names   int // the number of names that the walk has read
	files   []string
}

// read looks at the names below a directory. It returns false if there are too many. It passes
// over a directory that it cannot read, because a search cannot read that directory either.
func (w *exposedWalk) read(dir string) (whole bool) {
	f, err := os.Open(dir)
	if err != nil {
		return true
	}
	defer f.Close()
	if own, ok := readIgnoreFile(dir); ok {
		w.ignored = append(w.ignored, own)
		defer func() { w.ignored = w.ignored[:len(w.ignored)-1] }()
	}
	for {
		entries, err := f.ReadDir(readAtOnce)
		for _, d := range entries {
			if w.names++; w.names > maxWalked || !w.look(dir+"/"+d.Name(), d) {
				return false
			}
		}
		if err != nil {
			return true
		}
	}
}

// look looks at one name. It returns false if there are too many names or files.
func (w *exposedWalk) look(at string, d fs.DirEntry) (whole bool) {
	switch {
	case strings.HasPrefix(d.Name(), "."), ignores(w.ignored, at), d.IsDir() && d.Name() == "node_modules":
		return true
	case d.IsDir():
		return w.read(at)
	case d.Type().IsRegular() && w.policy.shell.Secrets.Listed(at):
		w.files = append(w.files, at)
	}
	return len(w.files) <= maxExposed
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
