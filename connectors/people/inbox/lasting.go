package inbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// Ledger is what stands beyond the call that it was said of.
type Ledger interface {
	// Grants lists the standing answers, ended ones too for a while; those of one
	// session where that is named.
	Grants(ctx context.Context, session string) ([]schemas.StandingAnswer, error)
	// Revoke ends a standing answer for an approver; FORBIDDEN for anybody else.
	Revoke(ctx context.Context, g *schemas.StandingAnswer, userID string) error
}

// lasts is the list of standing answers, as it was read last.
type lasts struct {
	all  []schemas.StandingAnswer // that hold, the newest first
	read bool
	busy bool   // one is being ended
	said string // what became of the last that was ended, or why there is no list
}

// lastsMsg is a list of standing answers, and what became of one that was ended.
type lastsMsg struct {
	all  []schemas.StandingAnswer
	said string
	err  error
}

// listLasts opens the list, and has it read.
func (m *model) listLasts() tea.Cmd {
	m.open(lasting, nil)
	m.lasts = lasts{}
	return m.readLasts("")
}

func (m *model) readLasts(said string) tea.Cmd {
	return m.call(answerWithin, func(ctx context.Context) tea.Msg {
		all, err := m.o.Ledger.Grants(ctx, "")
		return lastsMsg{all, said, err}
	})
}

// endLast ends the selected standing answer, and reads the list anew.
func (m *model) endLast() tea.Cmd {
	g := m.selectedLast()
	if g == nil || m.lasts.busy {
		return nil
	}
	m.lasts.busy = true
	ended, words := *g, people.DescribeStanding(g, m.now())
	return m.call(answerWithin, func(ctx context.Context) tea.Msg {
		err := m.o.Ledger.Revoke(ctx, &ended, m.o.UserID)
		if err != nil {
			return lastsMsg{err: err}
		}
		said := "Revoked: " + words.Covers
		if words.Undo == "forget" {
			said = "Forgotten: the denial of " + words.Covers
		}
		return m.readLasts(said)()
	})
}

// heardLasts takes in a list, or why there is none.
func (m *model) heardLasts(msg lastsMsg) {
	m.lasts.busy = false
	if m.lasts.said = msg.said; msg.err != nil {
		m.lasts.said, _ = m.refusal(msg.err)
		return
	}
	m.lasts.read, m.lasts.all = true, nil
	for _, g := range msg.all {
		if g.Live(m.now()) {
			m.lasts.all = append(m.lasts.all, g)
		}
	}
	people.SortNewestFirst(m.lasts.all)
}

// selectedLast is the standing answer that a key would end; nil where there is none.
func (m *model) selectedLast() *schemas.StandingAnswer {
	if v := m.top(); v.kind == lasting && len(m.lasts.all) > 0 {
		return &m.lasts.all[min(v.choice, len(m.lasts.all)-1)]
	}
	return nil
}

// layOutLasts gives the list its text, with the selected one in view.
func (m *model) layOutLasts(v *view) {
	v.choice = max(0, min(v.choice, len(m.lasts.all)-1))
	var rows []string
	first, last := 0, 0
	for n := range m.lasts.all {
		if n == v.choice {
			first = len(rows)
		}
		rows = append(rows, m.lastRows(&m.lasts.all[n], n == v.choice)...)
		if n == v.choice {
			last = len(rows)
		}
	}
	switch {
	case len(rows) > 0:
	case m.lasts.read:
		rows = []string{"", "Nothing is allowed or denied beyond one call."}
	default:
		rows = []string{"", "Asking nod what stands …"}
	}
	top := v.page.top
	v.page.set(rows, m.width)
	if body := m.frame().body; body > 0 {
		v.page.top = max(min(top, first), last-body)
	}
}

// lastRows are the rows of one standing answer.
func (m *model) lastRows(g *schemas.StandingAnswer, selected bool) []string {
	s := people.DescribeStanding(g, m.now())
	mark := "  "
	if selected {
		mark = "▸ "
	}
	var details []string
	for _, text := range []string{s.Where, s.Uses, s.Until, "by " + s.By + ", " + s.When, s.From, s.Message} {
		if text != "" {
			details = append(details, text)
		}
	}
	var rows []string
	for i, row := range rowsOf(s.Effect+" "+s.Covers, m.width-2) {
		if i > 0 {
			mark = "  "
		}
		rows = append(rows, mark+row)
	}
	for _, row := range rowsOf(strings.Join(details, " · "), m.width-4) {
		rows = append(rows, "    "+row)
	}
	return rows
}

// lastKeys are the keys of the list.
func (m *model) lastKeys() (all []key) {
	if g := m.selectedLast(); g != nil {
		all = append(all, key{"x", people.DescribeStanding(g, m.now()).Undo})
		if len(m.lasts.all) > 1 {
			all = append(all, key{"↑↓", "next"})
		}
	}
	return append(all, key{"esc", "back"})
}

// lastStake is what the keys would end.
func (m *model) lastStake() string {
	if g := m.selectedLast(); g != nil {
		return fmt.Sprint(g.GrantID, m.lasts.busy)
	}
	return ""
}

// lastTitle heads the list.
func (m *model) lastTitle() string {
	return fmt.Sprintf(" Standing answers · %d", len(m.lasts.all))
}

// expireLasts drops those whose time has passed.
func (m *model) expireLasts(now time.Time) {
	kept := m.lasts.all[:0]
	for _, g := range m.lasts.all {
		if g.Live(now) {
			kept = append(kept, g)
		}
	}
	m.lasts.all = kept
}
