package bus

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/nodbus/nod/schemas"
)

// TakeNotices returns the notices that nod keeps for a session of the agent, oldest first. nod then
// forgets them, even if the reply is lost.
func (a *Asker) TakeNotices(ctx context.Context, sessionID string) ([]schemas.Notice, error) {
	var reply schemas.Notices
	err := a.conn.CallInto(ctx, schemas.NoticesSubject(a.agent), schemas.Query{Type: schemas.TypeQuery, SessionID: sessionID}, &reply)
	if err != nil {
		return nil, fmt.Errorf("take the notices of session %s: %w", sessionID, err)
	}
	return reply.Notices, nil
}

// Notices calls heard for each notice of a session, one after another, until stop is called. The first
// notices are those that nod has kept. After stop, heard may be running for the last time.
func (a *Asker) Notices(sessionID string, heard func(schemas.Notice)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	l := &noticeListener{asker: a, session: sessionID, heard: heard}
	unsub, err := a.conn.Subscribe(schemas.NoticeSubject(a.agent, sessionID), func(m Message) {
		var n schemas.Notice
		if err := schemas.Load(m.Data, &n); err != nil {
			a.conn.log.Warn("bus: a malformed notice was ignored", "session", sessionID, "error", err)
			return
		}
		l.pass(n)
		if n.Kind != schemas.NoticeShown {
			l.passKept(ctx)
		}
	})
	if err != nil {
		cancel()
		return nil, err
	}
	go l.passKept(ctx)
	return func() { unsub(); cancel() }, nil
}

// noticeListener passes on each notice once, although nod both sends and keeps most of them.
type noticeListener struct {
	asker   *Asker
	session string

	mu     sync.Mutex
	heard  func(schemas.Notice)
	passed []schemas.Notice // the last ones, at most as many as nod keeps
}

func (l *noticeListener) pass(n schemas.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(l.passed, n) {
		return
	}
	l.passed = append(l.passed, n)
	l.passed = l.passed[max(0, len(l.passed)-schemas.MaxNotices):]
	l.heard(n)
}

// passKept passes on the notices that nod has kept. If it cannot get them, nod keeps them for later.
func (l *noticeListener) passKept(ctx context.Context) {
	kept, err := l.asker.TakeNotices(ctx, l.session)
	if err != nil && ctx.Err() == nil {
		l.asker.conn.log.Info("bus: the notices of a session could not be read", "session", l.session, "error", err)
	}
	for _, n := range kept {
		l.pass(n)
	}
}
