package people

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nodbus/nod/connectors/people/payload"
)

// diffLine is a line of a diff, or a note of nod between two lines.
type diffLine struct {
	payload.Line
	number int    // the line's number in the file on disk; 0 if the line is added, or if nod does not know the number
	note   string // a note of nod in place of lines; empty for a line
	gone   int    // the number of removed lines that the note replaces
}

// fileDiff is a diff with a label that says what the call is compared with. The label is empty if
// nod has not read the file.
type fileDiff struct {
	label  string
	lines  []diffLine
	places int    // if the diff shows only some of several equal changes, their number
	whole  string // the whole new text, if lines leaves out a part of it
}

const asAsked = "against the file on disk, as it was when asked"

func unnumbered(lines []payload.Line) []diffLine {
	all := make([]diffLine, len(lines))
	for i, l := range lines {
		all[i].Line = l
	}
	return all
}

// numbered sets the numbers of a diff's lines. The parameter number is that of the first line. Added
// lines are not in the file and get no number.
func numbered(lines []payload.Line, number int) []diffLine {
	all := unnumbered(lines)
	for i, l := range lines {
		if l.Op != payload.Add {
			all[i].number = number
			number++
		}
	}
	return all
}

// editOnDisk compares the old and the new text of edit n of a call; edits is the number of the call's
// edits. The diff shows both texts whole, with the lines around them that nod has read.
func (a *action) editOnDisk(n, edits int, before, after string) fileDiff {
	alone := fileDiff{lines: unnumbered(payload.Diff(before, after))}
	d := a.onDisk
	switch {
	case d == nil:
		return alone
	case d.New && before == "" && edits == 1:
		return fileDiff{label: "A new file: there was none when asked", lines: alone.lines}
	case d.Note != "":
		return notCompared(d.Note, alone)
	case len(d.Edits) != edits:
		return alone
	}
	e := d.Edits[n]
	if e.Note != "" || len(e.Hunks) == 0 {
		return notCompared(orElse(e.Note, "nod cannot tell its place"), alone)
	}
	out := fileDiff{label: sentence(asAsked)}
	if n > 0 {
		out.label = "Against the file as the edits above leave it"
	}
	places := 0
	for i, h := range e.Hunks {
		if len(h.Around) < 2 || h.Line < 1 {
			return alone
		}
		places += len(h.Around) - 1
		if i > 0 {
			out.lines = append(out.lines, diffLine{note: "…"})
		}
		out.lines = append(out.lines, numbered(payload.Diff(strings.Join(h.Around, before), strings.Join(h.Around, after)), h.Line)...)
	}
	if e.Count > 1 {
		out.label += fmt.Sprintf("; the old text occurs %d times, all are replaced", e.Count)
	}
	if e.Count > places {
		out.places = e.Count
		out.lines = append(out.lines, diffLine{note: fmt.Sprintf("the same in %d more places", e.Count-places)})
	}
	return out
}

func notCompared(why string, alone fileDiff) fileDiff {
	return fileDiff{label: "Not compared with the file on disk: " + Line(why), lines: alone.lines}
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// textOnDisk compares a text with the file that it replaces, or with the cell of a notebook that it
// replaces. The diff may leave out lines that the file already has (see foldable). The result then
// contains the whole text too, because the file may change before a person answers.
func (a *action) textOnDisk(text string, cell bool) fileDiff {
	alone := fileDiff{lines: unnumbered(payload.Diff("", text))}
	d := a.onDisk
	switch {
	case d == nil:
		return alone
	case d.New:
		return fileDiff{label: "A new file: there was none when asked", lines: alone.lines}
	case d.Note != "":
		return notCompared(d.Note, alone)
	case d.Cell != cell || d.Edits != nil:
		return alone
	}
	what := asAsked
	if cell {
		what = "against the cell on disk, as it was when asked"
	}
	if len(d.Changes) == 0 {
		lines := payload.Kept(text)
		if len(lines) != d.Lines {
			return alone
		}
		return fileDiff{label: sentence(what) + ": the text is the same", lines: numbered(lines, 1)}
	}
	lines, ok := a.replacedLines(text)
	if !ok {
		return alone
	}
	out := fileDiff{label: sentence(what), lines: folded(lines)}
	if len(out.lines) < len(lines) {
		out.whole = text
	}
	return out
}

// replacedLines returns the lines of a text that replaces a file, with the file's removed lines between
// them. ok is false if what nod has read of the file does not fit the text.
func (a *action) replacedLines(text string) (all []diffLine, ok bool) {
	after := slices.Collect(strings.Lines(text))
	at, number := 0, 1 // the next line of the text, and the number of the next line of the file
	keep := func(n int) bool {
		if n < 0 || n > len(after)-at {
			return false
		}
		all = append(all, numbered(payload.Kept(strings.Join(after[at:at+n], "")), number)...)
		at, number = at+n, number+n
		return true
	}
	for _, c := range a.onDisk.Changes {
		if !keep(c.Line-number) || c.Added < 0 || c.Added > len(after)-at || c.More < 0 {
			return nil, false
		}
		lines := numbered(payload.Replace(c.Removed, strings.Join(after[at:at+c.Added], "")), number)
		removed := len(lines) - c.Added
		all = append(all, lines[:removed]...)
		if c.More > 0 {
			all = append(all, diffLine{note: fmt.Sprintf("%d more lines are removed, from line %d on", c.More, number+removed), gone: c.More})
		}
		all = append(all, lines[removed:]...)
		at, number = at+c.Added, number+removed+c.More
	}
	return all, keep(a.onDisk.Lines+1-number) && at == len(after)
}

const (
	contextLines = 3
	minFolded    = 2 // the smallest number of lines that a note replaces
)

// folded puts notes in place of kept lines that are more than contextLines away from a change.
func folded(lines []diffLine) (all []diffLine) {
	near := make([]bool, len(lines))
	for i := range lines {
		if lines[i].Op != payload.Keep || lines[i].note != "" {
			for n := max(0, i-contextLines); n <= min(len(lines)-1, i+contextLines); n++ {
				near[n] = true
			}
		}
	}
	for i := 0; i < len(lines); {
		to := i
		for to < len(lines) && !near[to] && foldable(lines[to].Text) {
			to++
		}
		switch n := to - i; {
		case n >= minFolded:
			all = append(all, diffLine{note: fmt.Sprintf("lines %d to %d are the same as on disk", lines[i].number, lines[to-1].number)})
		default:
			to = max(to, i+1)
			all = append(all, lines[i:to]...)
		}
		i = to
	}
	return all
}

// foldable reports whether a diff may leave out a line. It may do so if, apart from blanks at its end,
// the line contains nothing that nod shows as a ⟦…⟧ mark.
func foldable(text string) bool {
	return !strings.Contains(Line(strings.TrimRight(text, " \t\r\n")), "⟦")
}

// noBreak marks the last line of a text without a final line break. A diff shows this mark if exactly one
// of its two texts ends with a line break.
const noBreak = "⟦no line break⟧"

// diff appends a line with the file's name and the counts of added and removed lines. If the diff shows
// only some of several equal changes, the line contains the number of changes instead. The lines of the
// diff follow, and then the whole new text if the diff leaves out a part of it.
func (a *action) diff(verb, file string, d fileDiff) {
	extent := counts(changedLines(d.lines))
	if d.places > 0 {
		extent = fmt.Sprintf("in %d places", d.places)
	}
	a.head(strings.TrimSpace(verb+" "+extent), file, fileName(file))
	part := Part{Label: d.label, Quote: true}
	part.Lines, part.Spans = diffLines(d.lines)
	a.size.add(part.Lines)
	a.size.lookAtAdded(d.lines)
	a.size.keepChanged(d.lines, part.Lines, part.Spans)
	a.parts = append(a.parts, part)
	if d.whole != "" {
		lines, spans := quotation(d.whole, nil)
		a.parts = append(a.parts, Part{Label: "Whole text", Quote: true, Lines: lines, Spans: spans})
	}
}

func changedLines(lines []diffLine) (added, removed int) {
	for _, l := range lines {
		switch {
		case l.note != "":
			removed += l.gone
		case l.Op == payload.Add:
			added++
		case l.Op == payload.Remove:
			removed++
		}
	}
	return added, removed
}

// diffLines returns the lines of a diff and their styles. Before each line is its number, if any line has
// one, and "+ ", "- " or two spaces.
func diffLines(lines []diffLine) (shownLines []string, spans [][]payload.Span) {
	uneven := lastBreak(lines, payload.Add)*lastBreak(lines, payload.Remove) < 0
	width := 0
	for _, l := range lines {
		if l.number > 0 {
			width = max(width, len(strconv.Itoa(l.number))+1)
		}
	}
	for _, l := range lines {
		if l.note != "" {
			note := strings.Repeat(" ", width) + "⟦" + l.note + "⟧"
			shownLines = append(shownLines, note)
			spans = append(spans, []payload.Span{{From: width, To: len(note), Style: payload.Mark}})
			continue
		}
		text, whole := strings.CutSuffix(l.Text, "\n")
		shown, words := styledLine(text, l.Words)
		if !whole && uneven {
			shown += noBreak
		}
		mark := strings.Repeat(" ", width)
		if l.number > 0 {
			mark = fmt.Sprintf("%*d ", width-1, l.number)
		}
		mark += string(l.Op) + " "
		shownLines = append(shownLines, mark+shown)
		spans = append(spans, overlay(map[payload.Op]payload.Style{payload.Add: payload.Added, payload.Remove: payload.Removed}[l.Op], len(mark), len(mark+shown), words))
	}
	return shownLines, spans
}

// lastBreak examines the end of the old or the new text of a diff. The parameter other is the operation
// of the lines that only the other of the two texts has. It returns 1 if the text ends with a line break,
// -1 if it does not, and 0 if it is empty.
func lastBreak(lines []diffLine, other payload.Op) int {
	for _, l := range slices.Backward(lines) {
		switch {
		case l.Op == other || l.note != "":
		case strings.HasSuffix(l.Text, "\n"):
			return 1
		default:
			return -1
		}
	}
	return 0
}
