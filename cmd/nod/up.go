package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/cmd/nod/internal/launcher"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// preferredPort is the default port of NATS. With it, NATS tools find nod without flags.
const preferredPort = 4222

type upCmd struct {
	Demo      bool     `xor:"detach" help:"Run a sample agent that sends one request."`
	LogFile   string   `name:"log-file" placeholder:"FILE" type:"path" help:"Print nothing, and write the log to this file, which is rotated by size."`
	Settings  string   `placeholder:"FILE" type:"path" help:"Apply this settings.json (DATA/settings.json, if there is one)."`
	Listen    string   `placeholder:"ADDR" default:"127.0.0.1:4222" help:"Address of the NATS server; if the port is taken, another free one is used."`
	Sync      syncMode `placeholder:"MODE" default:"group" help:"How writes are synced to disk: group (before nod confirms them, many at once), always (each on its own), or the longest time from confirmation to sync, such as 1s."`
	StoreCred string   `name:"store-creds" placeholder:"FILE" type:"path" help:"Key file for the stores' account on --nats-url."`
	Replicas  int      `default:"1" help:"Number of replicas of each store on --nats-url."`
	Detach    bool     `short:"d" xor:"detach" help:"Run in the background, with the log in a file; nod stop ends it."`
	Metrics   string   `placeholder:"ADDR" help:"Serve /metrics for Prometheus, /healthz and /readyz on this address, such as 127.0.0.1:9464."`
	Quiet     bool     `short:"q" help:"Do not print the questions."`
	ringFlag
	webFlags
}

// syncMode is the value of --sync: an interval, bus.SyncGroup or bus.SyncAlways.
type syncMode time.Duration

// UnmarshalText reads the flag. It reads 0, the default of earlier versions, as "always".
func (m *syncMode) UnmarshalText(text []byte) error {
	switch string(text) {
	case "group":
		*m = syncMode(bus.SyncGroup)
		return nil
	case "always", "0":
		*m = syncMode(bus.SyncAlways)
		return nil
	}
	interval, err := time.ParseDuration(string(text))
	if err != nil || interval <= 0 {
		return fmt.Errorf("%q is no way to sync: use group, always, or an interval such as 1s", text)
	}
	*m = syncMode(interval)
	return nil
}

// Run runs nod until the process gets a signal to stop, or its disk fails.
func (c *upCmd) Run(e *env) error {
	if c.Detach {
		return c.startInBackground(e)
	}
	if c.LogFile != "" {
		e.logTo(c.LogFile)
	}
	place, err := e.place.WithDefaults()
	if err != nil {
		return err
	}
	if err := launcher.Repair(place.DataDir); err != nil {
		e.log.Warn("the launcher that hooks and the service run leads to no program", "error", err)
	}
	settings, err := readSettings(c.Settings, place.DataDir)
	if err != nil {
		return err
	}
	host, port, err := splitAddr(c.Listen)
	if err != nil {
		return err
	}
	voice, err := voiceTimeout()
	if err != nil {
		return err
	}
	spans, flush := e.openTraces()
	ctx, cancel := context.WithTimeout(e.ctx, 30*time.Second)
	defer cancel()
	n, err := embed.Start(ctx, embed.Options{
		DataDir: place.DataDir, Host: host, Port: port, SyncInterval: time.Duration(c.Sync),
		Web: c.listen(), WebKey: c.LoginKey, Metrics: c.Metrics,
		URL: place.URL, Creds: place.Creds, StoreCreds: c.StoreCred, Replicas: c.Replicas,
		Settings: settings, VoiceTimeout: voice, Traces: spans, Version: version(), Log: e.log,
	})
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- c.serve(e, n, place.DataDir, port) }()
	select {
	case err := <-served:
		flush()
		return err
	case err := <-n.Failed(): // the process ends at once, because an orderly stop would wait for the failed disk, and all that nod confirmed is stored
		return err
	}
}

// serve returns once nod has stopped after a signal.
func (c *upCmd) serve(e *env, n *embed.Nod, dataDir string, port int) error {
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			fmt.Fprintf(e.stderr, "nod: stopping: %v\n", err)
		}
	}()
	if err := c.welcome(e, n, dataDir, port); err != nil {
		return err
	}
	sweeping, stop := context.WithCancel(e.ctx)
	swept := make(chan struct{})
	go func() { defer close(swept); e.runSweeps(sweeping, dataDir) }()
	defer func() { stop(); <-swept }()
	return c.watch(e, n)
}

func (c *upCmd) welcome(e *env, n *embed.Nod, dir string, wanted int) error {
	out := func(format string, args ...any) { fmt.Fprintf(e.stdout, format+"\n", args...) }
	out("nod is up on %s", n.URL())
	if e.place.URL == "" {
		out("  data      %s", dir)
		if _, port, err := splitAddr(n.URL()[len("nats://"):]); err == nil && wanted != 0 && port != wanted {
			out("  note      port %d is taken, so nod listens on %d; nod's own commands find it", wanted, port)
		}
	}
	for _, note := range e.commandNotes() {
		out("  note      %s", note)
	}
	e.warnOpen(n.Open())
	if s, err := n.Settings(e.ctx); err == nil && len(s.People()) == 0 && !s.ByLogin() {
		fmt.Fprintln(e.stderr, "nod: warning: approvers.people is empty, so every question is refused at once: add an approver to settings.json, then run nod settings apply")
	}
	for _, name := range n.Running() {
		out("  asks on   %s", name)
	}
	if err := welcomeToWeb(n.Web(), out); err != nil {
		return err
	}
	if addr := n.Metrics(); addr != "" {
		out("  metrics   http://%s/metrics", addr)
	}
	if collector := n.Traces(); collector != "" {
		out("  traces    %s", collector)
	}
	out("  try       nod ask --session demo --tool Bash --input '{\"command\":\"make clean\"}'")
	out("  answer    nod pending · nod show ID · nod allow ID · nod deny ID -m WHY")
	out("  agents    nod install claude-code")
	out("Stop with Ctrl-C. Pending requests stay pending.")
	return nil
}

// commandNotes returns notes about the flags that other nod commands need to reach this nod. It leaves
// out values from environment variables, because other commands read the same variables.
func (e *env) commandNotes() []string {
	var notes []string
	switch {
	case e.place.URL != "":
		notes = append(notes, "nod's other commands find it by --nats-url or NOD_URL")
	case e.place.DataDir != "":
		notes = append(notes, "nod's other commands find it by --data or NOD_DATA")
	}
	if exe, err := os.Executable(); err == nil && strings.Contains(exe, "go-build") { // go run has built this program
		if _, err := exec.LookPath("nod"); err != nil {
			notes = append(notes, "for nod type go run ./cmd/nod, until you go install ./cmd/nod")
		}
	}
	return notes
}

// watch prints prompts and outcomes until the process gets a signal to stop.
func (c *upCmd) watch(e *env, n *embed.Nod) error {
	e.log.Info("nod is up", "version", version(), "url", n.URL())
	system := actors.NewSystem(e.log)
	defer system.Stop()
	if !c.Quiet {
		stop, err := c.view(e, n, system)
		if err != nil {
			fmt.Fprintf(e.stderr, "nod: warning: questions are not shown here: %v\n", err)
		} else {
			defer stop()
		}
	}
	if c.Demo {
		stop, err := runDemo(e, n, system)
		if err != nil {
			return err
		}
		defer stop()
	}
	<-e.ctx.Done()
	fmt.Fprintln(e.stdout, "stopping; pending requests stay pending")
	return nil
}

func (c *upCmd) view(e *env, n *embed.Nod, system *actors.System) (stop func(), err error) {
	conn, err := n.Connect(e.ctx, roles.ConnectorID(schemas.ConnectorTerminal))
	if err != nil {
		return nil, err
	}
	screen := &screen{env: e, colours: coloured(e.stdout), rings: c.Notify && isTerminal(e.stdout), rung: map[string]bool{}}
	if c.Notify {
		desk := connector.NewDesk(conn, schemas.ConnectorTerminal)
		screen.desktop = newDesktop(e.log, func(p *schemas.Prompt) time.Duration {
			if p.Tier != schemas.TierConnected {
				return 0
			}
			after, err := desk.NotifyAfter(e.ctx) // TierConnected means that an approver is at the session
			if err != nil {
				return schemas.DefaultNotifyAfter
			}
			return after
		})
	}
	viewer, err := connector.View(e.ctx, system, conn, schemas.ConnectorTerminal, e.log, screen.show)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return func() {
		_ = viewer.Stop(context.Background()) // Stop fails only if its context ends
		conn.Close()
	}, nil
}

// A screen prints prompts and outcomes, one at a time.
type screen struct {
	*env
	colours bool
	rings   bool     // true if the terminal rings for each new request; see people.Ring
	desktop *desktop // shows desktop notifications, and the terminal then only rings its bell; nil if the terminal notifies
	mu      sync.Mutex
	rung    map[string]bool // keys of the pending requests for which the terminal has rung
}

func (s *screen) show(p schemas.Prompt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.desktop != nil {
		s.desktop.show(p)
	}
	if p.Decision != nil {
		delete(s.rung, p.Key())
		p.Request.CreatedAt = p.Request.CreatedAt.Local()
		fmt.Fprintf(s.stdout, "\n%s  %s\n", people.Outcome(p.Decision, &p), people.Summary(&p, 60))
		return
	}
	if s.rings && !s.rung[p.Key()] {
		s.rung[p.Key()] = true
		if s.desktop != nil {
			fmt.Fprint(s.stdout, people.Bell)
		} else {
			fmt.Fprint(s.stdout, people.Ring(p))
		}
	}
	question := s.formatParts(people.Unfolded(&p, time.Now()), s.colours) // the rest of the request is printed by nod show
	how := "nod allow " + p.PendingID + " · nod deny " + p.PendingID
	if isQuestion(&p) {
		how = "nod answer " + p.PendingID + " NUMBER, or your own words"
	}
	fmt.Fprintf(s.stdout, "\n%s\n  %s\n", question, how)
}

// readSettings reads the settings file at path. Without a path, it reads settings.json of the data directory.
// It returns nil if that file does not exist.
func readSettings(path, dir string) ([]byte, error) {
	named := path != ""
	if !named {
		path = filepath.Join(dir, "settings.json")
	}
	data, err := os.ReadFile(path)
	if !named && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) {
		return nil, nil // an invalid directory is reported later, when nod opens it
	}
	if !named && errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("read the settings: %w: fix its permissions, or name another directory with --data", err)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the settings: %w: 'nod setup' writes settings.json, or name another file", err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the settings: %w", err)
	}
	if _, err := embed.DecodeSettings(data); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return data, nil
}

func splitAddr(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%q is no address to listen on: use HOST:PORT, such as 127.0.0.1:%d", addr, preferredPort)
	}
	return host, port, nil
}

// voiceTimeout returns the seconds in NOD_PERMISSION_TIMEOUT or PERMISSION_TIMEOUT as a duration. It
// returns 0 if both are unset.
func voiceTimeout() (time.Duration, error) {
	for _, name := range []string{"NOD_PERMISSION_TIMEOUT", "PERMISSION_TIMEOUT"} {
		text := os.Getenv(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || time.Duration(n)*time.Second > schemas.MaxTimeout {
			return 0, fmt.Errorf("%s is %q: use a number of seconds from 1 to %d", name, text, schemas.MaxTimeout/time.Second)
		}
		return time.Duration(n) * time.Second, nil
	}
	return 0, nil
}
