package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

func lockKey(session string) string           { return "lock." + session }
func clientKey(session, client string) string { return "client." + session + "." + client }

// presence renews or ends a client's lease. It takes or releases the session's input lock for
// the client, and replies with the holder of the lock.
func (e *connectors) presence(ctx context.Context, c *caller, p *schemas.Presence) (schemas.Lock, error) {
	approver, err := e.approver(ctx, c.name, &p.From)
	if err != nil {
		return schemas.Lock{}, err
	}
	if p.Op == schemas.PresenceLock {
		if err := e.mayLock(ctx, &approver, p.SessionID); err != nil {
			return schemas.Lock{}, err
		}
	}
	mine := schemas.Lock{Type: schemas.TypeLock, Granted: true, Holder: approver.Name, ClientID: p.ClientID, Kind: p.Kind}
	if approver.ByLogin {
		mine.From = &p.From
	}
	if err := e.renewClient(ctx, p, mine); err != nil {
		return schemas.Lock{}, err
	}
	return e.updateLock(ctx, p, mine)
}

// mayLock returns FORBIDDEN if the settings do not let a person decide any request of the
// session's agent. Limits by project, host and risk are checked at each request.
func (e *connectors) mayLock(ctx context.Context, who *schemas.Approver, session string) error {
	if len(who.For.Agents) == 0 {
		return nil
	}
	var s schemas.Session
	_, err := e.store.Sessions.Get(ctx, sessionKey(session), &s)
	if errors.Is(err, bus.ErrNotFound) || err == nil && s.Agent == "" {
		return nil // a new session has no agent yet
	}
	if err != nil {
		return err
	}
	if !rules.Matches(schemas.PolicyMatch{Agents: who.For.Agents}, s.Agent, "", "") {
		return schemas.Errorf(schemas.CodeForbidden, "%s may decide no request of agent %s, and so may not hold this session's lock", who.Name, s.Agent)
	}
	return nil
}

// lock returns the input lock of the session that shows the request, or nil if no client holds it. The
// request of a background session is shown by a foreground session.
func (s *askState) lock() *schemas.Lock {
	if s.plan.foreground.session != "" {
		return s.plan.foreground.lock
	}
	return s.attendance.lock
}

// approverPresent reports whether the holder of the input lock may decide about the request.
func (s *askState) approverPresent() bool {
	lock := s.lock()
	if lock == nil {
		return false
	}
	if lock.From != nil {
		who, ok := s.settings.settings.Approver(schemas.ConnectorWeb, *lock.From)
		return ok && mayDecide(&who, s.agent, &s.request, s.verdict.Risk)
	}
	people := s.settings.settings.People()
	i := slices.IndexFunc(people, func(p schemas.Approver) bool { return p.Name == lock.Holder })
	return i >= 0 && mayDecide(&people[i], s.agent, &s.request, s.verdict.Risk)
}

func (e *connectors) updateLock(ctx context.Context, p *schemas.Presence, mine schemas.Lock) (schemas.Lock, error) {
	defer e.lockCache.forget(lockKey(p.SessionID))
	lock, _, err := bus.Change(ctx, e.store.Presence, lockKey(p.SessionID), func(lock *schemas.Lock, found bool) (bus.Edit, error) {
		ours := found && lock.ClientID == p.ClientID && lock.Holder == mine.Holder
		switch {
		case ours && (p.Op == schemas.PresenceUnlock || p.Op == schemas.PresenceLeave):
			*lock = schemas.Lock{Type: schemas.TypeLock}
			return bus.Edit{Remove: true}, nil
		case ours && p.Op != schemas.PresenceJoin, !found && p.Op == schemas.PresenceLock:
			*lock = mine
			lock.LeaseUntil = e.clock.now().Add(e.Lease)
			return bus.Edit{Store: true, Kept: e.Lease}, nil
		case !found:
			*lock = schemas.Lock{Type: schemas.TypeLock}
		default:
			lock.Granted = ours
		}
		return bus.Edit{}, nil
	})
	if err != nil {
		return schemas.Lock{}, err
	}
	lock.From = nil
	return lock, nil
}

func (e *connectors) renewClient(ctx context.Context, p *schemas.Presence, mine schemas.Lock) error {
	_, _, err := bus.Change(ctx, e.store.Presence, clientKey(p.SessionID, p.ClientID), func(lease *schemas.Lock, _ bool) (bus.Edit, error) {
		if p.Op == schemas.PresenceLeave {
			return bus.Edit{Remove: true}, nil
		}
		*lease = mine
		lease.Granted, lease.LeaseUntil = false, e.clock.now().Add(e.Lease)
		return bus.Edit{Store: true, Kept: e.Lease}, nil
	})
	return err
}
