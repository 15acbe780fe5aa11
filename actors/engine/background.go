package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// chooseForeground sets the foreground session that shows a background session's request: the last
// active session of the same agent and user. The input lock of the foreground session decides which
// timeout the request gets. A background session without a user gets a foreground session only if no
// active session of the agent has a user. The error is UNDELIVERABLE if no session fits.
func (e *intake) chooseForeground(ctx context.Context, s *askState) (result, error) {
	if !s.held.session.Background || s.plan.foreground.session != "" {
		return result{}, nil
	}
	e.storeActivities(ctx)
	active, err := e.holdings.activeSessions(ctx, s.agent)
	if err != nil {
		return result{}, err
	}
	user := s.held.session.User
	if user == "" && slices.ContainsFunc(active, func(other schemas.Session) bool { return other.User != "" }) {
		active = nil
	}
	for _, other := range active {
		if other.User != "" && other.User != user {
			continue
		}
		now, err := e.holdings.entitlementsOf(ctx, s.agent, other.SessionID)
		if err != nil {
			return result{}, err
		}
		if now.session.Background || now.session.Agent != s.agent || now.session.User != user { // the session has changed since its activity was stored
			continue
		}
		lock, err := e.holdings.lockOf(ctx, other.SessionID)
		s.plan.foreground = foreground{other.SessionID, lock}
		return result{}, err
	}
	return result{}, schemas.Errorf(schemas.CodeUndeliverable, "No foreground agent available.")
}

// activeSessions returns the foreground sessions in which an agent made requests within activeKept, the
// most recently active one first. Each has the state of its last stored activity.
func (e *holdings) activeSessions(ctx context.Context, agent string) ([]schemas.Session, error) {
	keys, err := e.store.Presence.ListKeys(ctx, activeKey(agent, "*"))
	if err != nil {
		return nil, err
	}
	var sessions []schemas.Session
	for _, key := range keys {
		var s schemas.Session
		_, err := e.store.Presence.Get(ctx, key, &s)
		if errors.Is(err, bus.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, s)
	}
	slices.SortFunc(sessions, func(a, b schemas.Session) int { return b.ActiveAt.Compare(a.ActiveAt) })
	return sessions, nil
}

// notifyForeground sends a notice to the foreground session that shows a background session's
// request. It does nothing for the request of a foreground session.
func (e *effects) notifyForeground(ctx context.Context, rec *schemas.Record, p *schemas.Prompt) error {
	if rec.Foreground == "" {
		return nil
	}
	what := fmt.Sprintf("%q", p.Request.Title)
	if p.Request.Kind == schemas.KindToolCall { // the titles of all tool calls are the same
		what = "a call of " + p.Request.ToolName
	}
	kind, text := schemas.NoticeAsked, fmt.Sprintf("The background session %s asks a person about %s. See nod show %s.", p.SessionID, what, p.PendingID)
	if d := rec.Decision; d != nil {
		outcome := strings.ReplaceAll(string(d.Outcome), "_", " ")
		kind, text = schemas.NoticeDecided, fmt.Sprintf("What the background session %s asked about %s is decided: %s. See nod show %s.", p.SessionID, what, outcome, p.PendingID)
	}
	return e.notify(ctx, rec.Agent, rec.Foreground, p.PendingID, kind, text)
}
