package pathname

import (
	"strings"
	"unicode/utf8"
)

// IsGlob reports whether s may match other texts than s itself. Such an s contains a wildcard, or a
// letter beyond ASCII, because file systems may treat such a letter as equal to another letter.
func IsGlob(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '*' || c == '?' || c == '[' || c >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// Overlap reports whether a name may match two patterns: that of a shell command, and that of a list or a
// rule. In doubt it returns true, as it does for more than four * in the shell pattern. Unless brackets
// certainly mean one character, it reads them as *. It also reads a letter beyond ASCII in the shell pattern
// as *. If the argument dots is false, a leading wildcard in the shell pattern does not match a dot.
func Overlap(shell, listed string, dots bool) bool {
	if a, b := len(shell)-1, len(listed)-1; a >= 0 && b >= 0 && (apart(shell[0], listed[0]) || apart(shell[a], listed[b])) {
		return false
	}
	shell, listed = anyText(unbracketed(shell)), unbracketed(listed)
	if strings.Count(shell, "*") > 4 {
		return true
	}
	if !dots && strings.HasPrefix(listed, ".") && (strings.HasPrefix(shell, "*") || strings.HasPrefix(shell, "?")) {
		return false
	}
	return meet(shell, listed)
}

// apart reports whether two bytes of patterns are different literal bytes.
func apart(a, b byte) bool {
	return a != b && itself(a) && itself(b)
}

func itself(c byte) bool {
	return c != '*' && c != '?' && c != '[' && c != ']' && c < utf8.RuneSelf
}

func unbracketed(s string) string {
	open := strings.IndexByte(s, '[')
	if open < 0 {
		return s
	}
	end := max(strings.LastIndexByte(s, ']'), open)
	before, inside, after := s[:open], s[min(open+1, end):end], s[end+1:]
	if inside != "" && strings.Trim(inside, wordBytes+",") == "" && strings.Trim(before+after, wordBytes+".-*?") == "" {
		return before + "?" + after // such as the extras of a Python package, .[dev,test]
	}
	return before + "*" + after
}

const wordBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

// anyText replaces each run of stars and letters beyond ASCII by one star.
func anyText(s string) string {
	if !strings.Contains(s, "**") && strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if wild := s[i] == '*' || s[i] >= utf8.RuneSelf; !wild {
			b.WriteByte(s[i])
		} else if i == 0 || s[i-1] != '*' && s[i-1] < utf8.RuneSelf {
			b.WriteByte('*')
		}
	}
	return b.String()
}

// overlapList works like Overlap for a listed name with a wildcard. A listed name that ends in *,
// such as id_rsa*, would also match id_rsa.go. Therefore it does not match a shell pattern that
// ends like source code. It also does not match a shell pattern such as *.json, which begins with *
// and ends like other plain text.
func overlapList(shell, listed string, dots bool) bool {
	if strings.HasSuffix(listed, "*") && matchesSourceOnly(shell) {
		return false
	}
	return Overlap(shell, listed, dots)
}

// codeEndings are endings of source code and its documentation. textEndings count only for patterns
// that begin with *, because a secret such as .env.json may have such an ending.
var (
	codeEndings = set("c cc cpp cs css dart fish go h hpp html java js jsx kt lua md mdx mjs php pl proto py rb rs scala scss svelte swift ts tsx vue zig")
	textEndings = set("json lock log sh sql tf toml txt xml yaml yml")
)

// matchesSourceOnly reports whether every name that the pattern matches ends like source code or
// plain text.
func matchesSourceOnly(pattern string) bool {
	dot := strings.LastIndexByte(pattern, '.')
	if dot < 0 {
		return false
	}
	end := pattern[dot+1:]
	return codeEndings[end] || pattern[0] == '*' && textEndings[end] || end == "txt" && strings.IndexByte(".?[", pattern[0]) < 0
}

// meet reports whether a name may match both patterns, which may contain * and ?.
func meet(a, b string) bool {
	switch {
	case a == "" && b == "":
		return true
	case a != "" && a[0] == '*':
		return meet(a[1:], b) || b != "" && meet(a, b[1:])
	case b != "" && b[0] == '*':
		return meet(a, b[1:]) || a != "" && meet(a[1:], b)
	case a == "" || b == "":
		return false
	case a[0] == b[0] || a[0] == '?' || b[0] == '?':
		return meet(a[1:], b[1:])
	}
	return false
}

// Match reports whether name matches a pattern whose only special character is *.
func Match(pattern, name string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(name) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && pattern[i] == name[j]:
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}

// Pieces returns p, and the parts of p between the separators =, :, @, comma and "..". Each part
// may be a path, as in dd of=FILE, @FILE and REV:FILE..REV:FILE.
func Pieces(p string) []string {
	out := []string{p}
	if !strings.ContainsAny(p, "=:@,") {
		return out
	}
	for _, piece := range splitPieces(p) {
		out = append(out, piece)
		if before, after, ok := strings.Cut(piece, ".."); ok {
			out = append(out, before, after)
		}
	}
	return out
}

// splitPieces splits p at =, :, @ and comma, but not after a drive letter.
func splitPieces(p string) (pieces []string) {
	start := 0
	for i := 0; i <= len(p); i++ {
		if i < len(p) && strings.IndexByte("=:@,", p[i]) < 0 {
			continue
		}
		if i < len(p) && i == start+1 && p[i] == ':' && isAlnum(p[start]) && i+1 < len(p) && (p[i+1] == '/' || p[i+1] == '\\') {
			continue
		}
		if i > start {
			pieces = append(pieces, p[start:i])
		}
		start = i + 1
	}
	return pieces
}
