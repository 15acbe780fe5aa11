package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// foreground finds the session in whose place a background one asks: the most
// recently active one of the same agent and user. Of the tiers of timeouts, the
// one that somebody is at counts. Sessions without a user are of one user only
// where the agent names none at all; else they may be anybody's.
func (e *Engine) foreground(ctx context.Context, a *asked) error {
	if !a.held.session.Background || a.foreground != "" {
		return nil
	}
	e.storeActive(ctx)
	latest, err := e.latest(ctx, a.agent)
	if err != nil {
		return err
	}
	user := a.held.session.User
	if user == "" && slices.ContainsFunc(latest, func(s schemas.Session) bool { return s.User != "" }) {
		latest = nil
	}
	for _, s := range latest {
		if s.User != "" && s.User != user {
			continue
		}
		now, err := e.heldBy(ctx, a.agent, s.SessionID)
		if err != nil {
			return err
		}
		if now.session.Background || now.session.Agent != a.agent || now.session.User != user { // the note may be older
			continue
		}
		a.foreground = s.SessionID
		a.held.lock, err = e.lockOf(ctx, s.SessionID)
		return err
	}
	return schemas.Errorf(schemas.CodeUndeliverable, "No foreground agent available.")
}

// latest are the notes of an agent's active sessions, the newest first.
func (e *Engine) latest(ctx context.Context, agent string) ([]schemas.Session, error) {
	keys, err := e.store.Presence.Listed(ctx, activeKey(agent, "*"))
	if err != nil {
		return nil, err
	}
	var notes []schemas.Session
	for _, key := range keys {
		var s schemas.Session
		_, err := e.store.Presence.Get(ctx, key, &s)
		if errors.Is(err, bus.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		notes = append(notes, s)
	}
	slices.SortFunc(notes, func(a, b schemas.Session) int { return b.ActiveAt.Compare(a.ActiveAt) })
	return notes, nil
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
