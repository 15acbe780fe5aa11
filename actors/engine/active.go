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
	// activeEvery is the interval at which a session's last activity is stored if no other
	// session of its agent makes requests.
	activeEvery = 30 * time.Second
	// activeKept is how long after a session's last request the session can be chosen as the foreground
	// session of a background session.
	activeKept = 24 * time.Hour
	// storeActiveEvery is the interval at which buffered activities are stored. The buffer
	// saves writes if sessions of one agent take turns.
	storeActiveEvery = time.Second
	// activeWithin bounds the time for storing the buffered activities.
	activeWithin = 5 * time.Second
)

func activeKey(agent, session string) string { return "active." + agent + "." + session }

// activityBuffer collects foreground sessions whose last activity must be stored. It adds a session at
// most once in activeEvery, unless the agent's previous request came from another session. In that case
// it adds the session at once, so that the store has the sessions in the order of their last use.
type activityBuffer struct {
	storing sync.Mutex

	mu    sync.Mutex
	added map[string]time.Time       // the time at which each session was last added to the field due, by activeKey
	last  map[string]string          // for each agent, the key of the session that was added last; absent if another engine may have stored a later session
	due   map[string]schemas.Session // the sessions to store, by activeKey
}

// add buffers the activity of a session that makes a request now. It does nothing if the
// agent's previous activity was in the same session and was buffered less than activeEvery ago.
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

func (n *activityBuffer) take() []schemas.Session {
	n.mu.Lock()
	defer n.mu.Unlock()
	due := slices.Collect(maps.Values(n.due))
	clear(n.due)
	return due
}

// changed handles the broker's report of a written key. If another engine has stored an activity of
// an agent, this engine no longer knows which session of the agent was stored last, so it buffers the
// agent's next activity even if less than activeEvery has passed.
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

// missed handles a possible loss of the broker's reports. It forgets the last active session of
// each agent, so each agent's next activity is buffered.
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

// storeActivities stores the buffered activities and empties the buffer. It logs failures.
func (e *base) storeActivities(ctx context.Context) {
	e.activity.storing.Lock()
	defer e.activity.storing.Unlock()
	ctx, cancel := context.WithTimeout(ctx, activeWithin)
	defer cancel()
	due := e.activity.take()
	each(len(due), func(i int) { e.storeActivity(ctx, due[i]) })
}

// storeActivity stores a session's last activity, unless a later one is stored. It logs a
// failure.
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
