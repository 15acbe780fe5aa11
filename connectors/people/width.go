package people

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// cutMark is the end of a shortened text. A text sanitised by Line cannot contain it.
const cutMark = "⟦…⟧"

// Cells returns the number of terminal columns that s needs. Terminals draw character clusters with
// different widths. Cells returns the largest width, because a row that is too wide would continue on
// another row.
func Cells(s string) int {
	n := 0
	for _, r := range s {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	if r < utf8.RuneSelf {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// UTF16 returns the length of s in UTF-16 units, the unit of Telegram's limits.
func UTF16(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// Fits reports whether the length of text is at most limit. The function measure returns a length in the
// unit of the channel, such as UTF16 or utf8.RuneCountInString. If the text does not fit, the channel
// must not offer to allow the request. The channel may offer to deny the request, and to show it
// elsewhere.
func Fits(text string, limit int, measure func(string) int) bool {
	return measure(text) <= limit
}

// atom returns the beginning of s that must not be split over two rows: a ⟦…⟧ mark, or a character
// with its combining marks.
func atom(s string) string {
	if strings.HasPrefix(s, "⟦") {
		if before, _, ok := strings.Cut(s, "⟧"); ok {
			return s[:len(before)+len("⟧")]
		}
	}
	for i, r := range s {
		if i > 0 && !unicode.IsMark(r) {
			return s[:i]
		}
	}
	return s
}

// Wrap breaks a line into rows of at most width columns, between words if possible. The rows contain
// the whole text.
func Wrap(s string, width int) []string { return wrap(s, width, true) }

// wrap breaks s into rows of at most width columns that contain the whole text. If the parameter words is
// true, wrap breaks between words if possible. Otherwise s is a payload, and a row ends at a space or at a
// separator, such as the / of a path, only if it is at least half full. wrap never splits a ⟦…⟧ mark. A space
// at a break becomes the first character of the next row, because it would be invisible at the end of a row.
// If width is 0, wrap does not break s.
func wrap(s string, width int, words bool) []string {
	if width <= 0 || Cells(s) <= width {
		return []string{s}
	}
	var rows []string
	start, used := 0, 0
	var at breaks
	for i := 0; i < len(s); {
		a := atom(s[i:])
		for used+Cells(a) > width && i > start {
			end := at.best(s, start, i, width, words)
			if kept := strings.TrimRight(s[start:end], " "); kept != "" {
				end = start + len(kept)
			}
			rows = append(rows, s[start:end])
			start, used = end, Cells(s[end:i])
		}
		at.note(s, i, a)
		i += len(a)
		used += Cells(a)
	}
	return append(rows, s[start:])
}

// breaks has the latest offsets of a text at which a row can end well.
type breaks struct{ space, strong, weak int }

// The separators after which a row can end. A weak separator counts only between letters or digits, where it
// is not the beginning of a flag or of a file name.
const (
	strongSeparators = "/\\,;|&?(["
	weakSeparators   = "-_.=:@+"
)

// note remembers the atom a of s, at the offset i, if a row can end before or after it.
func (b *breaks) note(s string, i int, a string) {
	after := i + len(a)
	switch {
	case a == " ":
		b.space = i
	case len(a) > 1 || after == len(s) || s[after] == a[0] || strings.HasSuffix(s[:after], "://"): // "&&", and a scheme with its host, stay whole
	case strings.Contains(strongSeparators, a) && (i == 0 || !strings.Contains(" ([{'\"", s[i-1:i])): // not after the first / of a path
		b.strong = after
	case strings.Contains(weakSeparators, a) && i > 0 && isPlain(s[i-1]) && isPlain(s[after]):
		b.weak = after
	}
}

func isPlain(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' }

// best returns the offset at which the row that begins at start ends, at most end.
func (b *breaks) best(s string, start, end, width int, words bool) int {
	switch {
	case s[end] == ' ':
		return end
	case words && b.space > start:
		return b.space
	}
	for _, at := range []int{b.space, b.strong, b.weak} {
		if at > start && at <= end && 2*Cells(s[start:at]) >= width {
			return at
		}
	}
	return end
}

// cut shortens s to at most width columns. If it removes text, the result ends with cutMark.
func cut(s string, width int) string {
	if Cells(s) <= width {
		return s
	}
	room, i := width-Cells(cutMark), 0
	for {
		a := atom(s[i:])
		if room -= Cells(a); room < 0 {
			return s[:i] + cutMark
		}
		i += len(a)
	}
}

// Shorten sanitises a text as Line does, and shortens it to at most width columns.
func Shorten(s string, width int) string { return cut(Line(s), width) }

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-Cells(s)))
}
