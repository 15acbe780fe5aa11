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
	// activeEvery is how often the activity of a session is stored while no other session
	// of its agent makes requests.
	activeEvery = 30 * time.Second
	// activeKept is how long after its last request a session can be chosen as foreground.
	activeKept = 24 * time.Hour
	// storeActiveEvery is how often the buffer is stored. Many sessions of an agent that
	// take turns would otherwise write for every request.
	storeActiveEvery = time.Second
	// activeWithin bounds the time for storing the buffer.
	activeWithin = 5 * time.Second
)

func activeKey(agent, session string) string { return "active." + agent + "." + session }

// activityBuffer collects the foreground sessions whose last activity is to be stored. A
// session that makes a request after another session of its agent is always added, so
// that the store has the right order of the two, however close they are.
type activityBuffer struct {
	storing sync.Mutex

	mu    sync.Mutex
	added map[string]time.Time       // by key, when it was added
	last  map[string]string          // by agent, the last key written; absent if another engine may have written since
	due   map[string]schemas.Session // by key
}

// add records that a session makes a request now.
func (n *activityBuffer) add(agent, session, user string, clock *clock) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key, now := activeKey(agent, session), clock.now()
	if n.last[agent] == key && now.Sub(n.added[key]) < activeEvery {
		return
	}
	if n.added == nil || len(n.added) >= knownKept {
		n.added, n.last = map[string]time.Time{}, map[string]string{}
	}
	if n.due == nil {
		n.due = map[string]schemas.Session{}
	}
	n.added[key], n.last[agent] = now, key
	n.due[key] = schemas.Session{Type: schemas.TypeSession, SessionID: session, Agent: agent, User: user, CreatedAt: now, ActiveAt: now}
}

// take empties the buffer, and returns its sessions for the caller to store.
func (n *activityBuffer) take() []schemas.Session {
	n.mu.Lock()
	defer n.mu.Unlock()
	due := slices.Collect(maps.Values(n.due))
	clear(n.due)
	return due
}

// changed handles a reported change in the store. If another engine has written another
// session of an agent, this engine no longer knows the last active one, and stores the
// next activity at once.
func (n *activityBuffer) changed(key string, _ uint64) {
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

// missed forgets the last active sessions, because reports of changes may have been lost:
// each session's next activity is stored.
func (n *activityBuffer) missed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.last)
}

// recordActivity adds a foreground session that makes a request to the buffer. If the
// engine dies before the buffer is stored, a later request adds the session again.
func (e *base) recordActivity(known schemas.Session) {
	if !known.Background {
		e.activity.add(known.Agent, known.SessionID, known.User, &e.clock)
	}
}

// storeActivities stores and empties the buffer. When it returns, an earlier concurrent
// call has finished too.
func (e *base) storeActivities(ctx context.Context) {
	e.activity.storing.Lock()
	defer e.activity.storing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, activeWithin)
	defer cancel()
	due := e.activity.take()
	each(len(due), func(i int) { e.storeActivity(ctx, due[i]) })
}

// storeActivity stores a session's last activity, unless a later one is stored.
func (e *base) storeActivity(ctx context.Context, s schemas.Session) {
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
			e.Log.Info("engine: the activity of a session was not stored; a later request will store it", "session", s.SessionID, "error", err)
		}
		return
	}
}
