package inbox

import (
	"slices"

	"github.com/charmbracelet/x/ansi"
)

// page is text that may be longer than the screen. It tracks how many rows, from the first
// row on and without a gap, have been in view.
type page struct {
	id    string // the layoutID of the text in rows
	rows  []string
	width int
	draws bool // the terminal can draw every row in full
	fits  bool // all rows were in view at once at the last layout
	top   int  // the first row in view
	seen  int  // rows[:seen] have been in view
}

// setRows sets the page's rows. If they differ from the previous rows, all count as
// unseen.
func (p *page) setRows(rows []string, width int) {
	if p.width == width && slices.Equal(p.rows, rows) {
		return
	}
	*p = page{rows: rows, width: width, draws: drawable(rows, width)}
}

// markSeen records which rows are in view on a screen with room for height rows.
func (p *page) markSeen(height int) {
	p.fits = len(p.rows) <= height
	p.top = max(0, min(p.top, len(p.rows)-height))
	if p.top <= p.seen {
		p.seen = max(p.seen, min(len(p.rows), p.top+max(0, height)))
	}
}

// visibleRows returns the rows that are in view on a screen with room for height rows.
func (p *page) visibleRows(height int) []string {
	top := max(0, min(p.top, len(p.rows)))
	return p.rows[top:min(len(p.rows), top+max(0, height))]
}

// allSeen reports whether every row has been in view, with nothing cut off.
func (p *page) allSeen() bool { return p.draws && p.seen == len(p.rows) }

// drawable reports whether a screen of width columns shows rows in full. A terminal cuts off a
// row that is too wide, and loses parts of a character that is wider than four cells.
func drawable(rows []string, width int) bool {
	return !slices.ContainsFunc(rows, func(row string) bool {
		return !drawableBy(ansi.DecodeSequence[string], row, width) || !drawableBy(ansi.DecodeSequenceWc[string], row, width)
	})
}

// drawableBy reports whether a terminal with the given number of columns can draw row in full.
// decode measures the characters of the row. There is one such function for terminals with
// support for grapheme clusters, and one for terminals without it.
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
