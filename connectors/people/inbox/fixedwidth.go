package inbox

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/payload"
)

// fixedWidth shows a character by its code points if the character's width differs between terminals.
// An example is a cluster that some terminals draw as one character and others as several. With such
// characters, a partial redraw could mix old and new text on the screen.
func fixedWidth(s string) string {
	s, _ = fixedWidthSpans(s, nil)
	return s
}

// fixedWidthSpans is fixedWidth for a line with styles.
func fixedWidthSpans(s string, spans []payload.Span) (string, []payload.Span) {
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
		if width > 0 && width == people.Cells(char) && width == ansi.StringWidthWc(char) {
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

// move moves offsets in moved, a copy of spans. It replaces each offset of one of the n bytes
// from the offset from by the offset to.
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

func fixedWidthParts(parts []people.Part) []people.Part {
	parts = slices.Clone(parts)
	for n, part := range parts {
		p := &parts[n]
		p.Lines, p.Spans = slices.Clone(part.Lines), slices.Clone(part.Spans)
		if part.Caption {
			p.Label, p.Spans[0] = fixedWidthSpans(part.Label, part.Spans[0])
			continue
		}
		p.Label = fixedWidth(part.Label)
		for i, line := range part.Lines {
			if i < len(p.Spans) {
				p.Lines[i], p.Spans[i] = fixedWidthSpans(line, part.Spans[i])
			} else {
				p.Lines[i] = fixedWidth(line)
			}
		}
	}
	return parts
}

// rowsOf breaks a text of nod into rows. The text may quote an agent.
func rowsOf(text string, width int) []string { return people.Wrap(fixedWidth(text), width) }
