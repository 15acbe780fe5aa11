package checklist

import (
	"fmt"

	tea "charm.land/bubbletea/v2"
)

func (m *model) press(name string) tea.Cmd {
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case m.reading != nil:
		m.read(name)
		return nil
	case m.move(name), m.choose(name):
		return nil
	}
	switch name {
	case "esc", "q":
		return tea.Quit
	case "d", "tab":
		if i := m.item(); i != nil {
			m.reading = &text{title: i.Text, lines: safeLines(i.detail())}
		}
	case "?":
		m.reading = &text{title: "Keys", lines: helpLines(m.keys())}
	case "left", "h", "backspace", "shift+tab":
		m.enter(m.lists.next(m.at-1, -1))
	case "enter", "right", "l":
		return m.goOn()
	case "y":
		if m.summing() && m.changes {
			return m.confirm()
		}
		m.unknown(name)
	default:
		m.unknown(name)
	}
	return nil
}

func (m *model) unknown(name string) {
	m.notice = fmt.Sprintf("%s does nothing here; ? lists the keys.", safe(name))
}

// goOn goes to the next page. At the summary it closes the screen if there is nothing to confirm.
func (m *model) goOn() tea.Cmd {
	switch {
	case !m.summing():
		m.enter(m.lists.next(m.at+1, 1))
	case m.changes:
		m.notice = "y writes these changes; esc leaves without a change."
	default:
		m.confirmed = true
		return tea.Quit
	}
	return nil
}

// confirm notes the person's consent and closes the screen. It refuses this until the whole summary was on
// the screen.
func (m *model) confirm() tea.Cmd {
	if m.list.seen < m.list.rows {
		m.notice = "A part of the summary was not on the screen yet: scroll through it, then y."
		return nil
	}
	m.confirmed = true
	return tea.Quit
}

// move moves the cursor by a key. It returns false for a key that does not move the cursor.
func (m *model) move(name string) bool {
	by, ok := steps(name, m.list.height, len(m.page.items))
	if !ok {
		return false
	}
	at := m.cursors[m.at]
	_, spans := m.listRows()
	switch name { // page up and page down count rows, and an item may have several rows
	case "pgdown", "ctrl+f":
		for by = 1; at+by+1 < len(spans) && spans[at+by+1].last < m.list.top+2*m.list.height; {
			by++
		}
	case "pgup", "ctrl+b":
		for by = -1; at+by-1 >= 0 && spans[at+by-1].first > m.list.top-m.list.height; {
			by--
		}
	}
	m.cursors[m.at] = max(0, min(at+by, len(m.page.items)-1))
	return true
}

// steps returns how far a key moves. The list has n entries, and height is the number of entries on the
// screen. For a key that does not move, ok is false.
func steps(name string, height, n int) (by int, ok bool) {
	switch name {
	case "up", "k":
		return -1, true
	case "down", "j":
		return 1, true
	case "pgup", "ctrl+b":
		return -max(1, height-1), true
	case "pgdown", "ctrl+f":
		return max(1, height-1), true
	case "home", "g":
		return -n, true
	case "end", "G", "shift+g":
		return n, true
	}
	return 0, false
}

// choose chooses items by a key. It returns false for a key that does not choose items.
func (m *model) choose(name string) bool {
	i := m.item()
	switch {
	case name == "space" && m.summing():
		m.notice = "← goes back to the lists, where space ticks."
	case name == "space" && i.open():
		m.page.toggle(i)
	case name == "space":
		m.notice = "This cannot be ticked; d says more."
	case m.summing():
		return false
	case (name == "a" || name == "n") && m.page.One:
		m.notice = "One of them is always chosen: space chooses another."
	case name == "a":
		m.page.choose(m.page.choices()...)
	case name == "n":
		m.page.choose()
	default:
		return false
	}
	return true
}

// read handles a key while a text covers the list.
func (m *model) read(name string) {
	if name == "space" {
		name = "pgdown"
	}
	if by, ok := steps(name, m.reading.height, m.reading.rows); ok {
		if m.reading.top += by; m.reading.rows <= m.reading.height {
			m.notice = "All of it is on the screen; esc goes back."
		}
		return
	}
	switch name {
	case "esc", "q", "d", "tab", "?", "enter", "left", "h", "backspace":
		m.reading = nil
	default:
		m.unknown(name)
	}
}

type key struct{ name, does, more string }

// keys returns the keys with an effect, the most important ones first.
func (m *model) keys() (all []key) {
	if m.reading != nil {
		if m.reading.rows > m.reading.height {
			all = append(all, key{"↑↓ space", "read on", ""})
		}
		return append(all, key{"esc", "back", ""})
	}
	switch {
	case m.summing() && m.changes:
		all = append(all, key{"y", "write", "write these changes"})
	case m.summing():
		all = append(all, key{"enter", "go on", "go on without a change"})
	case m.page.One:
		all = append(all, key{"space", "choose", "choose this one"}, key{"enter", "go on", "go on to the next list"})
	default:
		all = append(all, key{"space", "tick", "tick or untick"}, key{"a", "all", "tick all"}, key{"n", "none", "tick none"}, key{"enter", "go on", "go on to the next list"})
	}
	if m.item() != nil {
		all = append(all, key{"d", "in full", "show the change or the rule in full (also tab)"})
	}
	if at, _ := m.lists.next(m.at-1, -1); at >= 0 {
		all = append(all, key{"←", "back", "go back to the list before"})
	}
	return append(all, key{"?", "keys", ""}, key{"esc", "leave", "leave without changing anything (also q, Ctrl-C)"})
}

func helpLines(keys []key) (all []string) {
	for _, k := range append(keys, key{"↑↓", "", "move (also j, k, page up, page down, home, end)"}) {
		if k.more != "" {
			all = append(all, fmt.Sprintf("%-7s%s", k.name, k.more))
		}
	}
	return all
}
