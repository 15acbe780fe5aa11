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
	// knownKept bounds what is remembered, and knownFor for how long.
	knownKept = 16384
	knownFor  = 24 * time.Hour
)

// known remembers sessions as they were read at the leader, until the broker
// says that they have changed: whose one is, and that it is not managed, need
// not be read for each call that a rule allows. What it tells may be a moment
// old, so nothing is allowed that the session holds, and no person is asked, on
// its word. Whoever changes a session waits until every engine has heard of it.
type known struct {
	mu       sync.Mutex
	until    time.Time
	sessions map[string]schemas.Session // by key
	revision uint64                     // the newest change that was heard of
	unsure   time.Time                  // changes may be missed until then
}

// session is what is known under a key, and whether anything is.
func (k *known) session(key string) (schemas.Session, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.sessions[key]
	return s, ok && time.Now().Before(k.until)
}

// remember keeps what was read when the newest change was at revision, unless
// another has been heard of since.
func (k *known) remember(key string, s schemas.Session, revision uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if k.revision != revision || now.Before(k.unsure) {
		return
	}
	if k.sessions == nil || len(k.sessions) >= knownKept || !now.Before(k.until) {
		k.sessions, k.until = map[string]schemas.Session{}, now.Add(knownFor)
	}
	k.sessions[key] = s
}

// changed forgets a key that has changed.
func (k *known) changed(key string, revision uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.revision = max(k.revision, revision)
	delete(k.sessions, key)
}

// missed forgets everything: changes may have gone by, and may still.
func (k *known) missed() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sessions, k.unsure = nil, time.Now().Add(staleAfter)
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
	if !ok || s.Agent == agent && lacksUser(&s, user) {
		heard := e.known.newest()
		var err error
		if s, err = e.claimSession(ctx, agent, session, user); err != nil {
			return s, err
		}
		e.known.remember(sessionKey(session), s, heard)
	}
	if s.Agent != agent {
		return schemas.Session{}, schemas.Errorf(schemas.CodeNotFound, "no session %s is known", session)
	}
	return s, nil
}

// held is what an asker holds and who is there.
type held struct {
	session schemas.Session
	lock    *schemas.Lock // nil where nobody holds it
	grants  []schemas.Grant
	open    []string // the keys of what is pending in the session
}

// heldBy reads all of it at the leader, at once: what has just been granted
// counts, and what has just been revoked does not.
func (e *Engine) heldBy(ctx context.Context, agent, session string, open bool) (held, error) {
	var h held
	var lock schemas.Lock
	var grants schemas.Grants
	errs := make([]error, 4)
	var wg sync.WaitGroup
	if open {
		wg.Go(func() { h.open, errs[3] = e.store.Records.Pending(ctx, session) })
	}
	wg.Go(func() { _, errs[0] = e.store.Presence.Get(ctx, lockKey(session), &lock) })
	wg.Go(func() { _, errs[1] = e.store.Sessions.Get(ctx, agentKey(agent), &grants) })
	_, errs[2] = e.store.Sessions.Get(ctx, sessionKey(session), &h.session)
	wg.Wait()
	if errs[0] == nil {
		h.lock = &lock
	}
	for _, err := range errs {
		if err != nil && !errors.Is(err, bus.ErrNotFound) {
			return held{}, err
		}
	}
	var err error
	h.grants, err = e.rooted(ctx, live(slices.Concat(grants.Grants, h.session.Grants), e.clock.now()))
	return h, err
}

func live(grants []schemas.Grant, now time.Time) []schemas.Grant {
	return slices.DeleteFunc(grants, func(g schemas.Grant) bool { return !g.Live(now) })
}
