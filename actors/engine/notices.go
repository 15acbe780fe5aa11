package engine

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// noticesKept is how long the engine keeps a session's notices after the newest one.
const noticesKept = 24 * time.Hour

// keepNoticeWithin is the time limit for keeping a notice.
const keepNoticeWithin = time.Second

// maxNotice bounds the text of a notice, in characters, because agents write parts of the text.
const maxNotice = 300

func noticesKey(agent, session string) string { return "notices." + agent + "." + session }

// notify sends a notice to an agent's session, and keeps the notice until the agent takes it. The
// notice that a question is shown is not kept, because it is news only while the agent waits. A failure
// to keep a notice is only logged, because notices must not delay decisions.
func (e *base) notify(ctx context.Context, agent, session, id string, kind schemas.NoticeKind, text string) error {
	n := schemas.Notice{Type: schemas.TypeNotice, SessionID: session, PendingID: id, Kind: kind, Text: noticeText(text)}
	if kind != schemas.NoticeShown {
		fresh, err := e.keepNotice(ctx, agent, n) // the notice is kept before it is sent, because the agent takes kept notices as soon as the message arrives
		if err != nil {
			e.Log.Warn("engine: a notice was not kept", "agent", agent, "session", session, "kind", kind, "error", err)
			return nil
		}
		if !fresh {
			return nil
		}
	}
	return e.Edge.Publish(schemas.NoticeSubject(agent, session), n)
}

// noticeText returns a text as one line of limited length without control characters.
func noticeText(text string) string {
	runes := []rune(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " "))
	if len(runes) > maxNotice {
		return string(runes[:maxNotice]) + "…"
	}
	return string(runes)
}

// keepNotice adds a notice to the kept notices of its session. It returns false if the session has or
// had the same notice about the same request, because the outbox sends the notice for each version of a
// record.
func (e *base) keepNotice(ctx context.Context, agent string, n schemas.Notice) (fresh bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, keepNoticeWithin)
	defer cancel()
	_, _, err = bus.Change(ctx, e.store.Presence, noticesKey(agent, n.SessionID), func(all *schemas.Notices, _ bool) (bus.Edit, error) {
		known := all.Notices
		if n.PendingID == "" {
			known = known[all.Taken:]
		}
		if fresh = !slices.Contains(known, n); !fresh {
			return bus.Edit{}, nil
		}
		all.Type = schemas.TypeNotices
		all.Notices = append(all.Notices, n)
		if over := len(all.Notices) - schemas.MaxNotices; over > 0 {
			all.Notices, all.Taken = all.Notices[over:], max(0, all.Taken-over)
		}
		return bus.Edit{Store: true, Kept: noticesKept}, nil
	})
	return fresh, err
}

// takeNotices replies with the notices kept for a session of the calling agent, and marks them as
// taken. A lost reply loses the notices.
func (e *holdings) takeNotices(ctx context.Context, c *caller, q *schemas.Query) (schemas.Notices, error) {
	reply := schemas.Notices{Type: schemas.TypeNotices, Notices: []schemas.Notice{}}
	if q.SessionID == "" {
		return reply, schemas.Errorf(schemas.CodeValidation, "session_id: name the session")
	}
	_, _, err := bus.Change(ctx, e.store.Presence, noticesKey(c.name, q.SessionID), func(all *schemas.Notices, found bool) (bus.Edit, error) {
		reply.Notices = append(reply.Notices[:0], all.Notices[all.Taken:]...)
		all.Taken = len(all.Notices)
		return bus.Edit{Store: len(reply.Notices) > 0, Kept: noticesKept}, nil
	})
	return reply, err
}
