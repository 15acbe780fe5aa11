package test

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/people/telegram"
	"github.com/nodbus/nod/schemas"
)

// env is a whole nod in this process: a server with keys for all roles, and any number
// of engines, agents and people. A test starts, stops and breaks these parts. An error
// that the test does not expect ends it.
type env struct {
	*require.Assertions
	t       *testing.T
	ctx     context.Context
	dir     string
	keys    *roles.Keys
	server  *bus.Server
	mu      sync.Mutex // guards conns, which racing goroutines open
	conns   map[roles.ID]*bus.Conn
	agents  map[string]*agent
	store   *bus.Store // as an engine sees it
	raw     jetstream.JetStream
	engines []*node
	wires   []func() // close proxies, workers and connections before the server
}

// node is one running engine.
type node struct {
	*engine.Engine
	env    *env
	close  []func()
	system *actors.System
}

// setup holds the options that a test may change.
type setup struct {
	settings string
	engine   engine.Options
	sync     time.Duration
	engines  int
	port     int // of the server; set it if a later server must have the same
}

// everybody lets Ann and Bob answer; all tools ask, except for two that have rules.
const everybody = `{
	"permissions": {"allow": ["Lookup"], "deny": ["Forbidden"]},
	"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]},
		{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]}
	]}
}`

// start starts a nod that ends with the test.
func start(t *testing.T, change ...func(*setup)) *env {
	t.Helper()
	s := setup{settings: everybody, engines: 1, sync: time.Second}
	for _, c := range change {
		c(&s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	e := &env{Assertions: require.New(t), t: t, ctx: ctx, dir: t.TempDir(), agents: map[string]*agent{}}
	var err error
	e.keys, err = roles.OpenKeys(e.dir)
	e.NoError(err)
	e.NoError(e.keys.Ensure(append(roles.First(), roles.AgentID("ada"), roles.AgentID("ben"),
		roles.ConnectorID("web"), roles.ConnectorID("tg"))...))
	t.Cleanup(func() { e.down(); cancel() })
	e.up(s)
	return e
}

// up starts the server and its engines.
func (e *env) up(s setup) {
	e.t.Helper()
	users, err := e.keys.Users()
	e.NoError(err)
	e.server, err = bus.Embed(e.ctx, bus.EmbedOptions{DataDir: e.dir, Port: s.port, Users: users, SyncInterval: s.sync, Log: quiet()})
	e.NoError(err)
	e.openRaw()
	e.conns = map[roles.ID]*bus.Conn{}
	e.store, err = bus.OpenStore(e.ctx, e.conn(roles.ID{Role: roles.EngineStore}), 1)
	e.NoError(err)
	for range s.engines {
		e.engine(s.engine)
	}
	if s.engines > 0 && s.settings != "" {
		_, err := e.engines[0].ApplySettings(e.ctx, apart(s.settings), "test")
		e.NoError(err)
	}
}

// apart adds options under which each request is a question of its own, unless the
// settings themselves say otherwise.
func apart(settings string) []byte {
	var all map[string]json.RawMessage
	permissions := map[string]json.RawMessage{"join_identical": []byte("false"), "remember_denials_seconds": []byte("0"), "open_prompts": []byte("0")}
	if json.Unmarshal([]byte(settings), &all) != nil || all["permissions"] != nil && json.Unmarshal(all["permissions"], &permissions) != nil {
		return []byte(settings) // invalid: the engine refuses it
	}
	all["permissions"], _ = schemas.Encode(permissions) // decoded values can be encoded
	data, _ := schemas.Encode(all)
	return data
}

// engine starts one more engine, with its own connections unless o has some, and with
// Telegram's settings unless o.Channels is set.
func (e *env) engine(o engine.Options) *node {
	e.t.Helper()
	n := &node{env: e, system: actors.NewSystem(quiet())}
	if o.Edge == nil {
		o.Edge = e.dial(roles.ID{Role: roles.Engine}, e.server.URL())
		n.close = append(n.close, o.Edge.Close)
	}
	if o.Store == nil {
		o.Store = e.dial(roles.ID{Role: roles.EngineStore}, e.server.URL())
		n.close = append(n.close, o.Store.Close)
	}
	if o.Channels == nil {
		o.Channels = []schemas.ChannelSettings{telegram.Channel.Settings}
	}
	o.Host = cmp.Or(o.Host, "devbox")
	o.Replicas, o.System, o.Version, o.Log = 1, n.system, "0.0.0", quiet()
	var err error
	n.Engine, err = engine.Start(e.ctx, o)
	e.NoError(err)
	e.engines = append(e.engines, n)
	return n
}

// stop ends an engine in the order in which a process does.
func (n *node) stop() {
	if n.Engine == nil {
		return
	}
	n.env.NoError(n.Stop(context.Background()))
	n.Engine = nil
	n.system.Stop()
	for _, c := range n.close {
		c()
	}
}

// down ends everything; the stored data stays.
func (e *env) down() {
	for _, a := range e.agents {
		a.asker.Close()
	}
	for _, n := range e.engines {
		n.stop()
	}
	for _, c := range e.conns {
		c.Close()
	}
	for _, end := range e.wires {
		end()
	}
	e.agents, e.engines, e.conns, e.wires = map[string]*agent{}, nil, nil, nil
	e.NoError(e.server.Close())
}

// quiet discards the log, because tests provoke errors. NOD_TEST_LOG=1 shows it.
func quiet() *slog.Logger {
	if os.Getenv("NOD_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.DiscardHandler)
}

// dial opens a new connection in a role.
func (e *env) dial(id roles.ID, url string) *bus.Conn {
	e.t.Helper()
	c, err := bus.Connect(e.ctx, bus.Options{URL: url, Name: id.String(), Creds: e.keys.Path(id), Inbox: id.InboxPrefix(), Log: quiet()})
	e.NoError(err)
	return c
}

// conn is the test's own connection in a role.
func (e *env) conn(id roles.ID) *bus.Conn {
	e.t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns[id] == nil {
		e.conns[id] = e.dial(id, e.server.URL())
	}
	return e.conns[id]
}

// openRaw opens JetStream with the key of the stores' owner, so that a test can cause
// faults.
func (e *env) openRaw() {
	e.t.Helper()
	var err error
	e.raw, err = jetstream.New(e.rawConn(roles.ID{Role: roles.OwnerStore}))
	e.NoError(err)
}

// rawConn is a plain NATS connection, without package bus.
func (e *env) rawConn(id roles.ID) *nats.Conn {
	e.t.Helper()
	key, err := nats.NkeyOptionFromSeed(e.keys.Path(id))
	e.NoError(err)
	nc, err := nats.Connect(e.server.URL(), key, nats.CustomInboxPrefix(id.InboxPrefix()))
	e.NoError(err)
	e.t.Cleanup(nc.Close)
	return nc
}

// loseTimer removes the timer of a pending record. No engine does this: it is a fault.
func (e *env) loseTimer(key string) {
	e.t.Helper()
	stream, err := e.raw.Stream(e.ctx, "KV_pending_permissions")
	e.NoError(err)
	e.NoError(stream.Purge(e.ctx, jetstream.WithPurgeSubject(schemas.TimerSubject(e.timerKey(key)))))
	e.NotContains(e.armed(), key)
}

// armed returns the keys that have a timer.
func (e *env) armed() []string {
	e.t.Helper()
	keys, err := e.store.Records.Pending(e.ctx, "")
	e.NoError(err)
	return keys
}

// timer returns the time for which a record's timer is armed, as it is stored.
func (e *env) timer(key string) string {
	e.t.Helper()
	stream, err := e.raw.Stream(e.ctx, "KV_pending_permissions")
	e.NoError(err)
	msg, err := stream.GetLastMsgForSubject(e.ctx, schemas.TimerSubject(e.timerKey(key)))
	e.NoError(err)
	return strings.TrimPrefix(msg.Header.Get("Nats-Schedule"), "@at ")
}

// timerKey returns the key of a record's timer: its question's, if it waits with one.
func (e *env) timerKey(key string) string {
	e.t.Helper()
	session, id := schemas.SplitKey(key)
	return schemas.Key(session, cmp.Or(e.stored(key).Record.Question, id))
}

// arms arms a record's timer for an event other than its next.
func (e *env) arms(key string, event schemas.Event) {
	e.t.Helper()
	entry := e.stored(key)
	entry.Record.NextEvent = &event
	e.NoError(e.store.Records.Rearm(e.ctx, &entry))
}

// stored reads a record.
func (e *env) stored(key string) bus.Entry {
	e.t.Helper()
	entry, err := e.store.Records.Get(e.ctx, key)
	e.NoError(err, key)
	return entry
}

// kept returns the keys of all records, decided ones too.
func (e *env) kept() (keys []string) {
	e.t.Helper()
	e.NoError(e.store.Records.Scan(e.ctx, "", 0, func(r bus.Found) bool {
		keys = append(keys, r.Key)
		return true
	}))
	return keys
}

// nothingStored checks that there is neither a record nor a timer.
func (e *env) nothingStored() {
	e.t.Helper()
	e.Empty(e.kept())
	e.Empty(e.armed())
}

// patience is how long a test waits for a condition that it has to poll, and tick is
// the interval of its polls.
const (
	patience = 30 * time.Second
	tick     = 50 * time.Millisecond
)

// soon polls a condition until it holds.
func (e *env) soon(what string, holds func() bool) {
	e.t.Helper()
	e.Eventually(holds, patience, 10*time.Millisecond, what)
}

// passed waits until the broker's clock is past an instant.
func (e *env) passed(at time.Time) {
	e.t.Helper()
	ahead, err := e.store.BrokerTime(e.ctx)
	e.NoError(err)
	select {
	case <-time.After(time.Until(at) - ahead + 20*time.Millisecond):
	case <-e.ctx.Done():
		e.NoError(e.ctx.Err())
	}
}

// owner is a client that may change settings and sessions.
func (e *env) owner() *connector.Owner {
	e.t.Helper()
	return connector.NewOwner(e.conn(roles.ID{Role: roles.Owner}), schemas.ConnectorTerminal)
}

// timeout sets the timeout of a session's requests; 0 restores the default.
func (e *env) timeout(session string, d time.Duration) {
	e.t.Helper()
	seconds := int(d / time.Second)
	_, err := e.owner().ChangeSession(e.ctx, schemas.SessionChange{SessionID: session, TimeoutSeconds: &seconds})
	e.NoError(err)
}

// apply stores settings, and waits until every engine follows them.
func (e *env) apply(settings string) uint64 {
	e.t.Helper()
	state, err := e.owner().ApplySettings(e.ctx, apart(settings))
	e.NoError(err)
	laggards, err := e.owner().Follow(e.ctx, state.Revision)
	e.NoError(err)
	e.Empty(laggards)
	e.heard("settings_revision", state.Revision)
	return state.Revision
}

// heard waits until every engine of the test reports that it follows a revision. Owner's
// Follow does not wait for an engine that is too slow to reply.
func (e *env) heard(what string, revision uint64) {
	e.t.Helper()
	running := 0
	for _, n := range e.engines {
		if n.Engine != nil {
			running++
		}
	}
	owner := e.conn(roles.ID{Role: roles.Owner})
	e.soon("every engine follows the "+what, func() bool {
		stats, err := owner.ServiceStats(e.ctx, "nod-engine")
		if err != nil {
			return false
		}
		follow := 0
		for _, s := range stats {
			var data map[string]uint64
			if s.Into(&data) == nil && data[what] >= revision {
				follow++
			}
		}
		return follow == running
	})
}

// me returns the user name under which the commands answer.
func me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	require.NoError(t, err)
	return u.Username
}

// outboxIdle reports whether the outbox has handled all stored changes.
func (e *env) outboxIdle() bool {
	consumer, err := e.raw.Consumer(e.ctx, "KV_pending_permissions", "nod-outbox")
	if err != nil {
		return false
	}
	info := consumer.CachedInfo()
	return info.NumPending == 0 && info.NumAckPending == 0
}
