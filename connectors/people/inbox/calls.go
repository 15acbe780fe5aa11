package inbox

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// refreshTimeout is the time limit of the query for the selected request. Without a reply in that
// time, the screen treats nod as unreachable. catchUpTimeout is the time limit of all queries
// after an outage together.
const (
	refreshTimeout = 3 * time.Second
	catchUpTimeout = 30 * time.Second
)

// refreshMsg contains the state of the selected request and the broker's time, or an error.
type refreshMsg struct {
	key    string // the key of the selected request; empty if no request was selected
	prompt schemas.Prompt
	now    time.Time
	err    error
}

// missedMsg contains the requests that ended while nod was unreachable, and the keys of the requests
// that nod no longer stores.
type missedMsg struct {
	prompts    []schemas.Prompt
	gone       []string
	incomplete bool
}

// call returns a tea.Cmd that runs f, a call to nod, outside the program's event loop and with a
// timeout.
func (m *model) call(timeout time.Duration, f func(context.Context) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, timeout)
		defer cancel()
		return f(ctx)
	}
}

// refresh queries the selected request. The screen thereby gets updates that it missed, learns the
// difference between this machine's clock and the broker's, and notices if nod is unreachable. If no
// request is selected, refresh queries any pending request, only to notice if nod is unreachable.
func (m *model) refresh() tea.Cmd {
	if m.refreshing {
		return nil
	}
	m.refreshing = true
	i := m.requests.current()
	if i == nil {
		return m.call(refreshTimeout, func(ctx context.Context) tea.Msg {
			_, _, err := people.FindPending(ctx, m.o.Desk, schemas.Query{Limit: 1}, func(*schemas.Prompt) bool { return true })
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
		m.offline, m.behind = true, true
		return nil
	}
	m.offline, m.reached = false, true
	switch {
	case msg.key == "":
	case msg.err == nil:
		m.skew, m.skewKnown = msg.now.Sub(m.clock()), true
		m.applyKnown(msg.prompt)
	case errors.Is(msg.err, &schemas.Error{Code: schemas.CodeNotFound}):
		m.requests.remove(msg.key)
	}
	if m.behind {
		m.behind = false
		return m.catchUp()
	}
	return nil
}

// unreachable reports whether an error means that nod could not be reached or had an internal error.
func unreachable(err error) bool {
	var se *schemas.Error
	return err != nil && (!errors.As(err, &se) || se.Code == schemas.CodeUnavailable || se.Code == schemas.CodeInternal)
}

// applyKnown stores the result of a query, unless the request has left the list during the query.
func (m *model) applyKnown(p schemas.Prompt) {
	if m.requests.items[p.Key()] != nil {
		m.applyVersion(p)
	}
}

// catchUp runs after an outage of nod. It queries the outcomes of the listed requests that are no
// longer pending.
func (m *model) catchUp() tea.Cmd {
	var open []*item
	for _, i := range m.requests.items {
		if i.open() {
			open = append(open, &item{Prompt: schemas.Prompt{SessionID: i.SessionID, PendingID: i.PendingID}})
		}
	}
	return m.call(catchUpTimeout, func(ctx context.Context) tea.Msg {
		var msg missedMsg
		still := map[string]bool{}
		err := m.o.Desk.EachPending(ctx, schemas.Query{}, func(page []schemas.Prompt) error {
			for i := range page {
				still[page[i].Key()] = true
			}
			return nil
		})
		if err != nil {
			return missedMsg{incomplete: true}
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
			default:
				msg.incomplete = true
			}
		}
		return msg
	})
}

// applyMissed applies the result of catchUp. If the result is incomplete, the next successful refresh
// catches up again.
func (m *model) applyMissed(msg missedMsg) {
	m.behind = m.behind || msg.incomplete
	for _, p := range msg.prompts {
		m.applyKnown(p)
	}
	for _, key := range msg.gone {
		m.requests.remove(key)
	}
}
