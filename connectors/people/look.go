package people

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/connectors/people/payload"
	"github.com/nodbus/nod/schemas"
)

const (
	// maxRows is the largest number of rows of a payload that the first screen of a small terminal shows.
	// The rows are lookWidth columns wide.
	maxRows   = 14
	lookWidth = 72
	maxLook   = 2*lookWidth - 4 // the largest width of a line to look at first
	// maxLooks is the largest number of lines to look at first, and maxWhys that of the reasons for them.
	maxLooks = 6
	maxWhys  = 4
)

// look is a line of a payload that a person must look at first, because it does harm by itself.
type look struct {
	number int // the line's number in its text; 0 if nod does not know the number
	text   string
	spans  []payload.Span
	why    []string
}

// size counts the rows and lines of a payload, and keeps its lines to look at first.
type size struct {
	rows, lines int
	characters  int
	texts       int  // the number of texts that have these lines
	mixed       bool // some lines are from the file that the call changes, so the numbers of the looks are not those of the lines
	looks       []look
	changed     []look // the lines that diffs remove and add, as the diffs show them
	removed     int
	added       int
	told        []string // the reasons that the headline has
	searches    []func() // find the looks; they run only for a payload that does not fit on the first screen
	unsearched  bool     // nod has not looked for harm in all lines
}

// add counts the sanitised lines of one text.
func (s *size) add(lines []string) {
	s.texts++
	s.lines += len(lines)
	for _, line := range lines {
		s.rows += max(1, (Cells(line)+lookWidth-1)/lookWidth)
		s.characters += utf8.RuneCountInString(line)
	}
}

// lookIn finds the lines to look at first in a text.
func (s *size) lookIn(text string, styles []payload.Span, kind policy.TextKind) {
	s.searches = append(s.searches, func() { s.search(text, styles, kind) })
}

func (s *size) search(text string, styles []payload.Span, kind policy.TextKind) {
	var lines []string
	var starts []int
	at := 0
	for line := range strings.Lines(text) {
		lines, starts = append(lines, strings.TrimSuffix(line, "\n")), append(starts, at)
		at += len(line)
	}
	dangers, searched := policy.Dangers(lines, kind)
	s.unsearched = s.unsearched || searched < len(lines)
	for _, d := range dangers {
		i := d.Line - 1
		s.looks = append(s.looks, newLook(d, d.Line, "", lines[i], within(styles, starts[i], starts[i]+len(lines[i]), -starts[i])))
	}
}

// lookAtAdded finds the lines to look at first among the lines that a diff adds.
func (s *size) lookAtAdded(lines []diffLine) {
	var texts []string
	var from []int
	for i, l := range lines {
		if l.Op == payload.Add && l.note == "" {
			texts, from = append(texts, strings.TrimSuffix(l.Text, "\n")), append(from, i)
		}
	}
	s.mixed = s.mixed || len(texts) < len(lines)
	s.searches = append(s.searches, func() {
		numbers := newNumbers(lines)
		dangers, searched := policy.Dangers(texts, policy.FileText)
		s.unsearched = s.unsearched || searched < len(texts)
		for _, d := range dangers {
			i := from[d.Line-1]
			s.looks = append(s.looks, newLook(d, numbers[i], "+ ", texts[d.Line-1], lines[i].Words))
		}
	})
}

// keepChanged keeps the lines that a diff changes. The slices shown and spans have the lines as the diff shows
// them.
func (s *size) keepChanged(lines []diffLine, shown []string, spans [][]payload.Span) {
	for i, l := range lines {
		switch {
		case len(s.changed) > maxLooks:
			return
		case l.note != "" && l.gone == 0, l.note == "" && l.Op == payload.Keep:
			continue
		case l.note != "":
			s.removed += l.gone
		case l.Op == payload.Remove:
			s.removed++
		default:
			s.added++
		}
		one := cut(shown[i], maxLook)
		s.changed = append(s.changed, look{text: one, spans: within(spans[i], 0, len(strings.TrimSuffix(one, cutMark)), 0)})
	}
}

// newNumbers returns the number of each added line in the text that a diff makes, or 0 if the diff does not
// tell it.
func newNumbers(lines []diffLine) []int {
	numbers := make([]int, len(lines))
	next, shift := 1, 0 // the number of the next line of the old text, and what to add for the new text
	known := !slices.ContainsFunc(lines, func(l diffLine) bool { return l.note == "" && l.Op != payload.Add && l.number == 0 })
	for i, l := range lines {
		if l.number > 0 {
			next = l.number
		}
		switch {
		case l.note != "":
			next, shift = next+l.gone, shift-l.gone
		case l.Op == payload.Add:
			if known {
				numbers[i] = next + shift
			}
			shift++
		case l.Op == payload.Remove:
			next, shift = next+1, shift-1
		default:
			next++
		}
	}
	return numbers
}

// newLook shortens a line to two rows that have the danger.
func newLook(d policy.Danger, number int, mark, line string, styles []payload.Span) look {
	start := 0
	if Cells(Line(line)) > maxLook && d.From < len(line) {
		start = d.From
	}
	text, spans := styledLine(line[start:], within(styles, start, len(line), -start))
	if start > 0 {
		mark += cutMark
	}
	if short := cut(text, maxLook-Cells(mark)); short != text {
		spans = within(spans, 0, len(strings.TrimSuffix(short, cutMark)), 0)
		text = short
	}
	return look{number, mark + text, within(spans, 0, len(text), len(mark)), d.Why}
}

// part returns the part that says how long a payload is and shows its lines to look at first, or nothing for a
// payload that the first screen shows whole.
func (s *size) part() []Part {
	if s.rows <= maxRows {
		return nil
	}
	for _, search := range s.searches {
		search()
	}
	switch {
	case len(s.looks) > 0:
		return []Part{s.lookPart(s.lookLabel(), s.looks)}
	case s.mixed && len(s.changed) > 0 && len(s.changed) <= maxLooks: // the few changes of a long diff would be lost among the lines around them
		return []Part{s.lookPart(fmt.Sprintf("Look first: the changes in these %d lines (%d removed, %d added)", s.lines, s.removed, s.added), s.changed)}
	}
	return []Part{{Label: "Length", Lines: []string{s.count() + "; read to the end"}, Look: true}}
}

// lookPart returns the part that shows the first of the lines to look at first.
func (s *size) lookPart(label string, looks []look) Part {
	part := Part{Label: label, Quote: true, Look: true}
	width := 0
	for _, l := range looks {
		width = max(width, len(fmt.Sprint(l.number)))
	}
	for _, l := range looks[:min(len(looks), maxLooks)] {
		prefix := ""
		if l.number > 0 {
			prefix = fmt.Sprintf("%*d ", width, l.number)
		}
		part.Lines = append(part.Lines, prefix+l.text)
		part.Spans = append(part.Spans, slices.Concat(within([]payload.Span{{From: 0, To: len(prefix), Style: payload.Faint}}, 0, len(prefix), 0), within(l.spans, 0, len(l.text), len(prefix))))
	}
	if rest := looks[min(len(looks), maxLooks):]; len(rest) > 0 {
		text := strings.TrimSpace(more(len(rest)))
		if numbers := s.linesOf(rest); numbers != "" {
			text += ": " + numbers
		}
		part.note(text)
	}
	if s.unsearched {
		part.note("nod did not look at all lines")
	}
	return part
}

// note appends a note of nod to a quotation.
func (p *Part) note(text string) {
	text = "⟦" + text + "⟧"
	p.Lines = append(p.Lines, text)
	p.Spans = append(p.Spans, []payload.Span{{From: 0, To: len(text), Style: payload.Mark}})
}

func (s *size) count() string {
	if s.lines < maxRows {
		return fmt.Sprintf("%s, %d characters", schemas.Count(s.lines, "line"), s.characters)
	}
	return fmt.Sprintf("%d lines", s.lines)
}

const planned = "plans to "

// lookLabel returns the heading of the lines to look at first, such as "Look first: lines 19–21 of 24 are
// dangerous (sends data, deletes files)". It leaves out the reasons that the headline has.
func (s *size) lookLabel() string {
	var whys []string
	for _, l := range s.looks {
		for _, why := range l.why {
			if !slices.Contains(whys, why) && !slices.Contains(s.told, why) {
				whys = append(whys, why)
			}
		}
	}
	for i, why := range whys {
		whys[i] = cut(Line(why), maxObject)
		if i > 0 && strings.HasPrefix(whys[0], planned) {
			whys[i] = strings.TrimPrefix(whys[i], planned)
		}
	}
	if len(whys) > maxWhys {
		whys = append(whys[:maxWhys:maxWhys], "…")
	}
	what := fmt.Sprintf("%d of %s", len(s.looks), schemas.Count(s.lines, "line"))
	if numbers := s.linesOf(s.looks); numbers != "" {
		what = fmt.Sprintf("%s of %d", numbers, s.lines)
	}
	if len(s.looks) == 1 {
		what += " is dangerous"
	} else {
		what += " are dangerous"
	}
	if len(whys) > 0 {
		what += " (" + strings.Join(whys, ", ") + ")"
	}
	return "Look first: " + what
}

// maxRanges is the largest number of ranges of lines that a text names.
const maxRanges = 6

// linesOf returns the numbers of the lines, as "lines 3, 19–21". It returns "" if the payload has several
// texts or if nod does not know the numbers.
func (s *size) linesOf(looks []look) string {
	if s.texts != 1 || s.mixed || slices.ContainsFunc(looks, func(l look) bool { return l.number == 0 }) {
		return ""
	}
	var ranges []string
	for i := 0; i < len(looks); {
		last := i
		for last+1 < len(looks) && looks[last+1].number == looks[last].number+1 {
			last++
		}
		one := fmt.Sprint(looks[i].number)
		if last > i {
			one += fmt.Sprintf("–%d", looks[last].number)
		}
		ranges, i = append(ranges, one), last+1
	}
	if len(ranges) > maxRanges {
		ranges = append(ranges[:maxRanges:maxRanges], "…")
	}
	word := "lines "
	if len(looks) == 1 {
		word = "line "
	}
	return word + strings.Join(ranges, ", ")
}
