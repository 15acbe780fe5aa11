package inbox

import (
	"slices"

	"github.com/nodbus/nod/connectors/people"
)

func fixedWidthParts(parts []people.Part) []people.Part {
	parts = slices.Clone(parts)
	for n, part := range parts {
		p := &parts[n]
		p.Lines, p.Spans = slices.Clone(part.Lines), slices.Clone(part.Spans)
		if part.Caption {
			p.Label, p.Spans[0] = people.FixedWidthSpans(part.Label, part.Spans[0])
			continue
		}
		p.Label = people.FixedWidth(part.Label)
		for i, line := range part.Lines {
			if i < len(p.Spans) {
				p.Lines[i], p.Spans[i] = people.FixedWidthSpans(line, part.Spans[i])
			} else {
				p.Lines[i] = people.FixedWidth(line)
			}
		}
	}
	return parts
}

// rowsOf breaks a text of nod into rows. The text may quote an agent.
func rowsOf(text string, width int) []string { return people.Wrap(people.FixedWidth(text), width) }
