package checklist

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/payload"
)

// The size of the smallest screen on which the lists are drawn.
const (
	minWidth  = 24
	minHeight = 10
)

// scroll is the visible part of a list of rows, which may have more rows than the screen.
type scroll struct {
	rows, top, height int
	width             int
	seen              int // the number of rows from the top that have been visible, without a gap
}

// fit sets the size of the list and of its visible part.
func (s *scroll) fit(rows, width, height int) {
	if rows != s.rows || width != s.width {
		s.seen = 0
	}
	s.rows, s.width, s.height = rows, width, height
	s.top = max(0, min(s.top, rows-height))
}

// span contains the first and the last row of an item.
type span struct{ first, last int }

// keepVisible scrolls until the given rows are visible. If they are more than the screen takes, their
// first rows are visible.
func (s *scroll) keepVisible(rows span) {
	if rows.last >= s.top+s.height {
		s.top = rows.last - s.height + 1
	}
	s.top = min(s.top, rows.first)
}

func (s *scroll) markSeen() {
	if s.top <= s.seen {
		s.seen = max(s.seen, min(s.rows, s.top+s.height))
	}
}

// layOut adapts the visible part of the list after a change of the list or of the screen.
func (m *model) layOut() {
	if m.reading != nil {
		rows := len(wrapAll(m.reading.lines, m.width))
		m.reading.rows, m.reading.height = rows, 0
		m.reading.fit(rows, m.width, m.room()) // the hints about scrolling make the footer higher, so the height is computed twice
		m.reading.fit(rows, m.width, m.room())
		return
	}
	rows, spans := m.listRows()
	m.list.fit(len(rows), m.width, m.room())
	if n := m.cursors[m.at]; n == 0 {
		m.list.top = 0 // scrolls to the top, because the introduction is above the first item
	} else {
		m.list.keepVisible(spans[n])
	}
	if m.drawable() {
		m.list.markSeen()
	}
}

// room returns the number of rows between the title and the footer.
func (m *model) room() int { return max(1, m.height-1-len(m.footer())) }

func (m *model) drawable() bool { return m.width >= minWidth && m.height >= minHeight }

func (m *model) draw() string {
	if m.width == 0 {
		return ""
	}
	if !m.drawable() {
		return ansi.Truncate(fmt.Sprintf("This needs %d columns and %d rows; esc leaves.", minWidth, minHeight), m.width, "")
	}
	title, s := m.lists.Title+" · "+m.page.Title, m.list
	rows, _ := m.listRows()
	if m.reading != nil {
		title, s, rows = safe(m.reading.title), m.reading.scroll, wrapAll(m.reading.lines, m.width)
	}
	rows = rows[min(s.top, len(rows)):min(len(rows), s.top+s.height)]
	for len(rows) < s.height {
		rows = append(rows, "")
	}
	title = ansi.Truncate(" "+title, m.width, "")
	title += strings.Repeat(" ", max(0, m.width-ansi.StringWidth(title)))
	all := append([]string{ansi.NewStyle().Bold().Reverse(true).Styled(title)}, rows...)
	return strings.Join(append(all, m.footer()...), "\n")
}

// listRows returns the rows of the list, and for each item the span of its rows.
func (m *model) listRows() (rows []string, spans []span) {
	if m.page.Intro != "" {
		rows = append(indented("", m.page.Intro, m.width), "")
	}
	group := ""
	for n, i := range m.page.items {
		if i.Group != group {
			if group = i.Group; n > 0 {
				rows = append(rows, "")
			}
			rows = append(rows, boldAll(people.Wrap(safe(group), m.width))...)
		}
		cursor, paint := "  ", func(rows []string) []string { return rows }
		if n == m.cursors[m.at] {
			cursor, paint = "▸ ", boldAll
		}
		first := len(rows)
		rows = append(rows, paint(indented(cursor+m.page.box(i)+" ", safe(i.Text), m.width))...)
		for _, note := range i.Notes {
			rows = append(rows, indented("      ", safe(note), m.width)...)
		}
		spans = append(spans, span{first, len(rows) - 1})
	}
	return rows, spans
}

// indented breaks a text into rows. The first row begins with a sign, and each further row with as many
// blanks.
func indented(sign, text string, width int) []string {
	rows := people.Wrap(text, width-people.Cells(sign))
	for n := range rows {
		rows[n] = sign + strings.TrimPrefix(rows[n], " ")
		sign = strings.Repeat(" ", people.Cells(sign))
	}
	return rows
}

// wrapAll breaks lines into rows. The added and removed lines of a diff get colours.
func wrapAll(lines []string, width int) (rows []string) {
	for _, line := range lines {
		for _, row := range people.Wrap(line, width) {
			switch {
			case strings.HasPrefix(line, "+"):
				row = people.ANSI(payload.Added, row)
			case strings.HasPrefix(line, "-"):
				row = people.ANSI(payload.Removed, row)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func bold(s string) string { return ansi.NewStyle().Bold().Styled(s) }

func boldAll(rows []string) []string {
	for n := range rows {
		rows[n] = bold(rows[n])
	}
	return rows
}

// footer returns the last rows of the screen: the position in the list, the reply to the last key, and
// the keys.
func (m *model) footer() []string {
	s := m.list
	if m.reading != nil {
		s = m.reading.scroll
	}
	ruler := ""
	if s.rows > s.height {
		ruler = fmt.Sprintf("── rows %d–%d of %d ", s.top+1, min(s.rows, s.top+s.height), s.rows)
	}
	ruler = ansi.Truncate(ruler+strings.Repeat("─", m.width), m.width, "")
	rows := []string{ansi.NewStyle().Faint().Styled(ruler)}
	if m.notice != "" {
		rows = append(rows, boldAll(indented("", m.notice, m.width))...)
	}
	used := m.width
	for _, k := range m.keys() {
		size := people.Cells(k.name+" "+k.does) + 2
		if used+size > m.width+2 {
			rows, used = append(rows, ""), 0
		}
		rows[len(rows)-1] += bold(k.name) + " " + k.does + "  "
		used += size
	}
	return rows
}
