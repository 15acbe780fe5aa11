// Package embed runs a whole nod in the caller's process: an engine and the connectors that the
// settings name. The engine and the connectors use an embedded NATS server with keys of its own, or
// other NATS servers.
package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"sync"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/embed/metrics"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/traces"
	"github.com/nodbus/nod/traces/otlp"
)

// Options configure Start.
type Options struct {
	// DataDir is the directory of the stores, the settings and the keys.
	DataDir string
	// Host and Port are the address of the embedded server, as in bus.EmbedOptions.
	Host string
	Port int
	// SyncInterval is bus.SyncGroup (the default), bus.SyncAlways, or the longest time between the
	// acknowledgement of a write and its sync to disk. With bus.SyncGroup and bus.SyncAlways, nod
	// acknowledges only writes that are on disk.
	SyncInterval time.Duration
	// URL names NATS servers to use in place of the embedded server. Creds and StoreCreds are the
	// engine's key files for the accounts EDGE and STORE. If the files are not named, the servers must
	// require no credentials.
	URL, Creds, StoreCreds string
	// Replicas is the number of replicas of each store on a cluster; 0 means 1.
	Replicas int
	// Wait is how long Start tries to reach the servers at URL; 0 means one try.
	Wait time.Duration
	// Settings is the content of a settings.json to apply. Nil keeps the settings that are in force, or
	// means empty settings at the very first start. If the settings have no approvers, the user of this
	// process becomes the approver (see WithApprovers).
	Settings []byte
	// KeepSettings applies no settings, not even at the very first start.
	KeepSettings bool
	// EngineAlone starts no connectors.
	EngineAlone bool
	// Web is the address of the web inbox; nil means no web inbox. Its PublicURL comes from the
	// settings.
	Web *httpserve.Listen
	// Metrics is the address that serves GET /metrics for Prometheus, /healthz and /readyz; empty for
	// none.
	Metrics string
	// WebKey is the file of the key that signs web logins; empty means the file in the data directory.
	// If several inboxes share one address, they need the same key.
	WebKey string
	// VoiceTimeout, if not 0, replaces the settings' timeout for voice.
	VoiceTimeout time.Duration
	// Traces exports the spans of requests; nil for no traces. The caller closes it after Stop.
	Traces  *otlp.Exporter
	Version string       // nod's version, in SemVer; empty means "0.0.0"
	Log     *slog.Logger // if nil, nod logs nothing
}

// Nod is a running nod. All methods are safe for concurrent use until Stop is called.
type Nod struct {
	opts   Options
	keys   *roles.Keys
	own    []roles.User // the keys of the parts of this nod itself, as they were at the start
	server *bus.Server  // the embedded server; nil if Options.URL names other servers
	edge   *bus.Conn
	store  *bus.Conn
	system *actors.System
	engine *engine.Engine

	metrics *metrics.Server // nil if Options.Metrics is empty
	workers []worker
	web     *Web
	webConn *bus.Conn
	running []string // the connectors that have a worker

	stopKeys func() // ends the goroutine of followKeys; nil without an embedded server

	stopping sync.Once
	stopped  error // the result of Stop
}

// Start starts a nod and returns once the nod serves requests. An error is one line, and leaves no part
// of the nod running. The caller must Stop the nod.
func Start(ctx context.Context, o Options) (*Nod, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Version = cmp.Or(o.Version, "0.0.0")
	n := &Nod{opts: o}
	if err := n.start(ctx); err != nil {
		return nil, bus.JoinErrors(err, n.Stop(ctx))
	}
	return n, nil
}

func (n *Nod) start(ctx context.Context) error {
	o := n.opts
	count, err := n.serveMetrics()
	if err != nil {
		return err
	}
	if o.URL == "" {
		if err := n.serve(ctx); err != nil {
			return err
		}
		following, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		n.stopKeys = func() { cancel(); <-ended }
		go func() { defer close(ended); n.followKeys(following) }()
	}
	if n.edge, err = n.connect(ctx, roles.ID{Role: roles.Engine}, o.Creds); err != nil {
		return err
	}
	if n.store = n.edge; o.URL == "" || o.StoreCreds != "" {
		n.store, err = n.connect(ctx, roles.ID{Role: roles.EngineStore}, o.StoreCreds)
		if errors.Is(err, bus.ErrRefused) {
			return fmt.Errorf("the NATS server at %s refused the engine's key for the stores: if nod up runs that server, start it with --sync always, which admits engines of other processes; otherwise name another key with --store-creds", n.edge.URL())
		}
		if err != nil {
			return err
		}
	}
	n.system = actors.NewSystem(o.Log)
	host, _ := os.Hostname()    // if this machine's host name is unknown, rules that allow calls by it do not apply
	home, _ := os.UserHomeDir() // if the home directory is unknown, allow rules that depend on it do not apply
	own, err := ownFiles(o.DataDir)
	if err != nil {
		return err
	}
	n.engine, err = engine.Start(ctx, engine.Options{
		Edge: n.edge, Store: n.store, Replicas: max(1, o.Replicas), System: n.system,
		Version: o.Version, VoiceTimeout: o.VoiceTimeout, Log: o.Log, Logged: count,
		Host: host, Home: home, Own: own, Channels: ChannelSettings(),
		Projects: &engine.ProjectFiles{Channels: ChannelSettings()}, Traces: n.tracer(),
	})
	if err != nil {
		return err
	}
	if err := n.applySettings(ctx); err != nil {
		return err
	}
	if n.metrics != nil {
		n.metrics.Running(n.engine)
	}
	if n.opts.EngineAlone {
		return nil
	}
	if err := n.startWorkers(ctx); err != nil {
		return err
	}
	return n.openWeb(ctx)
}

// serveMetrics starts the server for metrics if the Options name its address. It returns the function
// that counts log entries for the metrics.
func (n *Nod) serveMetrics() (count func(*schemas.LogEntry), err error) {
	if n.opts.Metrics == "" {
		return nil, nil
	}
	m := metrics.New(n.opts.Version)
	if spans := n.opts.Traces; spans != nil {
		m.Traces(func() metrics.Spans { return metrics.Spans(spans.Stats()) })
	}
	n.metrics, err = metrics.Serve(m, n.opts.Metrics, n.opts.Log)
	return m.Logged, err
}

// tracer returns the tracer of the engine and the workers. If nothing is traced, it returns a nil
// interface, and not an interface with a nil Exporter.
func (n *Nod) tracer() traces.Tracer {
	if n.opts.Traces == nil {
		return nil
	}
	return n.opts.Traces
}

// ownFiles returns the absolute path of the data directory. If that path has symbolic links, ownFiles
// also returns it with the links resolved.
func ownFiles(dataDir string) ([]string, error) {
	if dataDir == "" {
		return nil, nil
	}
	full, err := filepath.Abs(dataDir)
	if err != nil {
		return nil, fmt.Errorf("find the data directory: %w", err)
	}
	if real, err := filepath.EvalSymlinks(full); err == nil && real != full { // EvalSymlinks fails if the directory does not exist yet
		return []string{full, real}, nil
	}
	return []string{full}, nil
}

// serve starts the embedded server, which accepts every key in the data directory.
func (n *Nod) serve(ctx context.Context) error {
	o := n.opts
	var err error
	n.server, err = bus.Embed(ctx, bus.EmbedOptions{
		DataDir: o.DataDir, Host: o.Host, Port: o.Port, SyncInterval: o.SyncInterval,
		Prepare: n.prepare, Version: o.Version, Log: o.Log,
	})
	return err
}

// prepare brings the data directory to this nod's format, makes missing keys, and returns the
// users of all keys.
func (n *Nod) prepare(ctx context.Context) ([]roles.User, error) {
	if err := openData(ctx, n.opts.DataDir, n.opts.Version, steps(), n.opts.Log); err != nil {
		return nil, err
	}
	var err error
	if n.keys, err = roles.OpenKeys(n.opts.DataDir); err != nil {
		return nil, err
	}
	if n.keys.Operator() {
		return nil, fmt.Errorf("%s has keys for NATS servers in operator mode, and the server of nod up is none: name another directory with --data, or those servers with --nats-url", n.opts.DataDir)
	}
	ids := append(roles.First(), roles.ConnectorID(web.Name))
	for _, name := range ChannelNames() {
		ids = append(ids, roles.ConnectorID(name)) // every channel gets a key at the start, because the settings may name the channel later, and the server reads keys only at its start
	}
	if err := n.keys.Ensure(ids...); err != nil {
		return nil, err
	}
	users, err := n.keys.Users()
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		if UsesKey(u.ID) {
			n.own = append(n.own, u)
		}
	}
	return n.users(time.Now())
}

// connect opens a connection in a role. If the server is embedded, it uses that role's key, and
// otherwise the key file creds.
func (n *Nod) connect(ctx context.Context, id roles.ID, creds string) (*bus.Conn, error) {
	o := bus.Options{URL: n.opts.URL, Name: "nod " + id.String(), Creds: creds, Inbox: id.InboxPrefix(), Wait: n.opts.Wait, Log: n.opts.Log}
	if n.server != nil {
		o.Server, o.Creds = n.server, n.keys.Path(id)
	}
	return bus.Connect(ctx, o)
}

// Connect opens a new connection in a role, which the caller must Close. If Options.URL names servers
// that require credentials, the data directory must contain the key of that role.
func (n *Nod) Connect(ctx context.Context, id roles.ID) (*bus.Conn, error) {
	if n.server != nil || n.Open() {
		return n.connect(ctx, id, "")
	}
	keys, err := roles.OpenKeys(n.opts.DataDir)
	if err != nil {
		return nil, err
	}
	if _, err := keys.User(id); err != nil {
		return nil, err
	}
	return n.connect(ctx, id, keys.Path(id))
}

// Metrics returns the address at which metrics are served, or "" if they are not.
func (n *Nod) Metrics() string {
	if n.metrics == nil {
		return ""
	}
	return n.metrics.Addr()
}

// Traces returns the address of the collector that gets spans, or "" if there is none.
func (n *Nod) Traces() string {
	if n.opts.Traces == nil {
		return ""
	}
	return n.opts.Traces.Endpoint()
}

// URL returns the address at which other processes reach the bus.
func (n *Nod) URL() string {
	if n.server != nil {
		return n.server.URL()
	}
	return n.opts.URL
}

// Failed returns a channel that gets an error if the disk fails. After that the server confirms no
// write, so the process must stop this nod and end.
func (n *Nod) Failed() <-chan error {
	if n.server == nil {
		return nil
	}
	return n.server.Failed()
}

// Settings returns the settings in force.
func (n *Nod) Settings(ctx context.Context) (schemas.Settings, error) { return n.engine.Settings(ctx) }

// Open reports whether the bus requires no credentials. On an open bus every client can answer
// requests.
func (n *Nod) Open() bool { return n.edge.Open() }

// applySettings applies Options.Settings. Without them, it applies empty settings at the very first
// start, and nothing at later starts.
func (n *Nod) applySettings(ctx context.Context) error {
	if n.opts.KeepSettings {
		return nil
	}
	data := n.opts.Settings
	if data == nil {
		revision, err := n.engine.SettingsRevision(ctx)
		if err != nil || revision != 0 {
			return err
		}
		data = []byte("{}")
	}
	data, err := WithApprovers(data)
	if err != nil {
		return err
	}
	_, err = n.engine.ApplySettings(ctx, data, "start")
	return err
}

// WithApprovers returns a settings.json with approvers. If the given settings have no
// approvers, the user of this process becomes the approver, at the terminal and on the web.
func WithApprovers(data []byte) ([]byte, error) {
	s, err := DecodeSettings(data)
	if err != nil || s.Approvers != nil {
		return data, err
	}
	u, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("find the user of this process, who is to be the approver: %w", err)
	}
	s.Approvers = &schemas.Approvers{People: []schemas.Approver{{
		Name: u.Username,
		Identities: []schemas.Identity{
			{Connector: schemas.ConnectorTerminal, UserID: u.Username},
			{Connector: schemas.ConnectorWeb, UserID: u.Username},
		},
	}}}
	return schemas.Encode(s)
}

// Stop stops the connectors, replies to every open call, and then stops the engine, the connections
// and the server. Pending requests stay stored. The context bounds the wait for open calls and for
// work in progress. A further call waits for the first one and returns its error.
func (n *Nod) Stop(ctx context.Context) error {
	n.stopping.Do(func() { n.stopped = n.stop(ctx) })
	return n.stopped
}

func (n *Nod) stop(ctx context.Context) error {
	if n.metrics != nil {
		n.metrics.Running(nil)
	}
	if n.stopKeys != nil {
		n.stopKeys()
	}
	errs := []error{n.stopWeb(ctx), n.stopWorkers(ctx)}
	if n.engine != nil {
		errs = append(errs, n.engine.Stop(ctx))
	}
	if n.system != nil {
		n.system.Stop()
	}
	if n.store != nil && n.store != n.edge {
		n.store.Close()
	}
	if n.edge != nil {
		n.edge.Close()
	}
	if n.server != nil {
		errs = append(errs, n.server.Close())
	}
	if n.metrics != nil {
		errs = append(errs, n.metrics.Stop(ctx))
	}
	return bus.JoinErrors(errs...)
}
