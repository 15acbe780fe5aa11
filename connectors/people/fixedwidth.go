package people

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/nodbus/nod/connectors/people/payload"
)

// FixedWidth returns s with a mark in place of each character that terminals draw with different widths.
// The mark contains the character's code points. Such a character could mix old and new text when the
// screen is partly redrawn.
func FixedWidth(s string) string {
	s, _ = FixedWidthSpans(s, nil)
	return s
}

// FixedWidthSpans does the same as FixedWidth for a line with styles.
func FixedWidthSpans(s string, spans []payload.Span) (string, []payload.Span) {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return s, spans
	}
	var b strings.Builder
	moved := slices.Clone(spans)
	for at := 0; at < len(s); {
		_, width, n, _ := ansi.DecodeSequence(s[at:], 0, nil)
		char := s[at : at+n]
		move(moved, spans, at, n, b.Len())
		at += n
		if width > 0 && width == Cells(char) && width == ansi.StringWidthWc(char) {
			b.WriteString(char)
			continue
		}
		for _, r := range char {
			fmt.Fprintf(&b, "⟦U+%04X⟧", r)
		}
	}
	move(moved, spans, len(s), 1, b.Len())
	return b.String(), slices.DeleteFunc(moved, func(s payload.Span) bool { return s.From >= s.To })
}

// move updates moved, a copy of spans, for n bytes that move from the offset in from to the offset in to.
// Each offset in these bytes becomes the new offset.
func move(moved, spans []payload.Span, from, n, to int) {
	first, _ := slices.BinarySearchFunc(spans, from, func(s payload.Span, at int) int { return s.To - at })
	for i := first; i < len(spans) && spans[i].From < from+n; i++ {
		if spans[i].From >= from {
			moved[i].From = to
		}
		if spans[i].To >= from && spans[i].To < from+n {
			moved[i].To = to
		}
	}
}
