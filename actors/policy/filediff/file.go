package filediff

import (
	"sort"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/nodbus/nod/schemas/redact"
)

// file is a text, split into lines.
type file struct {
	text   string
	lines  []string // each line ends with its line break
	starts []int
	// If scanned[i] is true, the line i was searched for secrets. If clean[i] is true too, the line has none.
	scanned, clean []bool
}

// place is the part text[from:to] of a file. It begins in the line first and ends in the line last.
type place struct{ from, to, first, last int }

func newFile(text string) *file {
	n := CountLines(text)
	f := &file{text: text, lines: make([]string, 0, n), starts: make([]int, 0, n), scanned: make([]bool, n), clean: make([]bool, n)}
	at := 0
	for line := range strings.Lines(text) {
		f.lines, f.starts = append(f.lines, line), append(f.starts, at)
		at += len(line)
	}
	return f
}

func (f *file) start(line int) int { return f.starts[line] }

func (f *file) end(line int) int { return f.starts[line] + len(f.lines[line]) }

// lineAt returns the number of the line with the byte at the offset. For the end of the text it
// returns the number of lines.
func (f *file) lineAt(offset int) int {
	if offset >= len(f.text) {
		return len(f.lines)
	}
	return sort.Search(len(f.starts), func(i int) bool { return f.starts[i] > offset }) - 1
}

func (f *file) place(from, to int) place {
	last := max(0, len(f.lines)-1)
	return place{from, to, min(f.lineAt(from), last), min(f.lineAt(max(from, to-1)), last)}
}

// places returns the first maxPlaces places where the file contains a text. The text must not be empty.
func (f *file) places(old string) (all []place) {
	for at := 0; len(all) < maxPlaces; {
		i := strings.Index(f.text[at:], old)
		if i < 0 {
			return all
		}
		all = append(all, f.place(at+i, at+i+len(old)))
		at += i + len(old)
	}
	return all
}

// shows reports whether a result may show the line as context.
func (f *file) shows(line int) bool { return f.clean[line] && len(f.lines[line]) <= maxContext }

// scan searches the lines around the places for secrets. It searches at most maxScanned bytes for
// all texts of a Comparison together.
func (c *Comparison) scan(f *file, places []place) {
	for i := 0; i < len(places); {
		from, to := max(0, places[i].first-scanLines), places[i].last+scanLines+1
		for i++; i < len(places) && places[i].first-scanLines <= to; i++ {
			to = places[i].last + scanLines + 1
		}
		for to = min(to, len(f.lines)); to > from && c.scanned+f.size(from, to) > maxScanned; {
			to, c.blurred = from+(to-from)/2, true
		}
		c.scanned += f.size(from, to)
		c.scanLines(f, from, to)
	}
}

func (f *file) size(from, to int) int {
	if from >= to {
		return 0
	}
	return f.end(to-1) - f.start(from)
}

func (c *Comparison) scanLines(f *file, from, to int) {
	if from >= to {
		return
	}
	text := f.text[f.start(from):f.end(to-1)]
	for i := from; i < to; i++ {
		f.scanned[i], f.clean[i] = true, !c.exposed[f.lines[i]]
	}
	redacted, n := redact.Redactor{}.Text(text) // leave out the rule for commands that write a secret file, because this rule hides all later text
	if n == 0 {
		return
	}
	for _, e := range udiff.Lines(text, redacted) {
		p := f.place(f.start(from)+e.Start, f.start(from)+e.End)
		for i := p.first; i <= p.last; i++ {
			f.clean[i], c.exposed[f.lines[i]] = false, true
		}
	}
}
