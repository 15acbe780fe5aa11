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

// StandingAnswers lists and revokes standing answers.
type StandingAnswers interface {
	// Grants lists the standing answers of one session or, if session is empty, of all sessions. The
	// list includes some that have ended recently.
	Grants(ctx context.Context, session string) ([]schemas.StandingAnswer, error)
	// Revoke ends a standing answer in the name of an approver. If this approver must not end it, the
	// error is FORBIDDEN.
	Revoke(ctx context.Context, g *schemas.StandingAnswer, userID string) error
}

type standingList struct {
	all    []schemas.StandingAnswer // the standing answers in force, newest first
	read   bool                     // the list was read since the view was opened
	busy   bool                     // a revocation is running
	notice string                   // the result of the last revocation, or an error from reading the list
}

// standingMsg contains the standing answers that were read, or an error. If a revocation came
// before, said is its result.
type standingMsg struct {
	all  []schemas.StandingAnswer
	said string
	err  error
}

// openStanding opens the list of standing answers and starts reading them.
func (m *model) openStanding() tea.Cmd {
	m.open(standingView, nil)
	m.standing = standingList{}
	return m.readStanding("")
}

func (m *model) readStanding(said string) tea.Cmd {
	return m.call(answerTimeout, func(ctx context.Context) tea.Msg {
		all, err := m.o.StandingAnswers.Grants(ctx, "")
		return standingMsg{all, said, err}
	})
}

// revokeSelected ends the selected standing answer and then reads the list again.
func (m *model) revokeSelected() tea.Cmd {
	g := m.selectedStanding()
	if g == nil || m.standing.busy {
		return nil
	}
	m.standing.busy = true
	ended, words := *g, people.DescribeStanding(g, m.now())
	return m.call(answerTimeout, func(ctx context.Context) tea.Msg {
		err := m.o.StandingAnswers.Revoke(ctx, &ended, m.o.UserID)
		if err != nil {
			return standingMsg{err: err}
		}
		said := "Revoked: " + words.Covers
		if words.Undo == "forget" {
			said = "Forgotten: the denial of " + words.Covers
		}
		return m.readStanding(said)()
	})
}

// applyStanding shows the standing answers in msg. If msg contains an error, it shows the error.
func (m *model) applyStanding(msg standingMsg) {
	m.standing.busy = false
	if m.standing.notice = msg.said; msg.err != nil {
		m.standing.notice, _ = m.refusal(msg.err)
		return
	}
	m.standing.read, m.standing.all = true, nil
	for _, g := range msg.all {
		if g.Live(m.now()) {
			m.standing.all = append(m.standing.all, g)
		}
	}
	people.SortNewestFirst(m.standing.all)
}

func (m *model) selectedStanding() *schemas.StandingAnswer {
	if v := m.top(); v.kind == standingView && len(m.standing.all) > 0 {
		return &m.standing.all[min(v.choice, len(m.standing.all)-1)]
	}
	return nil
}

// layOutStanding lays out the standing answers and scrolls to the selected one.
func (m *model) layOutStanding(v *view) {
	v.choice = max(0, min(v.choice, len(m.standing.all)-1))
	var rows []string
	first, last := 0, 0
	for n := range m.standing.all {
		if n == v.choice {
			first = len(rows)
		}
		rows = append(rows, m.standingRows(&m.standing.all[n], n == v.choice)...)
		if n == v.choice {
			last = len(rows)
		}
	}
	switch {
	case len(rows) > 0:
	case m.standing.read:
		rows = []string{"", "Nothing is allowed or denied beyond one call."}
	default:
		rows = []string{"", "Loading the standing answers …"}
	}
	top := v.page.top
	v.page.setRows(rows, m.width)
	if body := m.frame().body; body > 0 {
		v.page.top = max(min(top, first), last-body)
	}
}

// standingRows returns the rows of one standing answer.
func (m *model) standingRows(g *schemas.StandingAnswer, selected bool) []string {
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

func (m *model) standingKeys() (all []key) {
	if g := m.selectedStanding(); g != nil {
		all = append(all, key{"x", people.DescribeStanding(g, m.now()).Undo})
		if len(m.standing.all) > 1 {
			all = append(all, key{"↑↓", "next"})
		}
	}
	return append(all, key{"esc", "back"})
}

// standingEffect returns a text that changes when the key x gets another effect. The text names the
// standing answer that the key would end, and says whether a revocation is running. keyEffect uses the
// text in the list of standing answers.
func (m *model) standingEffect() string {
	if g := m.selectedStanding(); g != nil {
		return fmt.Sprint(g.GrantID, m.standing.busy)
	}
	return ""
}

func (m *model) standingTitle() string {
	return fmt.Sprintf(" Standing answers · %d", len(m.standing.all))
}

func (m *model) expireStanding(now time.Time) {
	kept := m.standing.all[:0]
	for _, g := range m.standing.all {
		if g.Live(now) {
			kept = append(kept, g)
		}
	}
	m.standing.all = kept
}
