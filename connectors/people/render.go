package people

import (
	"strings"
	"time"

	"github.com/nodbus/nod/schemas"
)

// The layout on a plain terminal. Nod's own words start in the first column, and names of
// input fields in the third. Each line of the agent's text starts with bar. If a line is
// broken to fit, its further rows start with brokenBar.
const (
	labelWidth = 12
	bar        = "│ "
	brokenBar  = "┆ "
	minWidth   = 40
)

// Text returns all Parts of p, laid out for a plain terminal of width columns. If width
// is 0, no line is broken; this suits files, and channels that break lines themselves.
// now is the broker's time.
func Text(p *schemas.Prompt, now time.Time, width int) string {
	return Layout(Parts(p, now), width)
}

// Layout lays parts out for a plain terminal of width columns, or of minWidth columns if
// width is less. If width is 0, no line is broken. Each line ends in a line break.
func Layout(parts []Part, width int) string {
	if width > 0 {
		width = max(width, minWidth)
	}
	var b strings.Builder
	for i, part := range parts {
		quoted := part.Quote || part.Field || len(part.Lines) == 0
		if i > 0 && !part.Field && (quoted || parts[i-1].Quote || parts[i-1].Field) {
			b.WriteByte('\n')
		}
		part.write(&b, width)
	}
	return b.String()
}

func (p Part) write(b *strings.Builder, width int) {
	indent := ""
	if p.Field {
		indent = "  "
	}
	switch {
	case p.Quote:
		writeRows(b, indent, indent+brokenBar, wrap(p.Label, room(width, indent+brokenBar), true))
		for _, line := range p.Lines {
			writeRows(b, indent+bar, indent+brokenBar, wrap(line, room(width, indent+bar), false))
		}
	case p.Field:
		line := p.Label + ": " + strings.Join(p.Lines, "")
		writeRows(b, indent, indent+brokenBar, wrap(line, room(width, indent+brokenBar), true))
	case len(p.Lines) == 0:
		b.WriteString(p.Label + "\n")
	default:
		first := pad(p.Label, labelWidth)
		for _, line := range p.Lines {
			writeRows(b, first, pad("", labelWidth-2)+brokenBar, wrap(line, room(width, first), true))
			first = pad("", labelWidth)
		}
	}
}

// room returns the number of columns that prefix leaves free. 0 means no limit.
func room(width int, prefix string) int {
	if width == 0 {
		return 0
	}
	return width - Cells(prefix)
}

// writeRows writes the rows. The string first is the prefix of the first row, next that of the
// others.
func writeRows(b *strings.Builder, first, next string, rows []string) {
	for i, row := range rows {
		if i > 0 {
			first = next
		}
		b.WriteString(first + row + "\n")
	}
}
