package inbox

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/nodbus/nod/connectors/people"
)

// press takes one key. Moving about, reading and closing are always possible;
// what decides something, or is on the way to it, is dropped while the keys are
// inert.
func (m *model) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	m.news = ""
	if name == "ctrl+c" {
		return m.close()
	}
	if m.top().entry() {
		return m.write(key)
	}
	if m.move(name) {
		return nil
	}
	switch name {
	case "esc", "q":
		if len(m.views) == 1 {
			return m.close()
		}
		m.back()
		return nil
	case "v", "enter":
		if i := m.book.now(); i != nil && len(m.views) == 1 {
			m.open(full, []string{i.Key()})
		}
		return nil
	}
	if !m.ready(key) {
		return m.guard.wait(m.clock())
	}
	return m.decide(name)
}

// ready reports whether a key may decide: it was pressed, not held down, after
// what it is about has been there for a while.
func (m *model) ready(key tea.KeyPressMsg) bool { return m.guard.armed && !key.IsRepeat }

// move moves about, and reports whether the key was for that.
func (m *model) move(name string) bool {
	v := m.top()
	switch name {
	case "left", "shift+tab":
		return m.turn(-1)
	case "right", "tab":
		return m.turn(1)
	}
	leap := max(1, m.frame().body-1) // a row of the last page stays in view
	by, ok := map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -leap, "pgdown": leap, "space": leap,
		"home": -len(v.page.rows) - len(m.book.order), "end": len(v.page.rows) + len(m.book.order),
	}[name]
	switch {
	case !ok:
	case v.kind == browse:
		m.book.move(by)
	case v.kind == lasting:
		v.choice = max(0, min(v.choice+by, len(m.lasts.all)-1))
	default:
		v.page.top += by // look keeps it within the page
	}
	return ok
}

// turn goes to another of the choices.
func (m *model) turn(by int) bool {
	v := m.top()
	if items := m.about(v); v.kind == choose && len(items) > 0 {
		v.choice = max(0, min(v.choice+by, len(choices(&items[0].Prompt))-1))
	}
	return v.kind == choose
}

// decide does what a key that was not dropped stands for.
func (m *model) decide(name string) tea.Cmd {
	v := m.top()
	items := pending(m.about(v))
	switch {
	case name == "g" && v.kind == browse && m.o.Ledger != nil:
		return m.listLasts()
	case name == "x" && v.kind == lasting:
		return m.endLast()
	case name == "l" && v.kind == browse:
		m.toggleLock()
		return m.keepLock()
	case len(items) == 0:
	case name == "y" && v.kind == choose:
		c := choices(&items[0].Prompt)[v.choice]
		return m.say(answer{allows: c.option.Kind.Allows(), choice: v.choice + 1})
	case name == "y":
		return m.say(answer{allows: true, said: people.Utterance{Word: people.Yes}})
	case v.kind == choose:
	case name == "n":
		return m.say(answer{said: people.Utterance{Word: people.No}})
	case name == "r":
		m.open(reason, keysOf(items))
	case name == "s" && v.kind != batch && len(choices(&items[0].Prompt)) > 0:
		m.open(choose, keysOf(items))
	case name == "b" && v.kind == browse:
		if all := m.book.alike(items[0]); len(all) > 1 {
			m.open(batch, all)
		}
	}
	return nil
}

// write takes a key where text is typed.
func (m *model) write(key tea.KeyPressMsg) tea.Cmd {
	v := m.top()
	switch name := key.String(); name {
	case "esc":
		m.back()
	case "enter":
		if !m.ready(key) {
			return m.guard.wait(m.clock())
		}
		return m.written(v)
	case "backspace":
		v.typed = v.typed[:max(0, len(v.typed)-1)]
	case "ctrl+u":
		v.typed = nil
	default:
		v.paste(key.Key().Text)
	}
	return nil
}

// written says what was typed. Nothing is no reason and no word.
func (m *model) written(v *view) tea.Cmd {
	text := strings.TrimSpace(string(v.typed))
	switch {
	case text == "":
		return nil
	case v.kind == reason:
		return m.say(answer{said: people.Utterance{Word: people.No, Reason: text}})
	}
	a := v.answer
	a.word = text
	return m.say(a)
}
