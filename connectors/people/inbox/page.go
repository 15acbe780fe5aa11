package inbox

import (
	"fmt"
	"slices"

	"github.com/charmbracelet/x/ansi"

	"github.com/nodbus/nod/connectors/people"
)

// page is text that may be longer than the screen. It tracks how many rows, from the first
// row on and without a gap, have been in view.
type page struct {
	id    string // the layoutID of the text in rows
	rows  []string
	drawn []string // the rows with their colours
	need  int      // rows[:need] must have been in view before the request can be allowed
	width int
	draws bool // the terminal can draw every row in full
	fits  bool // rows[:need] were in view at once at the last layout
	top   int  // the first row in view
	seen  int  // rows[:seen] have been in view
}

// setRows sets the page's rows, all of which must be seen. If they differ from the previous
// rows, all count as unseen.
func (p *page) setRows(rows []string, width int) {
	if p.width == width && slices.Equal(p.rows, rows) {
		return
	}
	*p = page{rows: rows, drawn: rows, need: len(rows), width: width, draws: drawable(rows, width)}
}

// setLayout sets the page's rows and their colours. The essential rows must be seen.
func (p *page) setLayout(layout []people.Row, width int) {
	rows, drawn, need := make([]string, len(layout)), make([]string, len(layout)), 0
	for i, row := range layout {
		rows[i], drawn[i] = row.Text, row.Paint(people.ANSI)
		if row.Group == people.Essential {
			need = i + 1
		}
	}
	p.setRows(rows, width)
	p.drawn, p.need = drawn, need
}

// markSeen records which rows are in view on a screen with room for height rows.
func (p *page) markSeen(height int) {
	p.fits = p.need <= height
	p.top = max(0, min(p.top, len(p.rows)-height))
	if p.top <= p.seen {
		p.seen = max(p.seen, min(len(p.rows), p.top+max(0, height)))
	}
}

// visibleRows returns the rows that are in view on a screen with room for height rows.
func (p *page) visibleRows(height int) []string {
	top := max(0, min(p.top, len(p.rows)))
	return p.drawn[top:min(len(p.rows), top+max(0, height))]
}

// foldedRows returns the rows for a screen with room for height rows, on which the page does
// not scroll. If the essential rows do not fit, the middle is left out: the beginning and the
// end of the payload stay, and a row between them says how many are missing.
func (p *page) foldedRows(height int) []string {
	if p.need <= height || height < 6 {
		return p.visibleRows(height)
	}
	tail := max(3, height/3)
	head := height - tail - 1
	fold := fmt.Sprintf("┆ %d more rows, v shows all", p.need-head-tail)
	return slices.Concat(p.drawn[:head], []string{dim(ansi.Truncate(fold, p.width, ""))}, p.drawn[p.need-tail:p.need])
}

// allSeen reports whether every row that must be seen has been in view, with nothing cut off.
func (p *page) allSeen() bool { return p.draws && p.seen >= p.need }

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
