package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

func lockKey(session string) string           { return "lock." + session }
func clientKey(session, client string) string { return "client." + session + "." + client }

// presence takes what a client says of itself, and answers who holds the
// session's input lock.
func (e *Engine) presence(ctx context.Context, c *bus.Call) error {
	var p schemas.Presence
	if err := schemas.Decode(c.Data, &p); err != nil {
		return err
	}
	approver, err := e.approver(ctx, c.Tokens[0], p.From.UserID)
	if err != nil {
		return err
	}
	if p.Op == schemas.PresenceLock {
		if err := e.mayLock(ctx, &approver, p.SessionID); err != nil {
			return err
		}
	}
	mine := schemas.Lock{Type: schemas.TypeLock, Granted: true, Holder: approver.Name, ClientID: p.ClientID, Kind: p.Kind}
	for {
		held, err := e.updateLock(ctx, &p, mine)
		if errors.Is(err, bus.ErrMoved) {
			continue
		}
		if err != nil {
			return err
		}
		c.Reply(held)
		return nil
	}
}

// mayLock refuses the lock of a session to somebody who decides about nothing of
// its agent's. Which project and host it is about, and of what risk, only each
// request tells: see approverPresent.
func (e *Engine) mayLock(ctx context.Context, who *schemas.Approver, session string) error {
	if len(who.For.Agents) == 0 {
		return nil
	}
	var s schemas.Session
	_, err := e.store.Sessions.Get(ctx, sessionKey(session), &s)
	if errors.Is(err, bus.ErrNotFound) || err == nil && s.Agent == "" {
		return nil // nobody asks in it yet
	}
	if err != nil {
		return err
	}
	if !policy.Matches(schemas.PolicyMatch{Agents: who.For.Agents}, s.Agent, "", "") {
		return schemas.Errorf(schemas.CodeForbidden, "%s decides about nothing that agent %s asks, and so may not hold this session's lock", who.Name, s.Agent)
	}
	return nil
}

// lock is the input lock that counts for a request: that of the session in whose place
// it asks, or of its own; nil if no client holds it.
func (s *askState) lock() *schemas.Lock {
	if s.plan.foreground.session != "" {
		return s.plan.foreground.lock
	}
	return s.attendance.lock
}

// approverPresent reports whether the holder of the session's lock may decide about the
// request. The presence of anybody else brings its answer no nearer.
func (s *askState) approverPresent() bool {
	lock := s.lock()
	if lock == nil {
		return false
	}
	people := s.settings.settings.People()
	i := slices.IndexFunc(people, func(p schemas.Approver) bool { return p.Name == lock.Holder })
	return i >= 0 && mayDecide(&people[i], s.agent, &s.request, s.verdict.Risk)
}

// updateLock does one operation at the revisions it reads. ErrMoved asks to repeat.
func (e *Engine) updateLock(ctx context.Context, p *schemas.Presence, mine schemas.Lock) (schemas.Lock, error) {
	if err := e.renewClient(ctx, p, mine); err != nil {
		return mine, err
	}
	var held schemas.Lock
	revision, err := e.store.Presence.Get(ctx, lockKey(p.SessionID), &held)
	free := errors.Is(err, bus.ErrNotFound)
	if err != nil && !free {
		return mine, err
	}
	defer e.cache.forget(lockKey(p.SessionID))
	ours := !free && held.ClientID == p.ClientID && held.Holder == mine.Holder
	switch {
	case ours && (p.Op == schemas.PresenceUnlock || p.Op == schemas.PresenceLeave):
		return schemas.Lock{Type: schemas.TypeLock}, e.store.Presence.Remove(ctx, lockKey(p.SessionID), revision)
	case ours && p.Op != schemas.PresenceJoin, free && p.Op == schemas.PresenceLock:
		mine.LeaseUntil = e.clock.now().Add(e.Lease)
		_, err = e.store.Presence.Put(ctx, lockKey(p.SessionID), mine, revision, e.Lease)
		return mine, err
	case free:
		return schemas.Lock{Type: schemas.TypeLock}, nil
	}
	held.Granted = ours
	return held, nil
}

// renewClient keeps or ends the client's own lease.
func (e *Engine) renewClient(ctx context.Context, p *schemas.Presence, mine schemas.Lock) error {
	key := clientKey(p.SessionID, p.ClientID)
	var was schemas.Lock
	revision, err := e.store.Presence.Get(ctx, key, &was)
	if err != nil && !errors.Is(err, bus.ErrNotFound) {
		return err
	}
	if p.Op == schemas.PresenceLeave {
		if err != nil {
			return nil
		}
		return e.store.Presence.Remove(ctx, key, revision)
	}
	mine.Granted, mine.LeaseUntil = false, e.clock.now().Add(e.Lease)
	_, err = e.store.Presence.Put(ctx, key, mine, revision, e.Lease)
	return err
}
