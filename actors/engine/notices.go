package engine

import (
	"context"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// noticesKept is how long the engine keeps a session's notices after the newest of them.
const noticesKept = 24 * time.Hour

// maxNotice bounds the text of a notice, in characters: it contains texts of agents.
const maxNotice = 1000

func noticesKey(agent, session string) string { return "notices." + agent + "." + session }

// notify sends a notice to an agent's session, and keeps it until the agent takes it. That a question is
// shown is not kept, because it is news only while the agent waits.
func (e *base) notify(ctx context.Context, agent, session, id string, kind schemas.NoticeKind, text string) error {
	n := schemas.Notice{Type: schemas.TypeNotice, SessionID: session, PendingID: id, Kind: kind, Text: text}
	if runes := []rune(text); len(runes) > maxNotice {
		n.Text = string(runes[:maxNotice]) + "…"
	}
	if kind != schemas.NoticeShown {
		e.keepNotice(ctx, agent, n) // before it is sent, because who hears of it then takes it
	}
	return e.Edge.Publish(schemas.NoticeSubject(agent, session), n)
}

// keepNotice keeps a notice. A failure is only logged: a notice has no effect on decisions, and must not
// hold up what has.
func (e *base) keepNotice(ctx context.Context, agent string, n schemas.Notice) {
	_, _, err := bus.Change(ctx, e.store.Presence, noticesKey(agent, n.SessionID), func(all *schemas.Notices, found bool) (bus.Edit, error) {
		if slices.Contains(all.Notices, n) {
			return bus.Edit{}, nil // the outbox sends a notice again after a failure
		}
		all.Type = schemas.TypeNotices
		all.Notices = append(all.Notices, n)
		all.Notices = all.Notices[max(0, len(all.Notices)-schemas.MaxNotices):]
		return bus.Edit{Store: true, Kept: noticesKept}, nil
	})
	if err != nil {
		e.Log.Warn("engine: a notice was not kept", "agent", agent, "session", n.SessionID, "kind", n.Kind, "error", err)
	}
}

// takeNotices replies with the notices kept for a session of the calling agent, and removes them. If the
// reply is lost, they are lost too.
func (e *holdings) takeNotices(ctx context.Context, c *caller, q *schemas.Query) (schemas.Notices, error) {
	none := schemas.Notices{Type: schemas.TypeNotices, Notices: []schemas.Notice{}}
	if q.SessionID == "" {
		return none, schemas.Errorf(schemas.CodeValidation, "session_id: name the session")
	}
	kept, _, err := bus.Change(ctx, e.store.Presence, noticesKey(c.name, q.SessionID), func(all *schemas.Notices, found bool) (bus.Edit, error) {
		if !found {
			*all = none
		}
		return bus.Edit{Remove: true}, nil
	})
	return kept, err
}
