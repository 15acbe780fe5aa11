package inbox

import (
	"slices"

	"github.com/charmbracelet/x/ansi"
)

// page is text that may be longer than the screen. It knows how much of it has
// been in view without a gap.
type page struct {
	id    string // equal for as long as the text is
	rows  []string
	width int
	draws bool // the terminal's cells can hold every row
	fits  bool // all of it was in view at once when it was last looked at
	top   int  // the first row in view
	seen  int  // rows[:seen] have been in view
}

// set gives the page its rows. Where they differ from what it had, all is
// unseen.
func (p *page) setRows(rows []string, width int) {
	if p.width == width && slices.Equal(p.rows, rows) {
		return
	}
	*p = page{rows: rows, width: width, draws: drawable(rows, width)}
}

// look notes what a body of height rows shows.
func (p *page) markSeen(height int) {
	p.fits = len(p.rows) <= height
	p.top = max(0, min(p.top, len(p.rows)-height))
	if p.top <= p.seen {
		p.seen = max(p.seen, min(len(p.rows), p.top+max(0, height)))
	}
}

// view is what a body of height rows shows.
func (p *page) visibleRows(height int) []string {
	top := max(0, min(p.top, len(p.rows)))
	return p.rows[top:min(len(p.rows), top+max(0, height))]
}

// whole reports whether every row has been in view, with nothing cut off.
func (p *page) allSeen() bool { return p.draws && p.seen == len(p.rows) }

// drawable reports whether a screen of width columns shows all of rows: what
// is wider than its row is cut off, and characters that melt into one of more
// than four cells are lost.
func drawable(rows []string, width int) bool {
	return !slices.ContainsFunc(rows, func(row string) bool {
		return !drawableBy(ansi.DecodeSequence[string], row, width) || !drawableBy(ansi.DecodeSequenceWc[string], row, width)
	})
}

// drawableBy measures as terminals do that know clusters of characters, or as
// those that do not.
func drawableBy(decode func(string, byte, *ansi.Parser) (string, int, int, byte), row string, room int) bool {
	var state byte
	for row != "" {
		_, width, n, next := decode(row, state, nil)
		if room -= width; width < 1 || width > 4 || room < 0 {
			return false
		}
		row, state = row[n:], next
	}
	return true
}
