package pathname

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Looks lists the places on the disk on which the verdict on a call depends. All paths are full.
// They keep "..", because its meaning depends on symbolic links.
type Looks struct {
	Paths    []string // paths that the call may read or write; a path with wildcards may be a name or a pattern
	Searches []Search // paths that the call's searches read

	Repositories []string // directories in which git looks for a repository, and prints its files
	Remotes      []string // directories whose repository exchanges commits with other machines
}

// Search is a path that a search reads, with all files below it.
type Search struct {
	Path    string
	Pattern bool // the shell expands the path as a pattern
}

// Unfollowed stands for the target of a path whose links cannot be followed. It is on no disk, and
// in no project.
const Unfollowed = "/?"

// Follow returns the other places to which symbolic links lead the path t, including Unfollowed if
// the links cannot be followed. If nothing is known about links, Follow returns nil.
func (loc *Location) Follow(t string) (places []string) {
	if loc.Looked == nil && len(loc.Links) == 0 {
		return nil
	}
	for _, full := range loc.joined(t) {
		if loc.Looked != nil {
			loc.Looked.Paths = append(loc.Looked.Paths, full)
		}
		places = append(places, loc.Links[full]...)
	}
	return places
}

// joined returns the full paths that t may mean, and keeps "..". A path ~/x may also be a relative
// path, because a word in quotes may begin with a literal ~.
func (loc *Location) joined(t string) []string {
	var out []string
	switch {
	case strings.HasPrefix(t, "/"):
		return []string{t}
	case IsAbs(Slashes(t)): // a path with a drive letter
		return nil
	case loc.Home != "" && (t == "~" || strings.HasPrefix(t, "~/")):
		out = append(out, loc.Home+t[1:])
	}
	for _, d := range loc.Dirs {
		out = append(out, d+"/"+t)
	}
	return out
}

// ExposedBelow returns the first exposed file that one of these searches shows, or "". The path of each
// search is as the call writes it. If searches is empty, the search is of the current directory. Files for
// which the function skips returns true do not count. The result unsearched is true if there is no such
// file, but nod does not know all files, because a search enters a directory of Unsearched or is not in
// Searched. The result found is then this directory or the search's path.
func (loc *Location) ExposedBelow(searches []Search, skips func(file string) bool) (found string, unsearched bool) {
	if len(searches) == 0 {
		searches = []Search{{Path: "."}}
	}
	var full []Search
	for _, s := range searches {
		for _, p := range loc.joined(s.Path) {
			full = append(full, Search{p, s.Pattern})
		}
	}
	if loc.Looked != nil {
		loc.Looked.Searches = append(loc.Looked.Searches, full...)
	}
	for _, file := range loc.Exposed {
		if slices.ContainsFunc(full, func(s Search) bool { return s.reads(file) }) && !skips(file) {
			return file, false
		}
	}
	for _, s := range full {
		for _, dir := range loc.Unsearched {
			if top := s.Top(); Within(dir, top) || Within(top, dir) {
				return dir, true
			}
		}
		if loc.Searched != nil && !slices.Contains(loc.Searched, s) {
			return s.Path, true
		}
	}
	return "", false
}

// Top returns the clean path of the directory that contains all files that the search reads. For a
// pattern, this is the directory before the first wildcard.
func (s Search) Top() string {
	if at := strings.IndexAny(s.Path, "*?["); s.Pattern && at >= 0 {
		return path.Clean(s.Path[:strings.LastIndexByte(s.Path[:at], '/')+1])
	}
	return path.Clean(s.Path)
}

// reads reports whether the search may read the file with this clean path. In doubt it returns true.
func (s Search) reads(file string) bool {
	if !s.Pattern {
		return Within(file, path.Clean(s.Path))
	}
	names := strings.Split(file, "/")
	for i, seg := range strings.Split(path.Clean(s.Path), "/") {
		switch {
		case seg == "**":
			return true
		case i >= len(names) || !MayMatch(seg, names[i]):
			return false
		}
	}
	return true
}

// MayMatch reports whether a pattern of the shell may match a name. Case does not matter, and a
// leading wildcard may match a dot. In doubt MayMatch returns true.
func MayMatch(pattern, name string) bool {
	return Overlap(strings.ToLower(pattern), literal(strings.ToLower(name)), true)
}

// literal replaces the characters of a name that have a special meaning in a pattern. It replaces a letter
// beyond ASCII by *, because one ? matches only one of the letter's bytes.
func literal(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= utf8.RuneSelf:
			return '*'
		case strings.ContainsRune("*?[]", r):
			return '?'
		}
		return r
	}, name)
}
