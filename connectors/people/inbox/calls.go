package inbox

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/nodbus/nod/schemas"
)

// pulseWithin is how long nod may take to say how the selected request stands
// before it counts as away, and readWithin for all that was missed meanwhile.
const (
	refreshTimeout = 3 * time.Second
	catchUpTimeout = 30 * time.Second
)

// pulseMsg is how the selected request stands, with the broker's time, or that
// nod did not say.
type refreshMsg struct {
	key    string // empty where none was selected
	prompt schemas.Prompt
	now    time.Time
	err    error
}

// readMsg is what has become of requests that are no longer pending.
type missedMsg struct {
	prompts []schemas.Prompt
	gone    []string
}

// call calls nod beside the program, for no longer than its patience.
func (m *model) call(patience time.Duration, f func(context.Context) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, patience)
		defer cancel()
		return f(ctx)
	}
}

// pulse asks nod how the selected request stands: so it is told from one that
// went unheard, the clocks are compared, and a nod that is away is noticed.
func (m *model) refresh() tea.Cmd {
	if m.refreshing {
		return nil
	}
	m.refreshing = true
	i := m.requests.current()
	if i == nil {
		return m.call(refreshTimeout, func(ctx context.Context) tea.Msg {
			_, err := m.o.Desk.Pending(ctx, schemas.Query{})
			return refreshMsg{err: err}
		})
	}
	key, session, id := i.Key(), i.SessionID, i.PendingID
	return m.call(refreshTimeout, func(ctx context.Context) tea.Msg {
		p, page, err := m.o.Desk.Show(ctx, session, id)
		return refreshMsg{key, p, page.Now, err}
	})
}

func (m *model) refreshed(msg refreshMsg) tea.Cmd {
	m.refreshing = false
	if unreachable(msg.err) {
		m.away = true
		return nil
	}
	back := m.away
	m.away, m.reached = false, true
	switch {
	case msg.key == "":
	case msg.err == nil:
		m.skew, m.skewKnown = msg.now.Sub(m.clock()), true
		m.applyKnown(msg.prompt)
	case errors.Is(msg.err, &schemas.Error{Code: schemas.CodeNotFound}):
		m.requests.remove(msg.key)
	}
	if back {
		return m.catchUp()
	}
	return nil
}

// lost reports whether an error says that nod was not heard.
func unreachable(err error) bool {
	var se *schemas.Error
	return err != nil && (!errors.As(err, &se) || se.Code == schemas.CodeUnavailable || se.Code == schemas.CodeInternal)
}

// know takes in how a request stands that nod was asked about. It adds nothing
// to the list: that it is pending may be older than what was heard since.
func (m *model) applyKnown(p schemas.Prompt) {
	if m.requests.items[p.Key()] != nil {
		m.applyVersion(p)
	}
}

// catchUp asks what has become of all that was pending before nod was away.
func (m *model) catchUp() tea.Cmd {
	var open []*item
	for _, i := range m.requests.items {
		if i.open() {
			open = append(open, &item{Prompt: schemas.Prompt{SessionID: i.SessionID, PendingID: i.PendingID}})
		}
	}
	return m.call(catchUpTimeout, func(ctx context.Context) tea.Msg {
		var msg missedMsg
		prompts, err := m.o.Desk.Pending(ctx, schemas.Query{})
		if err != nil {
			return msg
		}
		still := map[string]bool{}
		for i := range prompts {
			still[prompts[i].Key()] = true
		}
		for _, i := range open {
			if still[i.Key()] {
				continue
			}
			p, _, err := m.o.Desk.Show(ctx, i.SessionID, i.PendingID)
			switch {
			case err == nil:
				msg.prompts = append(msg.prompts, p)
			case !unreachable(err):
				msg.gone = append(msg.gone, i.Key())
			}
		}
		return msg
	})
}

func (m *model) applyMissed(msg missedMsg) {
	for _, p := range msg.prompts {
		m.applyKnown(p)
	}
	for _, key := range msg.gone {
		m.requests.remove(key)
	}
}
