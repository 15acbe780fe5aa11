package policy

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/nodbus/nod/actors/policy/pathname"
)

// wildcards are the characters that make a shell word a file name pattern.
const wildcards = "*?["

// listing reads the directories for the patterns of a call, each directory once.
type listing struct {
	left int // the number of names that the listing may still read
	read map[string][]fs.DirEntry
}

func newListing(names int) listing { return listing{names, map[string][]fs.DirEntry{}} }

// match is a path that matches a pattern. linked is false only if the path certainly contains no symbolic link.
type match struct {
	path   string
	linked bool
}

// entries returns the names in a directory. The result whole is false if there are too many names, or if
// reading fails. A directory that this user may not read counts as empty, because the user's shell cannot
// read it either.
func (l *listing) entries(dir string) (entries []fs.DirEntry, whole bool) {
	if entries, ok := l.read[dir]; ok {
		return entries, true
	}
	f, err := os.Open(dir + "/") // the slash lets Open fail for anything but a directory
	if err != nil {
		return nil, isMissing(err) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENAMETOOLONG)
	}
	defer func() { _ = f.Close() }() // an error of Close does no harm, because the directory was only read
	entries, err = f.ReadDir(l.left + 1)
	if l.left -= len(entries); l.left < 0 || err != nil && !errors.Is(err, io.EOF) {
		l.left = 0
		return nil, false
	}
	l.read[dir] = entries
	return entries, true
}

// expand returns the paths that an absolute file name pattern of the shell may match. As by default in
// shells, * and ? match no leading dot. ** matches directories at any depth. The result whole is false if
// there are too many names to read.
func (l *listing) expand(pattern string) (paths []match, whole bool) {
	paths = []match{{"", false}}
	linked := true // a name before the first wildcard may be a link
	for seg := range strings.SplitSeq(strings.TrimLeft(pattern, "/"), "/") {
		var next []match
		for _, dir := range paths {
			if !strings.ContainsAny(seg, wildcards) {
				next = append(next, match{dir.path + "/" + seg, true})
				continue
			}
			if linked {
				real, err := OnDisk(dir.path + "/")
				dir.linked = err != nil || real != path.Clean(dir.path+"/")
			}
			found, ok := l.matches(dir, seg)
			if next = append(next, found...); !ok {
				return nil, false
			}
		}
		paths, linked = next, linked && !strings.ContainsAny(seg, wildcards)
	}
	return paths, true
}

// matches returns the paths in the directory dir that one segment of a pattern may match.
func (l *listing) matches(dir match, seg string) (paths []match, whole bool) {
	entries, whole := l.entries(dir.path)
	if !whole {
		return nil, false
	}
	deep := strings.Trim(seg, "*") == "" && len(seg) > 1
	if deep {
		paths = append(paths, dir)
	}
	for _, e := range entries {
		if e.Name()[0] == '.' && seg[0] != '.' && seg[0] != '[' || !pathname.MayMatch(seg, e.Name()) {
			continue
		}
		at := match{dir.path + "/" + e.Name(), dir.linked || !e.IsDir() && !e.Type().IsRegular()}
		if !deep || !e.IsDir() {
			paths = append(paths, at)
			continue
		}
		below, ok := l.matches(at, seg)
		if paths = append(paths, below...); !ok {
			return nil, false
		}
	}
	return paths, true
}
