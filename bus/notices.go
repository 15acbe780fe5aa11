package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nodbus/nod/schemas"
)

// takeWithin is the time limit for one call of TakeNotices by a listener.
const takeWithin = 5 * time.Second

// TakeNotices returns the notices that nod has kept for a session of the agent, oldest first. nod then
// forgets these notices, even if the reply is lost.
func (a *Asker) TakeNotices(ctx context.Context, sessionID string) ([]schemas.Notice, error) {
	var reply schemas.Notices
	err := a.conn.CallInto(ctx, schemas.NoticesSubject(a.agent), schemas.Query{Type: schemas.TypeQuery, SessionID: sessionID}, &reply)
	if err != nil {
		return nil, fmt.Errorf("take the notices of session %s: %w", sessionID, err)
	}
	return reply.Notices, nil
}

// Notices calls the function heard for each notice of a session, one after another, until ctx ends.
// The notices that nod has kept come first. After the end of ctx, it may still call heard for notices
// that it has already taken from nod. If several callers listen to a session, all of them get each
// NoticeShown, and one of them gets each other notice.
func (a *Asker) Notices(ctx context.Context, sessionID string, heard func(schemas.Notice)) error {
	feed, err := a.listenForNotices(sessionID)
	if err != nil {
		return err
	}
	go func() {
		defer feed.unsub()
		next, err := feed.kept()
		for ctx.Err() == nil || len(next) > 0 {
			if err != nil { // nod keeps the notices, so a later call can take them
				a.conn.log.Info("bus: the notices of a session could not be read", "session", sessionID, "error", err)
			}
			for _, n := range next {
				heard(n)
			}
			next, err = feed.next(ctx)
		}
	}()
	return nil
}

// AwaitNotices returns the notices that nod has kept for a session. If there are none, it waits for
// the next notices. If ctx ends first, it returns no notice.
func (a *Asker) AwaitNotices(ctx context.Context, sessionID string) ([]schemas.Notice, error) {
	feed, err := a.listenForNotices(sessionID)
	if err != nil {
		return nil, err
	}
	defer feed.unsub()
	next, err := feed.kept()
	for len(next) == 0 && err == nil && ctx.Err() == nil {
		next, err = feed.next(ctx)
	}
	return next, err
}

// noticeFeed receives the notices of one session. A message with a NoticeShown is the notice itself.
// Any other message only says that nod keeps a notice. The feed then takes the kept notices, so that
// each of them is taken once.
type noticeFeed struct {
	kept  func() ([]schemas.Notice, error)
	live  chan schemas.Notice
	unsub func()
}

func (a *Asker) listenForNotices(sessionID string) (*noticeFeed, error) {
	f := &noticeFeed{live: make(chan schemas.Notice, schemas.MaxNotices)}
	f.kept = func() ([]schemas.Notice, error) { // takes the notices with a time limit of its own, because notices that were taken must be passed on even after the listener's context has ended
		ctx, cancel := context.WithTimeout(context.Background(), takeWithin)
		defer cancel()
		return a.TakeNotices(ctx, sessionID)
	}
	var err error
	f.unsub, err = a.conn.Subscribe(schemas.NoticeSubject(a.agent, sessionID), func(m Message) {
		var n schemas.Notice
		if err := schemas.Load(m.Data, &n); err != nil {
			a.conn.log.Warn("bus: a malformed notice was ignored", "session", sessionID, "error", err)
			return
		}
		select {
		case f.live <- n:
		default: // the listener is slow: it still takes what nod has kept, but may miss a NoticeShown
		}
	})
	return f, err
}

// next waits for a notice until ctx ends. Its result may be empty even before that.
func (f *noticeFeed) next(ctx context.Context) ([]schemas.Notice, error) {
	select {
	case n := <-f.live:
		if n.Kind == schemas.NoticeShown {
			return []schemas.Notice{n}, nil
		}
		return f.kept()
	case <-ctx.Done():
		return nil, nil
	}
}
