package agents

import (
	"strings"
	"unicode/utf8"
)

// MaxLabel is the largest length, in characters, of a short text in a request, such as SessionLabel.
const MaxLabel = 512

// Cut returns s if it has at most n characters. Otherwise it returns the beginning of s and "…", which
// together have n characters.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(strings.ToValidUTF8(s, "�"))[:n-1]) + "…"
}
