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

// known remembers sessions, and what agents hold, as they were read at the leader,
// for a while, until this engine changes them or the broker says that another has.
// What it tells may be a moment old: that there is something is no reason to allow
// anything, which is read then; that there is nothing is one to ask a person,
// which at worst is once too often. Whoever changes what the owner may change of a
// session waits until every engine has heard of it.
type known struct {
	mu       sync.Mutex
	sessions map[string]read   // by key; of an agent's key its grants alone, of a lock's that nobody holds it
	readings map[string]uint64 // those on their way, by key: the last begun
	begun    uint64            // how many readings were begun
	revision uint64            // the newest change that was heard of
	unsure   time.Time         // changes may be missed until then
}

// read is a session as it was read, and until when that counts.
type read struct {
	session schemas.Session
	until   time.Time
}

// session is what is known under a key, and whether anything is.
func (k *known) session(key string) (schemas.Session, bool) {
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
func (k *known) reading(key string) (keep func(schemas.Session)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.readings == nil || len(k.readings) >= knownKept { // some have failed and keep nothing
		k.readings = map[string]uint64{}
	}
	k.begun++
	begun, until := k.begun, time.Now().Add(knownFor)
	k.readings[key] = begun
	return func(s schemas.Session) { k.remember(key, read{s, until}, begun) }
}

func (k *known) remember(key string, r read, begun uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.readings[key] != begun || time.Now().Before(k.unsure) {
		return
	}
	delete(k.readings, key)
	if k.sessions == nil || len(k.sessions) >= knownKept {
		k.sessions = map[string]read{}
	}
	k.sessions[key] = r
}

// changed forgets a key of which the broker says that it has changed.
func (k *known) changed(key string, revision uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.revision = max(k.revision, revision)
	k.drop(key)
}

// forget forgets a key that this engine changes: it need not wait to hear of that.
func (k *known) forget(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(key)
}

func (k *known) drop(key string) {
	delete(k.sessions, key)
	delete(k.readings, key)
}

// nothing is a session of which it is known that it and its agent hold nothing, and
// that nothing was said in it before that settles a call.
func (k *known) nothing(agent, session string, now time.Time) (schemas.Session, bool) {
	s, ok := k.session(sessionKey(session))
	if !ok || s.Permissions != nil {
		return s, false
	}
	agents, ok := k.session(agentKey(agent))
	counts := func(g schemas.StandingAnswer) bool { return g.Live(now) || g.Once != nil }
	return s, ok && !slices.ContainsFunc(s.Grants, counts) && !slices.ContainsFunc(agents.Grants, counts) &&
		!slices.ContainsFunc(s.Denials, func(d schemas.Denial) bool { return now.Before(d.Until) }) &&
		!slices.ContainsFunc(s.Detached, func(d schemas.Detached) bool { return now.Before(d.Until) })
}

// missed forgets everything: changes may have gone by, and may still.
func (k *known) missed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions, k.readings, k.unsure = nil, nil, time.Now().Add(staleAfter)
}

func (k *known) newest() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.revision
}

// own makes sure that the session is the agent's, and returns what is known of
// it: it belongs to whoever first asks in it, and to others it does not exist.
func (e *Engine) own(ctx context.Context, agent, session, user string) (schemas.Session, error) {
	s, ok := e.known.session(sessionKey(session))
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
	defer e.known.forget(key)
	return e.store.Sessions.Put(ctx, key, v, revision, kept)
}

// held is what an asker holds and who is there.
type held struct {
	session schemas.Session
	grants  []schemas.StandingAnswer // of the session and of its agent
	lock    *schemas.Lock            // nil where nobody holds it; read for whoever asks
	open    []string                 // the keys of what is pending in the session; likewise
}

// heldBy reads what a session and its agent hold at the leader, at once: what has
// just been granted counts, and what has just been revoked does not.
func (e *Engine) heldBy(ctx context.Context, agent, session string) (held, error) {
	var h held
	var agents schemas.Grants
	keep := e.known.reading(agentKey(agent))
	agentsRead := begin(func() error {
		_, err := e.store.Sessions.Get(ctx, agentKey(agent), &agents)
		return err
	})
	keepSession := e.known.reading(sessionKey(session))
	_, err := e.store.Sessions.Get(ctx, sessionKey(session), &h.session)
	if err := errors.Join(found(err), found(agentsRead())); err != nil {
		return held{}, err
	}
	keep(schemas.Session{Grants: agents.Grants})
	if err == nil {
		keepSession(h.session)
	}
	h.grants, err = e.rooted(ctx, live(slices.Concat(agents.Grants, h.session.Grants), e.clock.now()))
	return h, err
}

// heldNow begins to read all that may settle a request before a person is asked,
// and who is there.
func (e *Engine) heldNow(ctx context.Context, a *asked) (wait func() (held, error)) {
	var h, beside held
	session := a.request.SessionID
	reads := []func() error{
		begin(func() (err error) { beside.lock, err = e.lockOf(ctx, session); return err }),
	}
	if a.under.settings.JoinsIdentical() || a.under.settings.OpenPrompts() > 0 {
		reads = append(reads, begin(func() (err error) { beside.open, err = e.store.Records.Pending(ctx, session); return err }))
	}
	if s, nothing := e.known.nothing(a.agent, session, e.clock.now()); nothing {
		h.session = s
	} else {
		reads = append(reads, begin(func() (err error) { h, err = e.heldBy(ctx, a.agent, session); return err }))
	}
	return func() (held, error) {
		var errs []error
		for _, read := range reads {
			errs = append(errs, read())
		}
		h.lock, h.open = beside.lock, beside.open
		return h, errors.Join(errs...)
	}
}

// lockOf is who holds a session's lock, or nil.
func (e *Engine) lockOf(ctx context.Context, session string) (*schemas.Lock, error) {
	key := lockKey(session)
	if _, nobody := e.known.session(key); nobody {
		return nil, nil
	}
	var lock schemas.Lock
	keep := e.known.reading(key)
	_, err := e.store.Presence.Get(ctx, key, &lock)
	if errors.Is(err, bus.ErrNotFound) {
		keep(schemas.Session{})
		return nil, nil
	}
	return &lock, err
}

// begin runs f beside the caller, who waits for its end once.
func begin(f func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() error { return <-done }
}

// found is err, but nil where there is only nothing to read.
func found(err error) error {
	if errors.Is(err, bus.ErrNotFound) {
		return nil
	}
	return err
}

func live(grants []schemas.StandingAnswer, now time.Time) []schemas.StandingAnswer {
	return slices.DeleteFunc(grants, func(g schemas.StandingAnswer) bool { return !g.Live(now) })
}
