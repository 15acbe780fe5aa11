package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// knownKept bounds the entries of a cache. knownFor bounds the age of an entry,
	// because a watch can stop without an error, for example if its stream has lost its
	// newest messages.
	knownKept = 16384
	knownFor  = 15 * time.Second
)

// sessionCache caches sessions, and which input locks are free, until this engine changes
// them or the broker reports a change. It may be out of date for a moment, so an allow by
// a session's permissions is confirmed at the store first. The owner's change of a
// session returns only when every engine has received it.
type sessionCache struct {
	mu       sync.Mutex
	sessions map[string]cacheEntry // by key; under a lock's key: no client holds the lock
	readings map[string]uint64     // by key, the number of the newest reading in progress
	begun    uint64                // the number of readings begun
	revision uint64                // of the newest change that the broker has reported
	unsure   time.Time             // reports of changes may be lost until then
}

// cacheEntry is a session, and the time until which it may be used.
type cacheEntry struct {
	session schemas.Session
	until   time.Time
}

// session returns the session cached under a key, and whether there is one.
func (k *sessionCache) session(key string) (schemas.Session, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.sessions[key]
	if !ok || !time.Now().Before(r.until) {
		return schemas.Session{}, false
	}
	return r.session, true
}

// reading announces that the caller now reads a key. The caller passes the value to keep,
// which caches it unless the key has changed since.
func (k *sessionCache) reading(key string) (keep func(schemas.Session)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.readings == nil || len(k.readings) >= knownKept { // some readings fail, and are never kept
		k.readings = map[string]uint64{}
	}
	k.begun++
	begun, until := k.begun, time.Now().Add(knownFor)
	k.readings[key] = begun
	return func(s schemas.Session) { k.remember(key, cacheEntry{s, until}, begun) }
}

func (k *sessionCache) remember(key string, r cacheEntry, begun uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.readings[key] != begun || time.Now().Before(k.unsure) {
		return
	}
	delete(k.readings, key)
	if k.sessions == nil || len(k.sessions) >= knownKept {
		k.sessions = map[string]cacheEntry{}
	}
	k.sessions[key] = r
}

// changed drops a key when the broker reports a change of it.
func (k *sessionCache) changed(key string, revision uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.revision = max(k.revision, revision)
	k.drop(key)
}

// forget drops a key that this engine changes, without waiting for the broker's report.
func (k *sessionCache) forget(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(key)
}

func (k *sessionCache) drop(key string) {
	delete(k.sessions, key)
	delete(k.readings, key)
}

// missed drops all entries, because reports of changes may have been lost; further
// reports may be lost for staleAfter.
func (k *sessionCache) missed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions, k.readings, k.unsure = nil, nil, time.Now().Add(staleAfter)
}

func (k *sessionCache) newest() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.revision
}

// requireSession returns the session if it belongs to the agent. A session belongs to the
// first agent that uses it; any other agent gets NOT_FOUND.
func (e *holdings) requireSession(ctx context.Context, agent, session, user string) (schemas.Session, error) {
	s, ok := e.cache.session(sessionKey(session))
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
	defer e.cache.forget(key)
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
	var known bool
	if h.session, known = e.cache.session(sessionKey(session)); !known {
		keep := e.cache.reading(sessionKey(session))
		revision, err := e.store.Sessions.Get(ctx, sessionKey(session), &h.session)
		h.session.Revision = revision
		if err == nil {
			keep(h.session)
		}
		if err := errors.Join(ignoreNotFound(err), owns(), agents()); err != nil {
			return entitlements{}, err
		}
	} else if err := errors.Join(owns(), agents()); err != nil {
		return entitlements{}, err
	}
	h.revision = h.session.Revision
	var err error
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

// lockOf returns a session's lock, or nil if no client holds it.
func (e *holdings) lockOf(ctx context.Context, session string) (*schemas.Lock, error) {
	key := lockKey(session)
	if _, nobody := e.cache.session(key); nobody {
		return nil, nil
	}
	var lock schemas.Lock
	keep := e.cache.reading(key)
	_, err := e.store.Presence.Get(ctx, key, &lock)
	if errors.Is(err, bus.ErrNotFound) {
		keep(schemas.Session{})
		return nil, nil
	}
	return &lock, err
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
