package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"time"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/cmd/nod/internal/codex"
	"github.com/nodbus/nod/cmd/nod/internal/installs"
	"github.com/nodbus/nod/cmd/nod/internal/launcher"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

func hostNamed(name string) (hook.Host, error) {
	var known []string
	for _, h := range hook.Hosts() {
		if h.Name == name {
			return h, nil
		}
		known = append(known, h.Name)
	}
	return hook.Host{}, fmt.Errorf("nod knows no agent %q: it knows %v", name, known)
}

type hookCmd struct {
	Agent         string        `arg:"" help:"Which agent program: claude-code, codex, gemini or copilot."`
	HostTimeout   time.Duration `name:"host-timeout" help:"How long the agent program waits for the hook."`
	DeferAfter    time.Duration `name:"defer-after" placeholder:"D" help:"In claude -p: end the run after this long without an answer, or deny the call for now where it is one of several; go on with nod resume."`
	OnUnavailable string        `name:"on-unavailable" enum:"ask,deny" default:"ask" help:"Where nod is not running: let the agent program ask, where it can, or deny."`
}

// Run answers one call. Whatever happens, stdout gets one JSON object.
func (c *hookCmd) Run(e *env) error {
	host, err := hostNamed(c.Agent)
	if err != nil {
		fail(e.stderr, err)
		return exit(hook.Refuse(e.stdout))
	}
	ctx, stop := hook.Lifetime(context.Background(), os.Stdout)
	defer stop()
	hostname, _ := os.Hostname() // shown only
	name := ""
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	var client *nod.Client
	connect := func(ctx context.Context) (hook.Nod, error) {
		client, err = nod.Connect(ctx, nod.Options{Place: e.place, Log: e.log})
		if err != nil {
			return nil, unavailable(err)
		}
		return asker{client}, nil
	}
	code := hook.Run(ctx, host, e.stdin, e.stdout, connect, hook.Options{
		HostTimeout: c.HostTimeout, DeferAfter: c.DeferAfter, OnUnavailable: hook.OnUnavailable(c.OnUnavailable),
		Host: hostname, User: name, Project: os.Getenv("CLAUDE_PROJECT_DIR"), Stderr: e.stderr,
	})
	if client != nil {
		client.Close()
	}
	if dir, err := e.dataDir(); err == nil {
		installs.Ran(dir, host.Name, version())
	}
	if code != exitOK {
		return exit(code)
	}
	return nil
}

// unavailable is the hook's word for a nod that is not there to be asked. Keys
// that are refused are something else: the hook denies then.
func unavailable(err error) error {
	if errors.Is(err, bus.ErrNotRunning) || errors.Is(err, bus.ErrNoServer) {
		return schemas.Errorf(schemas.CodeUnavailable, "%v", err)
	}
	return err
}

// asker is the client as a hook uses it.
type asker struct{ *nod.Client }

// Ask waits for the decision, whatever it is. Whether the request is withdrawn
// or left open when ctx ends is the hook's to say.
func (a asker) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	asked, err := a.Submit(ctx, r)
	if err != nil {
		return schemas.Decision{}, err
	}
	defer asked.Drop()
	return asked.Await(ctx)
}

// Withdraw takes a request back; what it was decided as does not matter.
func (a asker) Withdraw(ctx context.Context, sessionID, pendingID, reason string) error {
	_, err := a.Client.Withdraw(ctx, sessionID, pendingID, reason)
	return err
}

// Passed withdraws what the host has gone on without, whichever that is.
func (a asker) Passed(ctx context.Context, p schemas.Passed) error {
	_, err := a.Client.Passed(ctx, p)
	return err
}

type installCmd struct {
	Agent         string        `arg:"" help:"Which agent program: claude-code, codex, gemini, copilot or opencode; or mcp or acp, for a host whose settings list such programs."`
	Command       []string      `arg:"" optional:"" passthrough:"" help:"For acp: the agent's command, behind --."`
	Settings      string        `placeholder:"PATH" type:"path" help:"The agent program's settings file."`
	Project       bool          `help:"Only for the project in the current directory."`
	Strict        bool          `help:"Gate every tool call that the agent program shows its hooks, not only what it would ask about."`
	Uninstall     bool          `help:"Take it out again."`
	DryRun        bool          `name:"dry-run" help:"Only show what would change."`
	DeferAfter    time.Duration `name:"defer-after" placeholder:"D" help:"With --strict, for claude -p: end the run after this long without an answer, or deny the call for now where it is one of several; go on with nod resume."`
	OnUnavailable string        `name:"on-unavailable" enum:"ask,deny" default:"ask" help:"Where nod is not running: let the agent program ask, where it can, or deny."`
}

// Run changes an agent program's settings.
func (c *installCmd) Run(e *env) error {
	change, err := c.install(e)
	if err != nil {
		return err
	}
	switch {
	case !change.Changed():
		fmt.Fprintf(e.stdout, "%s: nothing to change\n", change.Path)
	case c.DryRun:
		fmt.Fprint(e.stdout, change.Diff())
	case c.Uninstall:
		fmt.Fprintf(e.stdout, "%s no longer asks nod\n", change.Path)
	default:
		fmt.Fprintf(e.stdout, "%s asks nod now; start nod with: nod up\n", change.Path)
	}
	if change.Note != "" {
		fmt.Fprintf(e.stderr, "nod: %s\n", change.Note)
	}
	if change.Warning != "" {
		fmt.Fprintf(e.stderr, "nod: warning: %s\n", change.Warning)
	}
	if c.Strict && !c.Uninstall && !c.DryRun && c.Agent == hook.ClaudeCode().Name {
		return e.offerImport(change.Path)
	}
	return nil
}

// install makes the change, or finds it.
func (c *installCmd) install(e *env) (hook.Change, error) {
	if c.Agent == hook.OpenCodeName {
		if c.OnUnavailable != string(hook.UnavailableAsk) || c.DeferAfter > 0 {
			return hook.Change{}, errors.New("opencode has no hook to give --on-unavailable or --defer-after: nod opencode takes the former")
		}
		o := hook.InstallOptions{Settings: c.Settings, Project: c.Project, Strict: c.Strict, Uninstall: c.Uninstall, DryRun: c.DryRun}
		change, err := hook.InstallOpenCode(o)
		if err != nil {
			return change, err
		}
		return change, e.remember(c.Agent, change, o)
	}
	if c.Agent == hook.MCPName || c.Agent == hook.ACPName {
		return c.installServer(e)
	}
	host, err := hostNamed(c.Agent)
	if err != nil {
		return hook.Change{}, fmt.Errorf("%w, %s, %s and %s", err, hook.OpenCodeName, hook.MCPName, hook.ACPName)
	}
	o, err := c.options(e)
	if err != nil {
		return hook.Change{}, err
	}
	change, err := hook.Install(host, o)
	if err != nil {
		return change, err
	}
	if host.Name == hook.Codex().Name && !c.Uninstall && !c.DryRun {
		change.Note = trusted(host, o)
	}
	return change, e.remember(host.Name, change, o)
}

// trusted has Codex trust the hook that was installed, and says so, or what is left
// to do: Codex runs no other.
func trusted(host hook.Host, o hook.InstallOptions) string {
	at, err := hook.Inspect(host, o)
	if err == nil {
		var config string
		var changed bool
		if config, changed, err = codex.Trust(at); err == nil && changed {
			return "Codex trusts the hook now, by " + config
		}
	}
	if err != nil {
		return fmt.Sprintf("%s (%v)", host.Setup.Note, err)
	}
	return ""
}

// installServer has a host start nod's own program.
func (c *installCmd) installServer(e *env) (hook.Change, error) {
	server, command := hook.MCPServer(), c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	var err error
	if c.Agent == hook.ACPName && c.Uninstall && len(command) == 0 {
		server = hook.ACPServers()
	} else if c.Agent == hook.ACPName {
		server, err = hook.ACPServer(command)
	} else if c.Settings == "" {
		c.Settings = ".mcp.json" // the project's, as Claude Code reads it
	}
	if err != nil {
		return hook.Change{}, err
	}
	o, err := c.options(e)
	if err != nil {
		return hook.Change{}, err
	}
	if !c.Uninstall {
		server.Args = append(server.Args[:1:1], append(o.Args, server.Args[1:]...)...)
	}
	change, err := hook.InstallServer(server, o)
	if err != nil {
		return change, err
	}
	return change, e.remember(c.Agent, change, o)
}

// remember keeps where an agent program was changed, for nod uninstall.
func (e *env) remember(agent string, change hook.Change, o hook.InstallOptions) error {
	if o.DryRun {
		return nil
	}
	dir, err := e.dataDir()
	if err != nil {
		return err
	}
	in := installs.Install{Agent: agent, Path: change.Path, At: time.Now().UTC(), Created: change.Creates()}
	if o.Uninstall {
		if err := removeEmpty(dir, in); err != nil {
			return err
		}
		return installs.Forget(dir, in)
	}
	return installs.Remember(dir, in, change.Changed())
}

// options are what the flags ask for. The hook asks the nod that this command
// would, whatever the host's environment is. It runs the launcher, which is made
// first: a hook whose program is missing lets some hosts run the tool.
func (c *installCmd) options(e *env) (hook.InstallOptions, error) {
	o := hook.InstallOptions{Settings: c.Settings, Project: c.Project, Strict: c.Strict, Uninstall: c.Uninstall, DryRun: c.DryRun}
	if c.Uninstall {
		return o, nil
	}
	dir, err := e.dataDir()
	if err != nil {
		return o, err
	}
	place, err := e.place.WithDefaults()
	if err != nil {
		return o, err
	}
	if usual, err := bus.DataHome(); err != nil || dir != usual || os.Getenv("XDG_DATA_HOME") != "" { // which the host may not have
		o.Args = append(o.Args, "--data", dir)
	}
	if place.URL != "" {
		o.Args = append(o.Args, "--nats-url", place.URL)
	}
	if place.Creds != "" {
		creds, err := filepath.Abs(place.Creds)
		if err != nil {
			return o, fmt.Errorf("find the key file: %w", err)
		}
		o.Args = append(o.Args, "--creds", creds)
	}
	if c.DeferAfter > 0 {
		if c.Agent != hook.ClaudeCode().Name || !c.Strict {
			return o, errors.New("--defer-after: only claude-code can end a run and take it up again, and only with --strict")
		}
		o.Args = append(o.Args, "--defer-after", c.DeferAfter.String())
	}
	if c.OnUnavailable != string(hook.UnavailableAsk) {
		o.Args = append(o.Args, "--on-unavailable", c.OnUnavailable)
	}
	if host, err := hostNamed(c.Agent); err == nil && len(host.Setup.Newer) > 0 {
		ctx, cancel := e.soon()
		o.HostVersion, _ = host.Version(ctx) // nod doctor says why not
		cancel()
	}
	o.Program = launcher.Path(dir)
	if c.DryRun {
		_, err = launcher.Self()
	} else {
		_, err = launcher.Ensure(dir)
	}
	return o, err
}
