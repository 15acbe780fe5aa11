package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// activeEvery is how exactly it is known when a session was last active, as
	// long as no other of its agent's asks.
	activeEvery = 30 * time.Second
	// activeKept is how long a session that was active counts as a foreground.
	activeKept = 24 * time.Hour
	// storeActiveEvery is how often what is to be noted is stored, whoever asks how
	// often: many sessions that ask by turns are many notes.
	storeActiveEvery = time.Second
	// activeWithin bounds the storing of it.
	activeWithin = 5 * time.Second
)

func activeKey(agent, session string) string { return "active." + agent + "." + session }

// activityBuffer are the foreground sessions that ask, of which it is to be noted in the
// store. Whoever asks after another of the same agent's is noted anew: which asked
// last is then told by the activityBuffer, however short the time between them.
type activityBuffer struct {
	storing sync.Mutex

	mu    sync.Mutex
	noted map[string]time.Time       // by key, when
	last  map[string]string          // by agent, the key noted last; none where that may be another's
	due   map[string]schemas.Session // by key
}

// add takes a session that asks now.
func (n *activityBuffer) add(agent, session, user string, clock *clock) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key, now := activeKey(agent, session), clock.now()
	if n.last[agent] == key && now.Sub(n.noted[key]) < activeEvery {
		return
	}
	if n.noted == nil || len(n.noted) >= knownKept {
		n.noted, n.last = map[string]time.Time{}, map[string]string{}
	}
	if n.due == nil {
		n.due = map[string]schemas.Session{}
	}
	n.noted[key], n.last[agent] = now, key
	n.due[key] = schemas.Session{Type: schemas.TypeSession, SessionID: session, Agent: agent, User: user, CreatedAt: now, ActiveAt: now}
}

// take returns what is due, for the caller to store.
func (n *activityBuffer) take() []schemas.Session {
	n.mu.Lock()
	defer n.mu.Unlock()
	due := slices.Collect(maps.Values(n.due))
	clear(n.due)
	return due
}

// heard takes a change of the store: where an engine has noted another session
// of an agent's, which of them was last is open until the next one asks.
func (n *activityBuffer) heard(key string, _ uint64) {
	name, ok := strings.CutPrefix(key, "active.")
	if !ok {
		return
	}
	agent, _, _ := strings.Cut(name, ".")
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last[agent] != key {
		delete(n.last, agent)
	}
}

// missed has everybody be noted again: changes may have gone by.
func (n *activityBuffer) missed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.last)
}

// recordActivity has it noted, where that is due, that a foreground session asks. A note
// that is lost is made again.
func (e *Engine) recordActivity(known schemas.Session) {
	if !known.Background {
		e.activity.add(known.Agent, known.SessionID, known.User, &e.clock)
	}
}

// storeActivities stores what is due; when it returns, so has whoever else was at it.
func (e *Engine) storeActivities(ctx context.Context) {
	e.activity.storing.Lock()
	defer e.activity.storing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, activeWithin)
	defer cancel()
	due := e.activity.take()
	each(len(due), func(i int) { e.storeActivity(ctx, due[i]) })
}

// storeActivity stores that a session was active, unless it was noted to be later.
func (e *Engine) storeActivity(ctx context.Context, s schemas.Session) {
	for {
		var was schemas.Session
		key := activeKey(s.Agent, s.SessionID)
		revision, err := e.store.Presence.Get(ctx, key, &was)
		if err == nil && was.ActiveAt.After(s.ActiveAt) {
			return
		}
		if err == nil || errors.Is(err, bus.ErrNotFound) {
			_, err = e.store.Presence.Put(ctx, key, s, revision, activeKept)
		}
		if errors.Is(err, bus.ErrMoved) {
			continue
		}
		if err != nil {
			e.Log.Info("engine: that a session is active was not noted; it will be", "session", s.SessionID, "error", err)
		}
		return
	}
}
