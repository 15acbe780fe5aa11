package engine

import (
	"context"
	"errors"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// activeEvery is how exactly it is known when a session was last active.
	activeEvery = 30 * time.Second
	// activeKept is how long a session that was active counts as a foreground.
	activeKept = 24 * time.Hour
	// activeWithin bounds the noting of it, which nobody waits for.
	activeWithin = 5 * time.Second
)

func activeKey(agent, session string) string { return "active." + agent + "." + session }

// active notes, now and then, that a foreground session asks. A note that is
// lost is made again.
func (e *Engine) active(known schemas.Session) {
	session, agent := known.SessionID, known.Agent
	if known.Background || !e.known.noteDue(session) {
		return
	}
	e.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), activeWithin)
		defer cancel()
		var s schemas.Session
		revision, err := e.store.Presence.Get(ctx, activeKey(agent, session), &s)
		if err == nil || errors.Is(err, bus.ErrNotFound) {
			now := e.clock.now()
			s = schemas.Session{Type: schemas.TypeSession, SessionID: session, Agent: agent, User: known.User, CreatedAt: now, ActiveAt: now}
			_, err = e.store.Presence.Put(ctx, activeKey(agent, session), s, revision, activeKept)
		}
		if err != nil && !errors.Is(err, bus.ErrMoved) { // then another engine has noted it
			e.Log.Info("engine: that a session is active was not noted; it will be", "session", session, "error", err)
		}
	})
}

// foreground finds the session in whose place a background one asks: the most
// recently active one of the same agent and user. Of the tiers of timeouts, the
// one that somebody is at counts.
func (e *Engine) foreground(ctx context.Context, a *asked) error {
	if !a.held.session.Background || a.foreground != "" {
		return nil
	}
	keys, err := e.store.Presence.Listed(ctx, activeKey(a.agent, "*"))
	if err != nil {
		return err
	}
	var latest time.Time
	for _, key := range keys {
		var s schemas.Session
		_, err := e.store.Presence.Get(ctx, key, &s)
		if err != nil && !errors.Is(err, bus.ErrNotFound) {
			return err
		}
		if err != nil || s.User != a.held.session.User || !s.ActiveAt.After(latest) {
			continue
		}
		now, err := e.heldBy(ctx, a.agent, s.SessionID, false)
		if err != nil {
			return err
		}
		if now.session.Background || now.session.Agent != a.agent {
			continue
		}
		latest, a.foreground, a.held.lock = s.ActiveAt, s.SessionID, now.lock
	}
	if a.foreground == "" {
		return schemas.Errorf(schemas.CodeUndeliverable, "No foreground agent available.")
	}
	return nil
}

// tellForeground tells the session in whose place a background one asks.
func (e *Engine) tellForeground(rec *schemas.Record, p *schemas.Prompt) error {
	if rec.Foreground == "" {
		return nil
	}
	kind, text := schemas.NoticeAsked, "Background agent "+p.SessionID+" asks: "+p.Request.Title
	if d := rec.Decision; d != nil {
		kind, text = schemas.NoticeDecided, "Background agent "+p.SessionID+" was answered: "+p.Request.Title+": "+string(d.Outcome)
	}
	return e.notify(rec.Agent, rec.Foreground, p.PendingID, kind, text)
}
