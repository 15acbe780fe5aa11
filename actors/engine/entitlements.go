package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

func (e *base) loadSession(ctx context.Context, key string, _ *reading[schemas.Session]) (schemas.Session, uint64, error) {
	var s schemas.Session
	revision, err := e.store.Sessions.Get(ctx, key, &s)
	s.Revision = revision
	return s, revision, err
}

// loadLock reads a session's input lock from the store, for the cache; nil means that no client
// holds it.
func (e *base) loadLock(ctx context.Context, key string, _ *reading[*schemas.Lock]) (*schemas.Lock, uint64, error) {
	var lock schemas.Lock
	revision, err := e.store.Presence.Get(ctx, key, &lock)
	if errors.Is(err, bus.ErrNotFound) {
		return nil, revision, nil
	}
	return &lock, revision, err
}

// requireSession returns a session for an agent's request. It gives a session without an owner
// to this agent, and a session without a user to the given user. The error is NOT_FOUND if the
// session belongs to another agent.
func (e *holdings) requireSession(ctx context.Context, agent, session, user string) (schemas.Session, error) {
	known, ok := e.sessionCache.current(sessionKey(session))
	s := known.value
	if !ok || s.Agent == "" || s.Agent == agent && lacksUser(&s, user) {
		var err error
		if s, err = e.claimSession(ctx, agent, session, user); err != nil {
			return s, err
		}
	}
	if s.Agent != agent {
		return schemas.Session{}, schemas.Errorf(schemas.CodeNotFound, "session %s belongs to another agent: use a session of your own", session)
	}
	return s, nil
}

// storeSession changes a stored session by compare-and-set, and returns it with its revision.
// The function edit gets a new session if none is stored.
func (e *holdings) storeSession(ctx context.Context, id string, edit func(*schemas.Session) (bus.Edit, error)) (schemas.Session, error) {
	defer e.sessionCache.forget(sessionKey(id))
	s, revision, err := bus.Change(ctx, e.store.Sessions, sessionKey(id), func(s *schemas.Session, found bool) (bus.Edit, error) {
		if !found {
			*s = schemas.Session{Type: schemas.TypeSession, SessionID: id, CreatedAt: e.clock.now()}
		}
		s.Revision = 0
		return edit(s)
	})
	s.Revision = revision
	return s, err
}

// entitlements holds the permissions and standing answers of a session and of its agent.
type entitlements struct {
	session  schemas.Session
	revision uint64
	own      *answers // the standing answers of the session
	agents   *answers // the standing answers of the session's agent
	// perms holds the answers in force that name permissions. For each answer in perms, sources lists
	// by grant_id the answers from which it was directly or indirectly shared.
	perms   []*standingEntry
	sources map[string][]*standingEntry
}

// entitlementsOf returns the entitlements of a session and its agent. They may come from caches
// and be slightly out of date, so an allow by them must be confirmed at the stores.
func (e *holdings) entitlementsOf(ctx context.Context, agent, session string) (entitlements, error) {
	var h entitlements
	owns := async(func() (err error) { h.own, err = e.answersOf(ctx, sessionKey(session)); return err })
	h.agents = collect(nil, time.Time{})
	agents := func() error { return nil }
	if agent != "" { // a new session has no agent
		agents = async(func() (err error) { h.agents, err = e.answersOf(ctx, agentKey(agent)); return err })
	}
	known, err := e.sessionCache.get(ctx, sessionKey(session))
	if err := errors.Join(ignoreNotFound(err), owns(), agents()); err != nil {
		return entitlements{}, err
	}
	h.session, h.revision = known.value, known.revision
	h.perms, h.sources, err = e.withLiveSources(ctx, slices.Concat(h.agents.perms, h.own.perms))
	return h, err
}

// live returns the standing answers in force of the session and its agent, oldest first. A shared
// answer is in force only while all answers from which it was shared are in force.
func (h *entitlements) live(now time.Time) []schemas.StandingAnswer {
	all := answersIn(h.perms)
	for _, of := range []*answers{h.own, h.agents} {
		for _, s := range of.byID {
			if len(s.Permissions) == 0 && s.Live(now) {
				all = append(all, s.StandingAnswer)
			}
		}
	}
	slices.SortFunc(all, func(a, b schemas.StandingAnswer) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all
}

// beginEntitlements starts to read the entitlements of a request's session, the session's input lock
// and the number of its pending questions. The caller must call the returned function once; it waits
// for the results and returns them.
func (e *holdings) beginEntitlements(ctx context.Context, s *askState) (wait func() (entitlements, attendance, error)) {
	var held entitlements
	var at attendance
	session := s.request.SessionID
	reads := []func() error{
		async(func() (err error) { at.lock, err = e.lockOf(ctx, session); return err }),
		async(func() (err error) { held, err = e.entitlementsOf(ctx, s.agent, session); return err }),
		async(func() (err error) { at.open, err = e.counts.of(ctx, session); return err }),
	}
	return func() (entitlements, attendance, error) {
		var errs []error
		for _, read := range reads {
			errs = append(errs, read())
		}
		return held, at, errors.Join(errs...)
	}
}

// lockOf returns a session's input lock, or nil if no client holds it. A cached lock is read
// again, because the broker does not report the expiry of a lock.
func (e *holdings) lockOf(ctx context.Context, session string) (*schemas.Lock, error) {
	key := lockKey(session)
	if known, ok := e.lockCache.current(key); ok && known.value == nil {
		return nil, nil
	}
	known, err := e.lockCache.renew(ctx, key)
	return known.value, err
}

// async runs f in a goroutine. The caller must call the returned function once; it waits for f and
// returns the error of f.
func async(f func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() error { return <-done }
}

func ignoreNotFound(err error) error {
	if errors.Is(err, bus.ErrNotFound) {
		return nil
	}
	return err
}
