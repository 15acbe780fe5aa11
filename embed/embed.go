// Package embed runs a whole nod in the caller's process: an embedded NATS
// server with its keys, or connections to one that is there, an engine, and the
// connectors that its settings name.
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
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/schemas"
)

// Options say what to run.
type Options struct {
	// DataDir holds everything that is kept, and the keys.
	DataDir string
	// Host and Port are where the embedded server listens; see bus.EmbedOptions.
	Host string
	Port int
	// SyncInterval is how long an acknowledged write may wait for the disk; 0,
	// the default, is not at all.
	SyncInterval time.Duration
	// URL names NATS servers to use instead of an embedded one, and Creds and
	// StoreCreds the key files of the engine in EDGE and in STORE. Without
	// them the server must be open.
	URL, Creds, StoreCreds string
	// Replicas of each store on a cluster; 0 is 1.
	Replicas int
	// Wait is how long to go on trying to reach URL.
	Wait time.Duration
	// Settings is a settings.json to apply; nil keeps what is applied, and at
	// the very first start lets this user answer at the terminal.
	Settings []byte
	// KeepSettings applies none, not even at a very first start.
	KeepSettings bool
	// EngineAlone starts no connectors, whatever the settings name.
	EngineAlone bool
	// Web is where the web inbox listens; nil is nowhere. Its PublicURL is the
	// settings' to say.
	Web *httpserve.Listen
	// WebKey is a file with the key that its logins are signed with, for several
	// inboxes behind one address; the data directory holds one where none is named.
	WebKey string
	// VoiceTimeout overrides the settings' where it is not 0.
	VoiceTimeout time.Duration
	Version      string // in SemVer; empty is "0.0.0"
	Log          *slog.Logger
}

// Nod is a running nod.
type Nod struct {
	opts   Options
	keys   *roles.Keys
	server *bus.Server // nil on servers that were there
	edge   *bus.Conn
	store  *bus.Conn
	system *actors.System
	engine *engine.Engine

	workers []worker
	web     *Web
	webConn *bus.Conn
	running []string // their names
}

// Start returns when nod answers. What keeps it from starting is one line, and
// nothing is left running then.
func Start(ctx context.Context, o Options) (*Nod, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Version = cmp.Or(o.Version, "0.0.0")
	n := &Nod{opts: o}
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, n.Stop(ctx))
	}
	return n, nil
}

func (n *Nod) start(ctx context.Context) error {
	o := n.opts
	if o.URL == "" {
		if err := n.serve(ctx); err != nil {
			return err
		}
	}
	var err error
	if n.edge, err = n.connect(ctx, roles.ID{Role: roles.Engine}, o.Creds); err != nil {
		return err
	}
	if n.store = n.edge; o.URL == "" || o.StoreCreds != "" {
		if n.store, err = n.connect(ctx, roles.ID{Role: roles.EngineStore}, o.StoreCreds); err != nil {
			return err
		}
	}
	n.system = actors.NewSystem(o.Log)
	host, _ := os.Hostname()    // unknown asks
	home, _ := os.UserHomeDir() // unknown asks
	own, err := ownFiles(o.DataDir)
	if err != nil {
		return err
	}
	n.engine, err = engine.Start(ctx, engine.Options{
		Edge: n.edge, Store: n.store, Replicas: max(1, o.Replicas), System: n.system,
		Version: o.Version, VoiceTimeout: o.VoiceTimeout, Log: o.Log,
		Host: host, Home: home, Own: own, Projects: &engine.ProjectFiles{},
	})
	if err != nil {
		return err
	}
	if err := n.applySettings(ctx); err != nil || n.opts.EngineAlone {
		return err
	}
	if err := n.carry(ctx); err != nil {
		return err
	}
	return n.openWeb(ctx)
}

// ownFiles are the data directory as it was given and as it is.
func ownFiles(dataDir string) ([]string, error) {
	if dataDir == "" {
		return nil, nil
	}
	full, err := filepath.Abs(dataDir)
	if err != nil {
		return nil, fmt.Errorf("find the data directory: %w", err)
	}
	if is, err := filepath.EvalSymlinks(full); err == nil && is != full { // one that is not there yet is no link
		return []string{full, is}, nil
	}
	return []string{full}, nil
}

// serve starts the embedded server with every key that is there.
func (n *Nod) serve(ctx context.Context) error {
	o := n.opts
	var err error
	n.server, err = bus.Embed(ctx, bus.EmbedOptions{
		DataDir: o.DataDir, Host: o.Host, Port: o.Port, SyncInterval: o.SyncInterval,
		Prepare: n.prepare, Version: o.Version, Log: o.Log,
	})
	return err
}

// prepare brings the data directory to this nod's format, and returns who has
// keys there, making those that are missing.
func (n *Nod) prepare(ctx context.Context) ([]roles.User, error) {
	if err := openData(ctx, n.opts.DataDir, n.opts.Version, steps(), n.opts.Log); err != nil {
		return nil, err
	}
	var err error
	if n.keys, err = roles.OpenKeys(n.opts.DataDir); err != nil {
		return nil, err
	}
	ids := append(roles.First(), roles.ConnectorID(web.Name))
	for _, name := range ChannelNames() {
		ids = append(ids, roles.ConnectorID(name)) // settings may name it while the server runs
	}
	if err := n.keys.Ensure(ids...); err != nil {
		return nil, err
	}
	return n.keys.Users()
}

// connect opens a connection in a role, with that role's key where the server
// is embedded and with creds where it is not.
func (n *Nod) connect(ctx context.Context, id roles.ID, creds string) (*bus.Conn, error) {
	o := bus.Options{URL: n.opts.URL, Name: "nod " + id.String(), Creds: creds, Inbox: id.InboxPrefix(), Wait: n.opts.Wait, Log: n.opts.Log}
	if n.server != nil {
		o.Server, o.Creds = n.server, n.keys.Path(id)
	}
	return bus.Connect(ctx, o)
}

// Connect opens a connection of its own in a role, within the process. On
// servers that were there and ask for credentials it needs that role's key in
// the data directory.
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

// URL is where other processes connect.
func (n *Nod) URL() string {
	if n.server != nil {
		return n.server.URL()
	}
	return n.opts.URL
}

// Settings are those in force.
func (n *Nod) Settings(ctx context.Context) (schemas.Settings, error) { return n.engine.Settings(ctx) }

// Open reports whether the bus asks for no keys, so that anyone on it can
// answer.
func (n *Nod) Open() bool { return n.edge.Open() }

// applySettings applies those that were given, or the first ones.
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

// WithApprovers is a settings.json that says who may answer: where it does not
// itself, the user who runs this process may, at the terminal and on the web.
func WithApprovers(data []byte) ([]byte, error) {
	s, err := schemas.DecodeSettings(data)
	if err != nil || s.Approvers != nil {
		return data, err
	}
	u, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("find out who may answer: %w", err)
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

// Stop ends the connectors, answers every open call, then ends the engine, the
// connections and the server. Requests stay as they are.
func (n *Nod) Stop(ctx context.Context) error {
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
	return errors.Join(errs...)
}
