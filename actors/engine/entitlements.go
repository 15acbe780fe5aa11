package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// loadSession reads a session or an agent's key from the store, for the cache.
func (e *base) loadSession(ctx context.Context, key string, _ *reading[schemas.Session]) (schemas.Session, uint64, error) {
	var s schemas.Session
	revision, err := e.store.Sessions.Get(ctx, key, &s)
	s.Revision = revision
	return s, revision, err
}

// loadLock reads the input lock of a session from the store, for the cache: nil if no client
// holds it.
func (e *base) loadLock(ctx context.Context, key string, _ *reading[*schemas.Lock]) (*schemas.Lock, uint64, error) {
	var lock schemas.Lock
	revision, err := e.store.Presence.Get(ctx, key, &lock)
	if errors.Is(err, bus.ErrNotFound) {
		return nil, revision, nil
	}
	return &lock, revision, err
}

// requireSession returns the session if it belongs to the agent. A session belongs to the
// first agent that uses it; any other agent gets NOT_FOUND.
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
		return schemas.Session{}, schemas.Errorf(schemas.CodeNotFound, "no session %s is known", session)
	}
	return s, nil
}

// putSession writes the value of a session's or an agent's key, if the key is still at
// revision.
func (e *holdings) putSession(ctx context.Context, key string, v any, revision uint64, kept time.Duration) (uint64, error) {
	defer e.sessionCache.forget(key)
	return e.store.Sessions.Put(ctx, key, v, revision, kept)
}

// entitlements are the permissions and standing answers that apply to a session: its own
// and its agent's.
type entitlements struct {
	session schemas.Session
	// revision is that of the stored session.
	revision uint64
	own      *answers // of the session
	agents   *answers // of its agent
	// perms are the live answers of both that name permissions. sources are, by grant_id,
	// the answers from which each was shared, directly or not.
	perms   []*standingEntry
	sources map[string][]*standingEntry
}

// entitlementsOf returns the entitlements of a session and its agent. They may be out of
// date for a moment, so an allow by them has to be confirmed.
func (e *holdings) entitlementsOf(ctx context.Context, agent, session string) (entitlements, error) {
	var h entitlements
	owns := async(func() (err error) { h.own, err = e.answersOf(ctx, sessionKey(session)); return err })
	h.agents = collect(nil, time.Time{})
	agents := func() error { return nil }
	if agent != "" { // no agent has used the session yet
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

// live returns the standing answers of the session and its agent that are in force. An
// answer shared from others is in force only while those are.
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

// beginEntitlements starts reading the entitlements of a request's session, its input
// lock and the number of its pending questions. wait returns them.
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

// lockOf returns a session's lock, or nil if no client holds it. A held lock is always read
// from the store, because the broker does not report its expiry.
func (e *holdings) lockOf(ctx context.Context, session string) (*schemas.Lock, error) {
	key := lockKey(session)
	if known, ok := e.lockCache.current(key); ok && known.value == nil {
		return nil, nil
	}
	known, err := e.lockCache.renew(ctx, key)
	return known.value, err
}

// async runs f in a goroutine. The caller must call wait once; it returns f's error.
func async(f func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() error { return <-done }
}

// ignoreNotFound returns err, or nil if the key has no value.
func ignoreNotFound(err error) error {
	if errors.Is(err, bus.ErrNotFound) {
		return nil
	}
	return err
}
