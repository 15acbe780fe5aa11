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
	// knownKept bounds what is remembered, and knownFor for how long: a watch can
	// fall silent without a word, such as one of a stream that has lost its tail.
	knownKept = 16384
	knownFor  = 15 * time.Second
)

// sessionCache remembers sessions as they were read, and which locks are free, for a while,
// until this engine changes them or the broker says that another has. It may be a
// moment old: nothing is allowed by what a session holds before that was confirmed.
// Whoever changes what the owner may change of a session waits until every engine
// has heard of it.
type sessionCache struct {
	mu       sync.Mutex
	sessions map[string]cacheEntry // by key; of a lock's key, that no client holds it
	readings map[string]uint64     // those on their way, by key: the last begun
	begun    uint64                // how many readings were begun
	revision uint64                // the newest change that was heard of
	unsure   time.Time             // changes may be missed until then
}

// cacheEntry is a session as it was read, and until when that counts.
type cacheEntry struct {
	session schemas.Session
	until   time.Time
}

// session is what is known under a key, and whether anything is.
func (k *sessionCache) session(key string) (schemas.Session, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.sessions[key]
	if !ok || !time.Now().Before(r.until) {
		return schemas.Session{}, false
	}
	return r.session, true
}

// reading says that a key is about to be read. What was read is to be kept, and is
// where the key has not changed meanwhile.
func (k *sessionCache) reading(key string) (keep func(schemas.Session)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.readings == nil || len(k.readings) >= knownKept { // some have failed and keep nothing
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

// changed forgets a key of which the broker says that it has changed.
func (k *sessionCache) changed(key string, revision uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.revision = max(k.revision, revision)
	k.drop(key)
}

// forget forgets a key that this engine changes: it need not wait to hear of that.
func (k *sessionCache) forget(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(key)
}

func (k *sessionCache) drop(key string) {
	delete(k.sessions, key)
	delete(k.readings, key)
}

// missed forgets everything: changes may have gone by, and may still.
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

// requireSession makes sure that the session is the agent's, and returns what is known of
// it: it belongs to whoever first asks in it, and to others it does not exist.
func (e *Engine) requireSession(ctx context.Context, agent, session, user string) (schemas.Session, error) {
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

// putSession writes what is under a session's or an agent's key, if that is still
// at revision.
func (e *Engine) putSession(ctx context.Context, key string, v any, revision uint64, kept time.Duration) (uint64, error) {
	defer e.cache.forget(key)
	return e.store.Sessions.Put(ctx, key, v, revision, kept)
}

// entitlements are what an asker holds and who is there.
type entitlements struct {
	session schemas.Session
	// revision is the session's, as it was read.
	revision uint64
	own      *answers // of the session
	agents   *answers // of its agent
	// perms are the live answers of both that name permissions, and sources what each
	// was shared of, and that of, by its grant_id.
	perms   []*standingEntry
	sources map[string][]*standingEntry
}

// entitlementsOf is what a session and its agent hold. It may be a moment old: an allow that
// rests on it is confirmed.
func (e *Engine) entitlementsOf(ctx context.Context, agent, session string) (entitlements, error) {
	var h entitlements
	owns := async(func() (err error) { h.own, err = e.answersOf(ctx, sessionKey(session)); return err })
	h.agents = collect(nil, time.Time{})
	agents := func() error { return nil }
	if agent != "" { // nobody has asked in the session yet
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

// live are the standing answers of both that hold, as far as they rest on live ones.
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

// beginEntitlements begins to read the entitlements of a request's session, its input
// lock and the number of its pending questions.
func (e *Engine) beginEntitlements(ctx context.Context, s *askState) (wait func() (entitlements, attendance, error)) {
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

// lockOf is who holds a session's lock, or nil.
func (e *Engine) lockOf(ctx context.Context, session string) (*schemas.Lock, error) {
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

// async runs f beside the caller, who waits for its end once.
func async(f func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() error { return <-done }
}

// ignoreNotFound is err, but nil where there is only nothing to read.
func ignoreNotFound(err error) error {
	if errors.Is(err, bus.ErrNotFound) {
		return nil
	}
	return err
}
