package people

import (
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

// The layout on a plain terminal. Labels of nod start in the first column, and names of input fields
// in the third. Each line of an agent's text starts with bar. If a line is broken, its other rows
// start with brokenBar.
const (
	labelWidth = 12
	bar        = "│ "
	brokenBar  = "┆ "
	minWidth   = 40
)

// Row is one row of a layout, with the styles of its pieces.
type Row struct {
	Text  string
	Spans []payload.Span
	Group Group
	Look  bool // see Part
}

// Paint returns the text of the row, after f has changed each piece with a style.
func (r Row) Paint(f func(payload.Style, string) string) string {
	var b strings.Builder
	at := 0
	for _, s := range r.Spans {
		b.WriteString(r.Text[at:s.From] + f(s.Style, r.Text[s.From:s.To]))
		at = s.To
	}
	return b.String() + r.Text[at:]
}

// Text returns all Parts of p in the layout for a plain terminal that is width columns wide. If width is
// 0, for files and for channels that break lines themselves, Text breaks no line. now is the broker's
// time.
func Text(p *schemas.Prompt, now time.Time, width int) string {
	return Layout(Parts(p, now), width)
}

// Layout arranges parts for a plain terminal that is width columns wide, or minWidth columns if width is
// smaller. If width is 0, it breaks no line. Each line ends with a line break.
func Layout(parts []Part, width int) string {
	var b strings.Builder
	for _, row := range Rows(parts, width) {
		b.WriteString(row.Text + "\n")
	}
	return b.String()
}

// Rows arranges parts as Layout does, and returns the rows with their styles.
func Rows(parts []Part, width int) []Row {
	if width > 0 {
		width = max(width, minWidth)
	}
	var l layout
	for i, part := range parts {
		apart := part.Quote && part.Label != "" || part.Field || len(part.Lines) == 0 && !part.Caption
		if i > 0 && !part.Field && !part.Caption && (apart || part.Group != parts[i-1].Group || parts[i-1].Quote || parts[i-1].Field) {
			l.add("", nil, parts[i-1].Group)
		}
		from := len(l.rows)
		l.part(part, width)
		for n := range l.rows[from:] {
			l.rows[from+n].Look = part.Look
		}
	}
	return l.rows
}

type layout struct{ rows []Row }

func (l *layout) add(text string, spans []payload.Span, g Group) {
	l.rows = append(l.rows, Row{Text: text, Spans: spans, Group: g})
}

func (l *layout) part(p Part, width int) {
	indent := ""
	if p.Field {
		indent = "  "
	}
	switch {
	case p.Quote:
		if p.Label != "" {
			l.line(p, indent, indent+brokenBar, p.Label, nil, room(width, indent+brokenBar), true)
		}
		for i, line := range p.Lines {
			l.line(p, indent+bar, indent+brokenBar, line, p.spans(i), room(width, indent+bar), false)
		}
	case p.Field:
		l.line(p, indent, indent+brokenBar, p.Label+": "+strings.Join(p.Lines, ""), nil, room(width, indent+brokenBar), true)
	case p.Caption:
		l.line(p, "", brokenBar, p.Label, p.spans(0), room(width, brokenBar), true)
	case len(p.Lines) == 0:
		l.add(p.Label, nil, p.Group)
	default:
		first := pad(p.Label, labelWidth-1) + " "
		for i, line := range p.Lines {
			l.line(p, first, pad("", labelWidth-2)+brokenBar, line, p.spans(i), room(width, first), true)
			first = pad("", labelWidth)
		}
	}
}

// spans returns the styles of the line with this index.
func (p Part) spans(i int) []payload.Span {
	if i < len(p.Spans) {
		return p.Spans[i]
	}
	return nil
}

// line adds one line of a part, broken into rows of at most width columns. The parameter first is the
// prefix of the first row, and next is the prefix of all other rows.
func (l *layout) line(p Part, first, next, text string, spans []payload.Span, width int, words bool) {
	at := 0
	for i, row := range wrap(text, width, words) {
		prefix := first
		if i > 0 {
			prefix = next
		}
		l.add(prefix+row, within(spans, at, at+len(row), len(prefix)), p.Group)
		at += len(row)
	}
}

// within returns the spans of the bytes of a text between the offsets from and to. It moves them to a row
// in which these bytes start at the offset shift.
func within(spans []payload.Span, from, to, shift int) (all []payload.Span) {
	for _, s := range spans {
		if a, b := max(s.From, from), min(s.To, to); a < b {
			all = append(all, payload.Span{From: a - from + shift, To: b - from + shift, Style: s.Style})
		}
	}
	return all
}

// room returns the number of columns that remain beside the prefix. A width of 0 means no limit, and so
// does the result 0.
func room(width int, prefix string) int {
	if width == 0 {
		return 0
	}
	return width - Cells(prefix)
}
