package inbox

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/nodbus/nod/connectors/people"
)

// fixedWidth replaces each character that could have another width on another terminal by its
// code points, for example a cluster that some terminals draw as one character and others as
// several. Otherwise a partial redraw could mix old and new characters on the screen.
func fixedWidth(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return s
	}
	var b strings.Builder
	for s != "" {
		_, width, n, _ := ansi.DecodeSequence(s, 0, nil)
		char := s[:n]
		if width > 0 && width == people.Cells(char) && width == ansi.StringWidthWc(char) {
			b.WriteString(char)
		} else {
			for _, r := range char {
				fmt.Fprintf(&b, "⟦U+%04X⟧", r)
			}
		}
		s = s[n:]
	}
	return b.String()
}

// fixedWidthParts applies fixedWidth to all texts of parts.
func fixedWidthParts(parts []people.Part) []people.Part {
	parts = slices.Clone(parts)
	for n, part := range parts {
		parts[n].Label = fixedWidth(part.Label)
		parts[n].Lines = slices.Clone(part.Lines)
		for i, line := range part.Lines {
			parts[n].Lines[i] = fixedWidth(line)
		}
	}
	return parts
}

// rowsOf breaks one of nod's own texts, which may quote an agent, into rows.
func rowsOf(text string, width int) []string { return people.Wrap(fixedWidth(text), width) }
