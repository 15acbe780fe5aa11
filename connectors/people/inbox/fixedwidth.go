package inbox

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/nodbus/nod/connectors/people"
)

// steady is text in which each character is as wide on every terminal. Those
// that terminals disagree about (clusters that some draw as one and others side
// by side) are marked by their numbers: where the screen is redrawn in part, a
// character could otherwise be left standing over another.
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

// steadyParts are parts whose texts are steady.
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

// rowsOf breaks nod's words, and what of an agent's is in them, into rows.
func rowsOf(text string, width int) []string { return people.Wrap(fixedWidth(text), width) }
