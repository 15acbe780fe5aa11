package pathname

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Names is an indexed list of path patterns. The first and last letters of most path segments
// already rule out a match, which makes most look-ups fast.
type Names struct {
	exact  map[string]bool // whole segments without a wildcard
	wild   []string        // single segments with a wildcard
	rows   [][]string      // patterns of several segments; the first is "" in a pattern from the root
	first  map[string]bool // the first segments of rows
	roots  map[string]bool // the directories above each pattern from the root, such as / and /etc
	starts [256]bool       // first letters of exact, of first, and of wild
	ends   [256]bool       // last letters of those in wild that do not end in a *

	byEnd, byStart [256][]string // wild by last letter if they start with a *, otherwise by first letter
}

// Compile returns the path patterns of lists, indexed. A pattern matches one segment anywhere
// in a path, several consecutive segments, or, with a leading /, a path from the root.
func Compile(lists ...[]string) *Names {
	n := &Names{exact: map[string]bool{}, first: map[string]bool{}, roots: map[string]bool{}}
	all := slices.Concat(lists...)
	for _, p := range all { // macOS keeps these directories below /private
		if strings.HasPrefix(p, "/etc/") || strings.HasPrefix(p, "/var/") || strings.HasPrefix(p, "/tmp/") {
			all = append(all, "/private"+p)
		}
	}
	for _, p := range all {
		segs := strings.Split(p, "/")
		switch last := p[len(p)-1]; {
		case len(segs) > 1:
			n.rows = append(n.rows, segs)
			if n.first[segs[0]] = true; segs[0] != "" {
				n.starts[segs[0][0]] = true
				break
			}
			for i := range segs {
				n.roots[cmp.Or(strings.Join(segs[:i], "/"), "/")] = true
			}
		case !strings.Contains(p, "*"):
			n.exact[p], n.starts[p[0]] = true, true
		default:
			n.wild = append(n.wild, p)
			if p[0] == '*' {
				n.byEnd[last] = append(n.byEnd[last], p)
			} else {
				n.byStart[p[0]] = append(n.byStart[p[0]], p)
			}
			if n.starts[p[0]] = true; last != '*' {
				n.ends[last] = true
			}
		}
	}
	return n
}

// Has reports whether p, which may have wildcards, may stand for a listed path or for a path
// below one. With dots, a leading wildcard in p matches a dot too.
func (n *Names) Has(p string, dots bool) bool {
	if n.cannotMatch(p) {
		return false
	}
	segs := Split(make([]string, 0, 16), p)
	for i, s := range segs {
		globbed := IsGlob(s)
		begins := s != "" && n.starts[s[0]]
		switch {
		case globbed && n.globMayMatch(s, i == len(segs)-1, dots), begins && n.exact[s]:
			return true
		case !globbed && s != "" && (begins || n.ends[s[len(s)-1]]) && n.matchWild(s):
			return true
		case !globbed && s != "" && (!begins || !n.first[s]):
			continue
		}
		for _, row := range n.rows {
			if n.rowMatches(row, segs[i:], i == 0, dots) {
				return true
			}
		}
	}
	return false
}

func (n *Names) matchWild(s string) bool {
	for _, w := range n.byEnd[s[len(s)-1]] {
		if strings.HasSuffix(s, w[1:]) || strings.IndexByte(w[1:], '*') >= 0 && Match(w, s) {
			return true
		}
	}
	return slices.ContainsFunc(n.byStart[s[0]], func(w string) bool { return Match(w, s) })
}

// cannotMatch reports whether p matches no listed name, because none of its segments begins
// or ends like one. It looks at each byte once and returns false if unsure.
func (n *Names) cannotMatch(p string) bool {
	if p == "" || p[0] == '/' && n.rooted(p) {
		return p == ""
	}
	begins := true
	for i := 0; i < len(p); i++ {
		c := p[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		switch {
		case c == '*', c == '?', c == '[', c == '\\', c == ' ', c >= utf8.RuneSelf:
			return false
		case c == '/':
			begins = true
			continue
		case begins && (n.starts[c] || c == '.' && i+1 < len(p) && p[i+1] == '.'):
			return false
		case (n.ends[c] || c == '.') && (i+1 == len(p) || p[i+1] == '/'):
			return false
		}
		begins = false
	}
	return true
}

// rooted reports whether the absolute path p may match a pattern from the root.
func (n *Names) rooted(p string) bool {
	return slices.ContainsFunc(n.rows, func(row []string) bool {
		if row[0] != "" {
			return false
		}
		at := strings.TrimLeft(p, "/")
		return len(at) > 0 && (at[0]|0x20 == row[1][0] || at[0] == '.')
	})
}

// globMayMatch reports whether the pattern s may stand for a listed name. If s is not the
// last segment, only hidden names count, because listed directories are hidden, and a lone *
// matches no name.
func (n *Names) globMayMatch(s string, last, dots bool) bool {
	if !last && strings.Trim(s, "*") == "" {
		return false
	}
	for e := range n.exact {
		if (last || e[0] == '.') && Overlap(s, e, dots) {
			return true
		}
	}
	for _, w := range n.wild {
		if (last || w[0] == '.') && overlapList(s, w, dots) {
			return true
		}
	}
	return false
}

func (n *Names) rowMatches(row, segs []string, atRoot, dots bool) bool {
	if row[0] == "" && (!atRoot || segs[0] != "") || len(segs) < len(row) {
		return false
	}
	for i, r := range row {
		if s := segs[i]; s != r && !Overlap(s, r, dots) {
			return false
		}
	}
	return true
}

// MayLeadFrom reports whether a listed path may begin in one of the directories and go on
// below it. For most directories it returns false: then relative paths need not be resolved.
func (n *Names) MayLeadFrom(dirs []string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool {
		if n.roots[strings.ToLower(d)] {
			return true
		}
		for rest := d; rest != ""; {
			seg, after, _ := strings.Cut(rest, "/")
			if rest = after; seg == "" {
				continue
			}
			if IsGlob(seg) || n.ends[seg[len(seg)-1]|0x20] && n.matchWild(strings.ToLower(seg)) {
				return true
			}
			if n.starts[seg[0]] || seg[0] >= 'A' && seg[0] <= 'Z' {
				if low := strings.ToLower(seg); n.exact[low] || n.first[low] || n.matchWild(low) {
					return true
				}
			}
		}
		return false
	})
}

// MayLieBelow reports whether a listed path of several segments may lie below p. A pattern
// that begins with a plain name, such as library/cookies, counts only in a home directory:
// elsewhere library is a directory like any other.
func (n *Names) MayLieBelow(p string, loc *Location) bool {
	segs := Split(make([]string, 0, 16), p)
	return slices.ContainsFunc(n.rows, func(row []string) bool {
		for k := 1; k < len(row) && k <= len(segs); k++ {
			before := segs[:len(segs)-k]
			if !n.rowMatches(row[:k], segs[len(before):], len(before) == 0, true) {
				continue
			}
			counts := row[0] != "" && row[0][0] == '.' && !dotNames[row[0]]
			switch {
			case row[0] == "":
				counts = len(before) == 0
			case row[0][0] != '.':
				counts = len(before) > 0 && (before[0] == "~" || loc.HoldsHome(strings.Join(before, "/")))
			}
			if counts {
				return true
			}
		}
		return false
	})
}

// Split appends p's segments to segs, in lower case and with "." and ".." resolved; an
// absolute path starts with "".
func Split(segs []string, p string) []string {
	p = strings.ToLower(Slashes(p))
	if strings.HasPrefix(p, "/") {
		segs = append(segs, "")
	}
	for s := range strings.SplitSeq(p, "/") {
		switch {
		case s == "" || s == ".":
		case s == ".." && len(segs) > 0 && segs[len(segs)-1] != "" && segs[len(segs)-1] != ".." && !IsGlob(segs[len(segs)-1]):
			segs = segs[:len(segs)-1]
		case s == ".." && len(segs) == 1 && segs[0] == "":
		default:
			if plain := strings.TrimRight(s, " ."); plain != "" {
				s = plain // Windows ignores trailing spaces and dots
			}
			segs = append(segs, s)
		}
	}
	return segs
}
