package rig

import (
	"cmp"
	"context"
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
	"github.com/nodbus/nod/connectors/people/voice"
	"github.com/nodbus/nod/schemas"
)

// Env is a whole nod in the test's process: a server with keys for all roles, and any number of engines,
// agents and people. A test starts, stops and breaks these parts. Each method fails the test at the first
// unexpected error.
type Env struct {
	*require.Assertions
	T       *testing.T
	Ctx     context.Context
	Dir     string
	Keys    *roles.Keys
	Server  *bus.Server
	grouped bool       // true if the server syncs many messages at once; engines must then connect within the process
	mu      sync.Mutex // guards the field conns, because several goroutines of a test may call Conn
	conns   map[roles.ID]*bus.Conn
	agents  map[string]*Agent
	Store   *bus.Store // the stores, opened with an engine's key
	Raw     jetstream.JetStream
	Engines []*Node
	Workers []func() // functions that stop the workers of channels; a worker stops at once only if an engine serves it
	Wires   []func() // functions that close proxies and connections before the server closes
}

// Node is one running engine.
type Node struct {
	*engine.Engine
	env    *Env
	Close  []func()
	Actors *actors.System
}

// Setup holds the options that a test may change.
type Setup struct {
	Settings string
	Engine   engine.Options
	sync     time.Duration
	// BeforeSync is called before each sync of the server, as in bus.EmbedOptions.
	BeforeSync func(stream string) error
	Engines    int
	Port       int // the server's port, so that a later server can have the same port
}

// OverTheNetwork lets engines reach the stores through a Wire. The server then syncs at an interval, because
// only engines within the process allow it to sync many messages at once.
func OverTheNetwork(s *Setup) { s.sync = time.Second }

// Start starts a whole nod. The end of the test stops it.
func Start(t *testing.T, change ...func(*Setup)) *Env {
	t.Helper()
	s := Setup{Settings: Everybody, Engines: 1, sync: bus.SyncGroup}
	for _, c := range change {
		c(&s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	e := &Env{Assertions: require.New(t), T: t, Ctx: ctx, Dir: t.TempDir(), agents: map[string]*Agent{}}
	var err error
	e.Keys, err = roles.OpenKeys(e.Dir)
	e.NoError(err)
	e.NoError(e.Keys.Ensure(append(roles.First(), roles.AgentID("ada"), roles.AgentID("ben"),
		roles.ConnectorID("web"), roles.ConnectorID("tg"))...))
	t.Cleanup(func() { e.Down(); cancel() })
	e.Up(s)
	return e
}

// Up starts the server and its engines. The first engine applies the settings before the other engines start
// and read them.
func (e *Env) Up(s Setup) {
	e.T.Helper()
	users, err := e.Keys.Users()
	e.NoError(err)
	e.Server, err = bus.Embed(e.Ctx, bus.EmbedOptions{DataDir: e.Dir, Port: s.Port, Users: users, SyncInterval: s.sync, BeforeSync: s.BeforeSync, Log: Quiet()})
	e.NoError(err)
	e.grouped = s.sync == bus.SyncGroup
	e.openRaw()
	e.conns = map[roles.ID]*bus.Conn{}
	e.Store, err = bus.OpenStore(e.Ctx, e.Conn(roles.ID{Role: roles.EngineStore}), 1)
	e.NoError(err)
	for i := range s.Engines {
		e.Engine(s.Engine)
		if i == 0 && s.Settings != "" {
			_, err := e.Engines[0].ApplySettings(e.Ctx, Apart(s.Settings), "test")
			e.NoError(err)
		}
	}
}

// Engine starts a further engine. The engine has its own connections unless the options set Edge and Store.
// It accepts settings of the connectors telegram and voice unless the options set Channels.
func (e *Env) Engine(o engine.Options) *Node {
	e.T.Helper()
	n := &Node{env: e, Actors: actors.NewSystem(Quiet())}
	if o.Edge == nil {
		o.Edge = e.Dial(roles.ID{Role: roles.Engine}, e.Server.URL())
		n.Close = append(n.Close, o.Edge.Close)
	}
	if o.Store == nil {
		o.Store = e.Dial(roles.ID{Role: roles.EngineStore}, e.Server.URL())
		n.Close = append(n.Close, o.Store.Close)
	}
	if o.Channels == nil {
		o.Channels = []schemas.ChannelSettings{telegram.Channel.Settings, voice.Channel.Settings}
	}
	o.Host = cmp.Or(o.Host, "devbox")
	o.Replicas, o.System, o.Version, o.Log = 1, n.Actors, "0.0.0", Quiet()
	var err error
	n.Engine, err = engine.Start(e.Ctx, o)
	e.NoError(err)
	e.Engines = append(e.Engines, n)
	return n
}

// Halt stops an engine, its actors and its connections in the same order as a process of nod.
func (n *Node) Halt() {
	if n.Engine == nil {
		return
	}
	n.env.NoError(n.Stop(context.Background()))
	n.Engine = nil
	n.Actors.Stop()
	for _, c := range n.Close {
		c()
	}
}

// Down stops all agents, engines, connections and the server. The stored data stays.
func (e *Env) Down() {
	for _, end := range e.Workers {
		end()
	}
	for _, a := range e.agents {
		a.Asker.Close()
	}
	for _, n := range e.Engines {
		n.Halt()
	}
	for _, c := range e.conns {
		c.Close()
	}
	for _, end := range e.Wires {
		end()
	}
	e.agents, e.Engines, e.conns, e.Workers, e.Wires = map[string]*Agent{}, nil, nil, nil, nil
	e.NoError(e.Server.Close())
}

// Quiet returns a logger that drops everything, because tests provoke errors. If NOD_TEST_LOG is set, the
// logger writes to stderr.
func Quiet() *slog.Logger {
	if os.Getenv("NOD_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.DiscardHandler)
}

// Dial opens a new connection with the key of a role. An engine connects within the process if the server
// syncs many messages at once.
func (e *Env) Dial(id roles.ID, url string) *bus.Conn {
	e.T.Helper()
	o := bus.Options{URL: url, Name: id.String(), Creds: e.Keys.Path(id), Inbox: id.InboxPrefix(), Log: Quiet()}
	if e.grouped && id.Role == roles.EngineStore {
		o.Server = e.Server
	}
	c, err := bus.Connect(e.Ctx, o)
	e.NoError(err)
	return c
}

// Conn returns the test's shared connection with the key of a role.
func (e *Env) Conn(id roles.ID) *bus.Conn {
	e.T.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.conns[id] == nil {
		e.conns[id] = e.Dial(id, e.Server.URL())
	}
	return e.conns[id]
}

// openRaw opens JetStream with the key of nod's owner, with which a test can cause faults.
func (e *Env) openRaw() {
	e.T.Helper()
	var err error
	e.Raw, err = jetstream.New(e.RawConn(roles.ID{Role: roles.OwnerStore}))
	e.NoError(err)
}

// RawConn returns a new plain NATS connection with the key of a role, without package bus.
func (e *Env) RawConn(id roles.ID) *nats.Conn {
	e.T.Helper()
	key, err := nats.NkeyOptionFromSeed(e.Keys.Path(id))
	e.NoError(err)
	nc, err := nats.Connect(e.Server.URL(), key, nats.CustomInboxPrefix(id.InboxPrefix()))
	e.NoError(err)
	e.T.Cleanup(nc.Close)
	return nc
}

// LoseTimer removes the timer of a pending record. No engine does this, so it simulates a fault.
func (e *Env) LoseTimer(key string) {
	e.T.Helper()
	stream, err := e.Raw.Stream(e.Ctx, "KV_pending_permissions")
	e.NoError(err)
	e.NoError(stream.Purge(e.Ctx, jetstream.WithPurgeSubject(schemas.TimerSubject(e.timerKey(key)))))
	e.NotContains(e.Armed(), key)
}

// Armed returns the keys of the questions that have an armed timer.
func (e *Env) Armed() []string {
	e.T.Helper()
	keys, err := e.Store.Records.Pending(e.Ctx, "")
	e.NoError(err)
	return keys
}

// Timer returns the time at which a record's timer fires, as the broker stores it.
func (e *Env) Timer(key string) string {
	e.T.Helper()
	stream, err := e.Raw.Stream(e.Ctx, "KV_pending_permissions")
	e.NoError(err)
	msg, err := stream.GetLastMsgForSubject(e.Ctx, schemas.TimerSubject(e.timerKey(key)))
	e.NoError(err)
	return strings.TrimPrefix(msg.Header.Get("Nats-Schedule"), "@at ")
}

// timerKey returns the key of a record's timer. This is the record's question token or, if the record has no
// token, the id of its request.
func (e *Env) timerKey(key string) string {
	e.T.Helper()
	session, id := schemas.SplitKey(key)
	return schemas.Key(session, cmp.Or(e.Stored(key).Record.Question, id))
}

// Arms arms a record's timer for an event that is not the record's next event.
func (e *Env) Arms(key string, event schemas.Event) {
	e.T.Helper()
	entry := e.Stored(key)
	entry.Record.NextEvent = &event
	e.NoError(e.Store.Records.Rearm(e.Ctx, &entry))
}

// Stored reads a record from the store and returns it.
func (e *Env) Stored(key string) bus.Entry {
	e.T.Helper()
	entry, err := e.Store.Records.Get(e.Ctx, key)
	e.NoError(err, key)
	return entry
}

// Kept returns the keys of all stored records, pending and decided.
func (e *Env) Kept() (keys []string) {
	e.T.Helper()
	e.NoError(e.Store.Records.Scan(e.Ctx, "", 0, func(r bus.ScannedRecord) bool {
		keys = append(keys, r.Key)
		return true
	}))
	return keys
}

// NothingStored requires that the store has neither a record nor a timer.
func (e *Env) NothingStored() {
	e.T.Helper()
	e.Empty(e.Kept())
	e.Empty(e.Armed())
}

// Owner returns a client that may change settings and sessions.
func (e *Env) Owner() *connector.Owner {
	e.T.Helper()
	return connector.NewOwner(e.Conn(roles.ID{Role: roles.Owner}), schemas.ConnectorTerminal)
}

// Timeout sets the timeout of a session's requests; 0 restores the default.
func (e *Env) Timeout(session string, d time.Duration) {
	e.T.Helper()
	seconds := int(d / time.Second)
	_, err := e.Owner().ChangeSession(e.Ctx, schemas.SessionChange{SessionID: session, TimeoutSeconds: &seconds})
	e.NoError(err)
}

// Apply stores settings, and waits until every engine uses them.
func (e *Env) Apply(settings string) uint64 {
	e.T.Helper()
	state, err := e.Owner().ApplySettings(e.Ctx, Apart(settings))
	e.NoError(err)
	e.Heard("settings_revision", state.Revision)
	return state.Revision
}

// Me returns the user name under which nod's commands answer at the terminal.
func Me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	require.NoError(t, err)
	return u.Username
}

// LoggedOf returns the number of log entries of a kind.
func (e *Env) LoggedOf(kind schemas.LogKind) int {
	e.T.Helper()
	n := 0
	for _, count := range e.Logged(kind) {
		n += count
	}
	return n
}

// StopOutbox pauses the outbox. Meanwhile, only a call that returns a decision still does the outbox's work
// for that decision.
func (e *Env) StopOutbox() {
	e.T.Helper()
	stream, err := e.Raw.Stream(e.Ctx, "KV_pending_permissions")
	e.NoError(err)
	e.Soon("the outbox has handled all changes", e.OutboxIdle)
	_, err = stream.PauseConsumer(e.Ctx, "nod-outbox", time.Now().Add(time.Hour))
	e.NoError(err)
}

// Registers renews or ends the lease of a connector's worker.
func (e *Env) Registers(connector, worker string, leave bool) {
	e.T.Helper()
	var r schemas.Registered
	e.NoError(e.Conn(roles.ConnectorID(connector)).CallInto(e.Ctx, schemas.RegisterSubject(connector),
		schemas.Register{Type: schemas.TypeRegister, WorkerID: worker, Leave: leave}, &r))
}
