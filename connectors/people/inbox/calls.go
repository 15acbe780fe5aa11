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
	pulseWithin = 3 * time.Second
	readWithin  = 30 * time.Second
)

// pulseMsg is how the selected request stands, with the broker's time, or that
// nod did not say.
type pulseMsg struct {
	key    string // empty where none was selected
	prompt schemas.Prompt
	now    time.Time
	err    error
}

// readMsg is what has become of requests that are no longer pending.
type readMsg struct {
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
func (m *model) pulse() tea.Cmd {
	if m.pulsing {
		return nil
	}
	m.pulsing = true
	i := m.book.now()
	if i == nil {
		return m.call(pulseWithin, func(ctx context.Context) tea.Msg {
			_, err := m.o.Desk.Pending(ctx, schemas.Query{})
			return pulseMsg{err: err}
		})
	}
	key, session, id := i.Key(), i.SessionID, i.PendingID
	return m.call(pulseWithin, func(ctx context.Context) tea.Msg {
		p, page, err := m.o.Desk.Show(ctx, session, id)
		return pulseMsg{key, p, page.Now, err}
	})
}

func (m *model) pulsed(msg pulseMsg) tea.Cmd {
	m.pulsing = false
	if lost(msg.err) {
		m.away = true
		return nil
	}
	back := m.away
	m.away, m.heard = false, true
	switch {
	case msg.key == "":
	case msg.err == nil:
		m.skew, m.timed = msg.now.Sub(m.clock()), true
		m.know(msg.prompt)
	case errors.Is(msg.err, &schemas.Error{Code: schemas.CodeNotFound}):
		m.book.drop(msg.key)
	}
	if back {
		return m.catchUp()
	}
	return nil
}

// lost reports whether an error says that nod was not heard.
func lost(err error) bool {
	var se *schemas.Error
	return err != nil && (!errors.As(err, &se) || se.Code == schemas.CodeUnavailable || se.Code == schemas.CodeInternal)
}

// know takes in how a request stands that nod was asked about. It adds nothing
// to the list: that it is pending may be older than what was heard since.
func (m *model) know(p schemas.Prompt) {
	if m.book.items[p.Key()] != nil {
		m.hear(p)
	}
}

// catchUp asks what has become of all that was pending before nod was away.
func (m *model) catchUp() tea.Cmd {
	var open []*item
	for _, i := range m.book.items {
		if i.open() {
			open = append(open, &item{Prompt: schemas.Prompt{SessionID: i.SessionID, PendingID: i.PendingID}})
		}
	}
	return m.call(readWithin, func(ctx context.Context) tea.Msg {
		var msg readMsg
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
			case !lost(err):
				msg.gone = append(msg.gone, i.Key())
			}
		}
		return msg
	})
}

func (m *model) read(msg readMsg) {
	for _, p := range msg.prompts {
		m.know(p)
	}
	for _, key := range msg.gone {
		m.book.drop(key)
	}
}
