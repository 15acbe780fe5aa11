package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// activeEvery is how often the last activity of a session is stored while no other
	// session of its agent makes requests.
	activeEvery = 30 * time.Second
	// activeKept is how long after its last request a session can be chosen as foreground.
	activeKept = 24 * time.Hour
	// storeActiveEvery is how often the buffered activities are stored. Without the buffer,
	// sessions of one agent that take turns would cause a write for every request.
	storeActiveEvery = time.Second
	// activeWithin bounds the time for storing the buffered activities.
	activeWithin = 5 * time.Second
)

func activeKey(agent, session string) string { return "active." + agent + "." + session }

// activityBuffer collects foreground sessions whose last activity is to be stored, each
// session at most once in activeEvery. But if the agent's previous request came from
// another session, the session of the new request is always added, so that the store has
// the two sessions in the right order.
type activityBuffer struct {
	storing sync.Mutex

	mu    sync.Mutex
	added map[string]time.Time       // when each session was last added to due, by activeKey
	last  map[string]string          // the key of each agent's session that was added last; absent if another engine may since have written another session's key
	due   map[string]schemas.Session // the sessions to store, by activeKey
}

// add buffers the activity of a session that makes a request now. It does nothing if the
// agent's last activity was in the same session, and was added less than activeEvery ago.
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

// changed handles the broker's report that a key was written. If another engine has written
// the activity of another session of an agent, this engine no longer knows which of the
// agent's sessions was stored last, and adds the agent's next activity in any case.
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

// missed is called if reports of changes may have been lost. It forgets the last active
// sessions, so that the next activity of each agent is added in any case.
func (n *activityBuffer) missed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.last)
}

// recordActivity buffers the activity of a session that makes a request, unless it is a
// background session. If the engine dies before the buffer is stored, a later request adds
// the session again.
func (e *base) recordActivity(known schemas.Session) {
	if !known.Background {
		e.activity.add(known.Agent, known.SessionID, known.User, &e.clock)
	}
}

// storeActivities stores the buffered activities and empties the buffer. When it returns,
// every activity that was added before the call is stored, or its failure is logged.
func (e *base) storeActivities(ctx context.Context) {
	e.activity.storing.Lock()
	defer e.activity.storing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, activeWithin)
	defer cancel()
	due := e.activity.take()
	each(len(due), func(i int) { e.storeActivity(ctx, due[i]) })
}

// storeActivity stores a session's last activity, unless a later one is stored already. It
// only logs a failure.
func (e *base) storeActivity(ctx context.Context, s schemas.Session) {
	_, _, err := bus.Change(ctx, e.store.Presence, activeKey(s.Agent, s.SessionID), func(stored *schemas.Session, _ bool) (bus.Edit, error) {
		if stored.ActiveAt.After(s.ActiveAt) {
			return bus.Edit{}, nil
		}
		*stored = s
		return bus.Edit{Store: true, Kept: activeKept}, nil
	})
	if err != nil {
		e.Log.Info("engine: the activity of a session was not stored; a later request will store it", "session", s.SessionID, "error", err)
	}
}
