package pathname

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Names is an indexed list of path patterns. Most look-ups are fast, because the first and last
// letters of a path's segments usually show that no pattern matches.
type Names struct {
	exact  map[string]bool       // patterns of one segment without a wildcard
	wild   []string              // patterns of one segment with a wildcard
	inner  []string              // the texts TEXT of the patterns *TEXT*; each text begins with a dot
	rows   [][]string            // patterns of several segments; the first segment of a pattern that begins with / is ""
	first  map[string]bool       // the first segments of the patterns in rows
	byHead map[string][][]string // the patterns in rows by their head; "*" has those whose head contains a wildcard
	top    [256]bool             // the first letters of the names at the root in rows, such as e for /etc
	roots  map[string]bool       // the directories above the patterns that begin with /, such as / and /etc
	starts [256]bool             // the first letters of the names in exact, first and wild
	ends   [256]bool             // the last letters of the patterns in wild that do not end in *

	byEnd, byStart [256][]string // the patterns in wild: those that begin with * are in byEnd, by the last letter; all others are in byStart, by the first letter
}

// Compile indexes the path patterns of all lists. A pattern without a slash matches one segment
// anywhere in a path. A pattern with slashes matches consecutive segments. A pattern that begins
// with / matches from the root.
func Compile(lists ...[]string) *Names {
	n := &Names{exact: map[string]bool{}, first: map[string]bool{}, roots: map[string]bool{}, byHead: map[string][][]string{}}
	all := slices.Concat(lists...)
	for _, p := range all { // add these patterns below /private too, because /etc, /var and /tmp are there on macOS
		if strings.HasPrefix(p, "/etc/") || strings.HasPrefix(p, "/var/") || strings.HasPrefix(p, "/tmp/") {
			all = append(all, "/private"+p)
		}
	}
	for _, p := range all {
		segs := strings.Split(p, "/")
		switch last := p[len(p)-1]; {
		case len(segs) > 1:
			n.rows = append(n.rows, segs)
			h := head(segs)
			if IsGlob(h) {
				h = "*"
			}
			n.byHead[h] = append(n.byHead[h], segs)
			if n.first[segs[0]] = true; segs[0] != "" {
				n.starts[segs[0][0]] = true
				break
			}
			if segs[1] != "" {
				n.top[segs[1][0]] = true
			}
			for i := range segs {
				n.roots[cmp.Or(strings.Join(segs[:i], "/"), "/")] = true
			}
		case !strings.Contains(p, "*"):
			n.exact[p], n.starts[p[0]] = true, true
		default:
			n.wild = append(n.wild, p)
			if p[0] == '*' && last == '*' {
				n.inner = append(n.inner, strings.Trim(p, "*"))
				break
			}
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

// Has reports whether p may mean a listed path or a path below a listed path. p may contain
// wildcards. If the argument dots is true, a leading wildcard in p also matches a leading dot.
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
		case !globbed && s != "" && (begins || n.ends[s[len(s)-1]]) && n.matchWild(s), !globbed && n.hasInner(s):
			return true
		case !globbed && s != "" && (!begins || !n.first[s]):
			continue
		}
		if slices.ContainsFunc(n.rowsFor(segs[i:]), func(row []string) bool { return n.rowMatches(row, segs[i:], i == 0, dots) }) {
			return true
		}
	}
	return false
}

// head returns the first segment of a pattern with several segments. If the pattern begins with /,
// head returns the slash and the first name.
func head(segs []string) string {
	if segs[0] == "" && len(segs) > 1 {
		return "/" + segs[1]
	}
	return segs[0]
}

// rowsFor returns the patterns with several segments that may match the beginning of segs.
func (n *Names) rowsFor(segs []string) [][]string {
	h := head(segs)
	if IsGlob(h) || len(n.byHead["*"]) > 0 {
		return n.rows
	}
	return n.byHead[h]
}

func (n *Names) matchWild(s string) bool {
	for _, w := range n.byEnd[s[len(s)-1]] {
		if strings.HasSuffix(s, w[1:]) || strings.IndexByte(w[1:], '*') >= 0 && Match(w, s) {
			return true
		}
	}
	return slices.ContainsFunc(n.byStart[s[0]], func(w string) bool { return Match(w, s) })
}

func (n *Names) hasInner(s string) bool {
	return slices.ContainsFunc(n.inner, func(text string) bool { return strings.Contains(s, text) })
}

// cannotMatch reports whether p certainly matches no pattern, because no segment of p begins or
// ends like a pattern. It reads each byte only once. In doubt it returns false.
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
		case c == '.' && n.beginsInner(p[i:]):
			return false
		}
		begins = false
	}
	return true
}

func (n *Names) beginsInner(p string) bool {
	return slices.ContainsFunc(n.inner, func(text string) bool { return len(p) >= len(text) && strings.EqualFold(p[:len(text)], text) })
}

// rooted reports whether the absolute path p may match a pattern that begins with /.
func (n *Names) rooted(p string) bool {
	at := strings.TrimLeft(p, "/")
	return len(at) > 0 && (n.top[at[0]|0x20] || at[0] == '.')
}

// globMayMatch reports whether the segment s, which contains wildcards, may mean a listed name. If
// the argument last is false, s means a directory. Then s matches only hidden names, because all
// listed directories are hidden; and if s has only stars, it matches nothing.
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
	if row[0] == "" && (!atRoot || segs[0] != "") {
		return false
	}
	for i, r := range row {
		switch {
		case i == len(segs):
			return false
		case segs[i] == "**" && row[0] == "": // in some shells, ** matches any number of directories
			return true
		case segs[i] != r && !Overlap(segs[i], r, dots):
			return false
		}
	}
	return true
}

// MayLeadFrom reports whether a listed path may begin in one of these directories and continue
// below it. For most directories it returns false, and the caller need not resolve relative paths.
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

// MayLieBelow reports whether a path that matches a pattern with several segments may exist below
// p. A pattern whose first segment is not hidden, such as library/cookies, counts only in a home
// directory, because library is an ordinary directory elsewhere.
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

// Split appends the segments of p to segs. The segments are in lower case, and "." and ".." are
// resolved. The first segment of an absolute path is "".
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
