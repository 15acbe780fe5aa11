package inbox

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// frame divides the rows of the screen among the title, the list, the body and the footer.
type frame struct {
	list         []string
	body, footer int // the numbers of rows of the body and of the footer
}

// frame returns the division of the screen. It must not call allowBarrier, because allowBarrier
// depends on the visible rows and these depend on the frame.
func (m *model) frame() frame {
	f := frame{footer: len(m.footer(""))}
	room := m.height - 2 - f.footer // the title and the line above the body take 2 rows
	if m.top().kind == browse {
		f.list = m.listRows(room)
	}
	f.body = room - len(f.list)
	return f
}

// View draws the screen.
func (m *model) View() tea.View {
	view := tea.NewView(m.draw())
	view.AltScreen, view.ReportFocus = true, true
	view.KeyboardEnhancements.ReportEventTypes = true // the program needs event types to recognize keys that are held down
	view.WindowTitle = fmt.Sprintf("nod inbox (%d)", m.requests.countOpen())
	return view
}

func (m *model) draw() string {
	f := m.frame()
	if m.width < minWidth || m.height < minHeight || f.body < 1 {
		return ansi.Truncate(fmt.Sprintf("nod inbox: %d waiting", m.requests.countOpen()), m.width, "") + "\n" +
			ansi.Truncate(fmt.Sprintf("This needs %d columns and %d rows.", minWidth, max(minHeight, m.height+1-f.body)), m.width, "")
	}
	rows := append([]string{m.title()}, f.list...)
	rows = append(rows, m.topRule(f.body))
	body := m.textView().page.visibleRows(f.body)
	if m.textView().kind == browse {
		body = m.textView().page.foldedRows(f.body)
	}
	if m.requests.current() == nil && len(m.views) == 1 {
		body = []string{"", m.idle()}
	}
	rows = append(rows, body...)
	for len(rows) < m.height-f.footer {
		rows = append(rows, "")
	}
	foot := m.footer(m.allowBarrier())
	foot[0] = ruler(&m.textView().page, f.body, m.width)
	return strings.Join(append(rows, foot...), "\n")
}

// topRule returns the line above the body. If the body folds a request, the line says so.
func (m *model) topRule(body int) string {
	text := ""
	if v := m.textView(); v.kind == browse {
		if head, tail, ok := v.page.fold(body); ok {
			text = fmt.Sprintf("── %d of %d rows are shown: v shows all ", head+tail, v.page.need)
		}
	}
	return dim(ansi.Truncate(text+strings.Repeat("─", max(0, m.width-people.Cells(text))), m.width, ""))
}

func (m *model) idle() string {
	if !m.reached {
		return "Loading the pending requests …"
	}
	return "Nothing waits for an answer."
}

func bold(s string) string { return ansi.NewStyle().Bold().Styled(s) }
func dim(s string) string  { return ansi.NewStyle().Faint().Styled(s) }

// title returns the first row of the screen, which names the content of the open view.
func (m *model) title() string {
	left := fmt.Sprintf(" nod inbox · %d waiting", m.requests.countOpen())
	v := m.textView()
	items := m.itemsOf(v)
	switch {
	case v.kind == standingView:
		left = m.standingTitle()
	case len(items) == 0:
	case v.kind == full:
		left = " In full: " + people.Line(items[0].PendingID)
	case v.kind == exact:
		left = " Exactly as sent: " + people.Line(items[0].PendingID)
	case v.kind == batch:
		left = fmt.Sprintf(" %d that want the same", len(items))
	case v.kind == choose:
		left = fmt.Sprintf(" Beyond this call · %d of %d", v.choice+1, len(choices(&items[0].Prompt)))
	}
	if n := m.width - ansi.StringWidth(left); n > 0 {
		left += strings.Repeat(" ", n)
	}
	return ansi.NewStyle().Bold().Reverse(true).Styled(ansi.Truncate(left, m.width, ""))
}

// listRows returns the rows of the list around the selected request, at least one row. The list gets the
// rows of the screen that the text of the selected request leaves free. If the text leaves no row free,
// or if the request has ended, the list gets a quarter of the rows.
func (m *model) listRows(room int) []string {
	if len(m.requests.order) == 0 {
		return nil
	}
	rows := room - m.views[0].page.need
	if more := room - len(m.views[0].page.rows); more > 0 {
		rows = more
	} else if rows > 0 { // the essential rows fit on the screen; other rows may be out of view
		rows = max(1, min(rows, room/4))
	}
	if rows < 1 || !m.requests.current().open() {
		rows = room / 4
	}
	rows = max(1, min(rows, len(m.requests.order)+1))
	hasHeader := rows > 2 || rows > len(m.requests.order)
	if hasHeader {
		rows--
	}
	at := slices.Index(m.requests.order, m.requests.selected)
	first := max(0, min(at-rows/2, len(m.requests.order)-rows))
	var prompts []schemas.Prompt
	for _, key := range m.requests.order[first : first+rows] {
		prompts = append(prompts, m.requests.items[key].Prompt)
	}
	table := strings.Split(strings.TrimSuffix(people.Table(prompts, m.now(), m.width-2), "\n"), "\n")
	for n, row := range table {
		row = people.FixedWidth(row)
		switch {
		case n == 0:
			table[n] = dim(ansi.Truncate("  "+row, m.width, ""))
		case n-1+first == at:
			table[n] = bold(ansi.Truncate("▸ "+row, m.width, ""))
		default:
			table[n] = ansi.Truncate("  "+row, m.width, "")
		}
	}
	if !hasHeader {
		table = table[1:]
	}
	return table
}
