package inbox

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// press handles a key. Keys that move, scroll and close always work. For a moment after the screen has
// changed, press ignores keys that answer or that open a view with answers, because the user may have
// meant such a key for the previous screen.
func (m *model) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	m.news = ""
	if name == "ctrl+c" {
		return m.close()
	}
	if m.top().takesText() {
		return m.typeKey(key)
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
	case "e":
		if i := m.itemsOf(m.top()); len(i) > 0 && (m.top().kind == browse || m.top().kind == full) {
			m.open(exact, []string{i[0].Key()})
		}
		return nil
	case "v", "enter":
		if i := m.requests.current(); i != nil && len(m.views) == 1 {
			m.open(full, []string{i.Key()})
		}
		return nil
	}
	if !m.ready(key) {
		return m.guard.disarm(m.clock())
	}
	return m.runKey(name)
}

// ready reports whether a key may answer. Keys must have an effect (see keyGuard), and the user must have
// pressed the key anew instead of still holding it down.
func (m *model) ready(key tea.KeyPressMsg) bool { return m.guard.armed && !key.IsRepeat }

// move moves the selection or scrolls the text. It returns false for any other key.
func (m *model) move(name string) bool {
	v := m.top()
	switch name {
	case "left", "shift+tab":
		return m.changeChoice(-1)
	case "right", "tab":
		return m.changeChoice(1)
	}
	leap := max(1, m.frame().body-1) // one row of the previous page stays visible
	by, ok := map[string]int{
		"up": -1, "k": -1, "down": 1, "j": 1, "pgup": -leap, "pgdown": leap, "space": leap,
		"home": -len(v.page.rows) - len(m.requests.order), "end": len(v.page.rows) + len(m.requests.order),
	}[name]
	switch {
	case !ok:
	case v.kind == browse:
		m.requests.move(by)
	case v.kind == standingView:
		v.choice = max(0, min(v.choice+by, len(m.standing.all)-1))
	default:
		v.page.top += by // markSeen later limits top to the page's rows
	}
	return ok
}

func (m *model) changeChoice(by int) bool {
	v := m.top()
	if items := m.itemsOf(v); v.kind == choose && len(items) > 0 {
		v.choice = max(0, min(v.choice+by, len(choices(&items[0].Prompt))-1))
	}
	return v.kind == choose
}

func (m *model) runKey(name string) tea.Cmd {
	v := m.top()
	items := pending(m.itemsOf(v))
	switch {
	case name == "g" && v.kind == browse && m.o.StandingAnswers != nil:
		return m.openStanding()
	case name == "x" && v.kind == standingView:
		return m.revokeSelected()
	case name == "l" && v.kind == browse:
		m.toggleLock()
		return m.syncLock()
	case len(items) == 0 || v.kind == exact:
	case v.kind != choose && isQuestion(items) && len(name) == 1 && name[0] >= '1' && name[0] <= '9':
		return m.answerQuestion(items, int(name[0]-'1'))
	case name == "y" && v.kind == choose:
		c := choices(&items[0].Prompt)[v.choice]
		return m.sendAnswers(answer{allows: c.option.Kind.Allows(), choice: v.choice + 1})
	case name == "y" && isQuestion(items): // the key y does not answer an agent's question
	case name == "y":
		return m.sendAnswers(answer{allows: true, said: people.Utterance{Word: people.Yes}})
	case v.kind == choose:
	case name == "n":
		return m.sendAnswers(answer{said: people.Utterance{Word: people.No}})
	case name == "r":
		m.open(reason, keysOf(items))
	case name == "s" && v.kind != batch && len(choices(&items[0].Prompt)) > 0:
		m.open(choose, keysOf(items))
	case v.kind != batch && len(name) == 1 && name[0] >= '1' && int(name[0]-'1') < len(choices(&items[0].Prompt)):
		m.open(choose, keysOf(items))
		m.top().choice = int(name[0] - '1')
	case name == "b" && v.kind == browse:
		if all := m.requests.alike(items[0]); len(all) > 1 {
			m.open(batch, all)
		}
	}
	return nil
}

// typeKey handles a key in a view for typing text.
func (m *model) typeKey(key tea.KeyPressMsg) tea.Cmd {
	v := m.top()
	switch name := key.String(); name {
	case "esc":
		m.back()
	case "enter":
		if !m.ready(key) {
			return m.guard.disarm(m.clock())
		}
		return m.submitText(v)
	case "backspace":
		v.typed = v.typed[:max(0, len(v.typed)-1)]
	case "ctrl+u":
		v.typed = nil
	default:
		v.paste(key.Key().Text)
	}
	return nil
}

// submitText sends the typed text as a reason or a code word. If the text is empty, it does nothing.
func (m *model) submitText(v *view) tea.Cmd {
	text := strings.TrimSpace(string(v.typed))
	switch {
	case text == "":
		return nil
	case v.kind == reason:
		return m.sendAnswers(answer{said: people.Utterance{Word: people.No, Reason: text}})
	}
	a := v.answer
	if v.kind == words {
		a.text = text
	} else {
		a.word = text
	}
	return m.sendAnswers(a)
}

// isQuestion reports whether items are a single question of an agent, which the user answers by the
// number of an option.
func isQuestion(items []*item) bool {
	return len(items) == 1 && items[0].Request.Kind == schemas.KindQuestion
}

// answerQuestion answers an agent's question with the option that has this index. If the option needs a
// text, it asks for the text first.
func (m *model) answerQuestion(items []*item, option int) tea.Cmd {
	options := items[0].Request.Offered()
	if option >= len(options) {
		return nil
	}
	a := answer{allows: options[option].Kind.Allows(), option: option + 1}
	if options[option].Kind.Remembered() {
		m.open(choose, keysOf(items))
		m.top().choice = slices.IndexFunc(choices(&items[0].Prompt), func(c choice) bool { return c.option.OptionID == options[option].OptionID })
		return nil
	}
	if options[option].Text {
		if a.allows && m.allowBarrier() != "" {
			return nil
		}
		m.open(words, keysOf(items))
		m.top().answer = a
		return nil
	}
	return m.sendAnswers(a)
}
