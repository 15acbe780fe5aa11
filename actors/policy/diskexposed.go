package policy

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/nodbus/nod/actors/policy/contained"
	"github.com/nodbus/nod/actors/policy/pathname"
)

const (
	maxWalked  = 200_000 // the largest number of names that Exposed reads, which takes about 0.4 s
	maxExposed = 64      // the largest number of files that Exposed returns
	readAtOnce = 512     // the number of names that Exposed reads from a directory at once

	maxIgnoreFile = 64 << 10 // in bytes; if a .gitignore is longer, nod applies neither this file nor the .gitignore files above it
)

// Exposed returns the files on the list of secrets that a search, such as one by ripgrep, would show. These
// are the secrets that the search names, directly or through a link, and those below its directories that are
// neither hidden nor ignored. The result whole is false, and files may be incomplete, if the search has more
// than maxWalked names or finds more than maxExposed secrets, or if reading fails.
func (ThisDisk) Exposed(p *Policy, s Search) (files []string, whole bool) {
	return exposedAmong(p, s, maxWalked)
}

// Public reports whether a search reads only public directories outside the call's project: those of the
// system, of toolchains and of caches. Files on the list of secrets there, such as test keys and public
// certificates, are no secrets of the user.
func (ThisDisk) Public(c Call, s Search) bool {
	at, err := OnDisk(s.Path)
	if err != nil || s.Pattern {
		return false
	}
	return slices.ContainsFunc(contained.Public(c.Home), func(dir string) bool {
		return pathname.Within(at, dir) && !pathname.Within(c.Project, dir) && !pathname.Within(c.Cwd, dir)
	})
}

// exposedAmong works like Exposed, but reads at most the given number of names.
func exposedAmong(p *Policy, s Search, names int) (files []string, whole bool) {
	roots := []match{{s.Path, true}}
	w := exposedWalk{policy: p, names: names}
	if s.Pattern {
		l := newListing(names)
		if roots, whole = l.expand(s.Path); !whole {
			return nil, false
		}
		w.names = l.left
	}
	for _, root := range roots {
		if !w.search(root.path) {
			return w.files, false
		}
	}
	return w.files, true
}

// search looks at a path and, if the path is a directory, at all files below it. It returns false if there
// are too many names or files, or if it cannot follow the path.
func (w *exposedWalk) search(at string) (whole bool) {
	var err error
	if w.top = path.Clean(at); strings.Contains(at+"/", "/../") {
		if real, err := OnDisk(w.top); err != nil || !leadsTo(at, real) {
			return false // the path contains "..", and its links make it lead elsewhere than its text says
		}
	}
	if w.real, err = OnDisk(at); err != nil {
		return isMissing(err) || errors.Is(err, syscall.ENAMETOOLONG)
	}
	if info, err := os.Stat(w.real); err == nil && info.Mode().IsRegular() {
		w.list(w.real, w.top)
		return len(w.files) <= maxExposed
	}
	for w.waiting = append(w.waiting, inRepository(w.real)); len(w.waiting) > 0; {
		next := w.waiting[len(w.waiting)-1]
		w.waiting = w.waiting[:len(w.waiting)-1]
		if !w.read(next) {
			return false
		}
	}
	return true
}

// leadsTo reports whether the second path is the true path of the first.
func leadsTo(at, real string) bool {
	to, err := OnDisk(at)
	return err == nil && to == real
}

// list adds a file to the result if its true path, or its path in the search, is on the list of secrets.
func (w *exposedWalk) list(at, named string) {
	if w.policy.shell.Secrets.Listed(at) || w.policy.shell.Secrets.Listed(named) {
		w.files = append(w.files, named)
	}
}

// inRepository prepares the directory dir for a walk. In a git repository, the .gitignore files above dir
// also count, up to the first one that may re-include ignored files. From these files, only patterns for
// names count, because ripgrep 13 applies a pattern for a path, such as /out/, to the wrong path if the
// search names its directory by a relative path.
func inRepository(dir string) exposedDir {
	var ignored []ignoreFile
	includes := false
	for at := dir; ; at = path.Dir(at) {
		if at != dir && !includes {
			var own ignoreFile
			own, includes = readIgnoreFile(at)
			own.patterns = slices.DeleteFunc(own.patterns, func(p string) bool { return strings.Contains(strings.TrimSuffix(p, "/"), "/") })
			ignored = append(ignored, own)
		}
		if _, err := os.Lstat(at + "/.git"); err == nil {
			return exposedDir{dir, true, ignored}
		}
		if at == path.Dir(at) {
			return exposedDir{name: dir}
		}
	}
}

// exposedWalk walks through the paths that one search names, one after the other. It opens only one
// directory at a time, so that a deep tree needs no more file descriptors than a flat tree.
type exposedWalk struct {
	policy  *Policy
	top     string // the searched path as the search writes it
	real    string // the searched path without symbolic links
	waiting []exposedDir
	names   int // the number of names that the walk may still read
	files   []string
}

// exposedDir is a directory that a walk has still to read. Its path contains no symbolic links. Its
// .gitignore files count only if repo is true.
type exposedDir struct {
	name    string
	repo    bool
	ignored []ignoreFile
}

// read looks at the names in a directory. It returns false if there are too many names or files, or if reading
// fails. It skips a directory that this user may not read, because the user's search cannot read it either.
func (w *exposedWalk) read(dir exposedDir) (whole bool) {
	f, err := os.OpenFile(dir.name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // without O_NONBLOCK, opening a named pipe would wait for a writer
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR)
	}
	defer f.Close()
	if _, err := os.Lstat(dir.name + "/.git"); err == nil {
		dir.repo, dir.ignored = true, nil // a search of a repository does not use the .gitignore files of an outer repository
	}
	own, includes := readIgnoreFile(dir.name)
	if includes {
		dir.ignored = nil
	}
	if dir.repo {
		dir.ignored = append(slices.Clip(dir.ignored), own)
	}
	for {
		entries, err := f.ReadDir(readAtOnce)
		for _, d := range entries {
			if w.names--; w.names < 0 || !w.look(&dir, d) {
				return false
			}
		}
		if err != nil {
			return errors.Is(err, io.EOF) || errors.Is(err, syscall.ENOTDIR)
		}
	}
}

// look looks at one name in a directory. It returns false if the walk has found too many files.
func (w *exposedWalk) look(dir *exposedDir, d fs.DirEntry) (whole bool) {
	at := path.Join(dir.name, d.Name())
	switch {
	case strings.HasPrefix(d.Name(), "."), ignores(dir.ignored, at, d.IsDir()):
		return true
	case d.IsDir():
		w.waiting = append(w.waiting, exposedDir{at, dir.repo, dir.ignored})
	case d.Type().IsRegular():
		w.list(at, path.Join(w.top, strings.TrimPrefix(at, w.real)))
	}
	return len(w.files) <= maxExposed
}

// ignoreFile has the patterns of a .gitignore that nod can compare: names without a slash, which match at any
// depth, and paths relative to the directory of the .gitignore. If only another pattern ignores a file, the
// file counts as exposed.
type ignoreFile struct {
	dir      string
	patterns []string
}

// readIgnoreFile reads the .gitignore of a directory. The result includes is true if a search may show files
// here although a .gitignore above ignores them; f then has no patterns. This is so if a pattern begins with
// !, if nod cannot read all patterns, or if the directory has ripgrep's .ignore or .rgignore. nod reads
// neither a long .gitignore nor one that is a link, because the link may lead to a device without an end.
func readIgnoreFile(dir string) (f ignoreFile, includes bool) {
	for _, own := range []string{"/.ignore", "/.rgignore"} {
		if exists(dir + own) {
			return f, true
		}
	}
	name := dir + "/.gitignore"
	info, err := os.Lstat(name)
	if err != nil {
		return f, !isMissing(err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
		return f, true
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return f, true
	}
	f.dir = dir
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, " \t\r\n") // trim only the right end, because a pattern may begin with a space
		if strings.HasPrefix(line, "!") {
			return ignoreFile{}, true
		}
		if line != "" && line[0] != '#' && !strings.ContainsAny(line, `\[`) { // in Go, git's [!a] is [^a]
			f.patterns = append(f.patterns, strings.TrimPrefix(line, "**/"))
		}
	}
	return f, false
}

// ignores reports whether one of the .gitignore files ignores the file or directory at this path.
func ignores(files []ignoreFile, at string, isDir bool) bool {
	for _, f := range files {
		rel, below := strings.CutPrefix(at, f.dir+"/")
		if !below {
			continue
		}
		for _, pattern := range f.patterns {
			pattern, onlyDirs := strings.CutSuffix(pattern, "/")
			if onlyDirs && !isDir {
				continue
			}
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
