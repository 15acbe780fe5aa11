package inbox

import (
	"fmt"
	"slices"

	"github.com/charmbracelet/x/ansi"

	"github.com/nodbus/nod/connectors/people"
)

// page is a text that may be longer than the screen. It records how many rows have been visible, counted
// from the first row without a gap.
type page struct {
	id    string // the result of layoutID for the text in rows
	rows  []string
	drawn []string // the rows as they are drawn, with colours
	need  int      // the user can allow the request only after rows[:need] have been visible
	look  int      // rows[:look] contain all rows at which the user must look first
	width int
	draws bool // the terminal can draw every row completely
	fits  bool // rows[:need] were visible together at the last layout
	top   int  // the first visible row
	seen  int  // rows[:seen] have been visible
}

// setRows sets the page's rows. The user must see all of them before allowing the request. If
// they differ from the previous rows, no row counts as seen.
func (p *page) setRows(rows []string, width int) {
	if p.width == width && slices.Equal(p.rows, rows) {
		return
	}
	*p = page{rows: rows, drawn: rows, need: len(rows), width: width, draws: drawable(rows, width)}
}

// setLayout sets the page's rows with their colours. The user must see all rows up to the last essential
// row before allowing the request.
func (p *page) setLayout(layout []people.Row, width int) {
	rows, drawn, need, look := make([]string, len(layout)), make([]string, len(layout)), 0, 0
	for i, row := range layout {
		rows[i], drawn[i] = row.Text, row.Paint(people.ANSI)
		if row.Group == people.Essential {
			need = i + 1
		}
		if row.Look {
			look = i + 1
		}
	}
	p.setRows(rows, width)
	p.drawn, p.need, p.look = drawn, need, look
}

// markSeen records which rows are visible if the screen has space for height rows.
func (p *page) markSeen(height int) {
	p.fits = p.need <= height
	p.top = max(0, min(p.top, len(p.rows)-height))
	if p.top <= p.seen {
		p.seen = max(p.seen, min(len(p.rows), p.top+max(0, height)))
	}
}

// visibleRows returns the rows that are visible if the screen has space for height rows.
func (p *page) visibleRows(height int) []string {
	top := max(0, min(p.top, len(p.rows)))
	return p.drawn[top:min(len(p.rows), top+max(0, height))]
}

// fold returns the numbers of rows at the beginning and at the end of the essential rows that a page of this
// height shows if it does not scroll. If all essential rows fit, or if the page is too small, ok is false. The
// rows at which the user must look first are never folded, unless they fill the page.
func (p *page) fold(height int) (head, tail int, ok bool) {
	if p.need <= height || height < 6 {
		return 0, 0, false
	}
	tail = max(3, height/3)
	tail = min(tail, max(2, height-1-p.look))
	return height - tail - 1, tail, true
}

// foldedRows returns at most height rows, for a page that does not scroll. If the essential rows do
// not fit, one row with the number of missing rows replaces rows in the middle of the payload.
func (p *page) foldedRows(height int) []string {
	head, tail, ok := p.fold(height)
	if !ok {
		return p.visibleRows(height)
	}
	fold := fmt.Sprintf("┆ %d more rows, v shows all", p.need-head-tail)
	return slices.Concat(p.drawn[:head], []string{dim(ansi.Truncate(fold, p.width, ""))}, p.drawn[p.need-tail:p.need])
}

// allSeen reports whether every row that the user must see has been completely visible.
func (p *page) allSeen() bool { return p.draws && p.seen >= p.need }

// drawable reports whether a screen that is width columns wide can show all rows completely. A terminal
// cuts off a row that is too wide, and loses parts of a character that is wider than four cells.
func drawable(rows []string, width int) bool {
	return !slices.ContainsFunc(rows, func(row string) bool {
		return !drawableBy(ansi.DecodeSequence[string], row, width) || !drawableBy(ansi.DecodeSequenceWc[string], row, width)
	})
}

// drawableBy reports whether a terminal that is room columns wide can draw a row completely. The function
// decode measures characters, either as terminals with support for grapheme clusters do, or as terminals
// without it do.
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
