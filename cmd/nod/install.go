package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/cmd/nod/internal/codex"
	"github.com/nodbus/nod/cmd/nod/internal/installs"
	"github.com/nodbus/nod/cmd/nod/internal/launcher"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/agents/mcpgate"
)

type installCmd struct {
	Agent         string        `arg:"" help:"The agent program: claude-code, codex, gemini, copilot, qwen-code, cursor, vscode, droid, pi, openclaw, opencode or kilo; or mcp or acp, for a host whose settings list such programs; or mcp-gate, for the MCP servers in a client's settings."`
	Command       []string      `arg:"" optional:"" passthrough:"" help:"For acp: the agent's command, after --."`
	Settings      string        `placeholder:"PATH" type:"path" help:"The agent program's settings file."`
	Project       bool          `help:"Only for the project in the current directory."`
	Strict        bool          `help:"Ask nod about every tool call that the agent program shows its hooks, not only those that it would ask its user about."`
	Turns         *bool         `negatable:"" help:"For claude-code and codex: when the agent has finished, tell you wherever you are, and take your reply as its next prompt; with claude-code also when it has failed."`
	Uninstall     bool          `help:"Remove nod from the agent program's settings."`
	DryRun        bool          `name:"dry-run" help:"Only show the changes; make none."`
	DeferAfter    time.Duration `name:"defer-after" placeholder:"D" help:"With --strict, for claude -p: end the run after this long without an answer, or deny the call for now if it is one of several; continue with nod resume."`
	OnUnavailable string        `name:"on-unavailable" enum:"ask,deny" default:"ask" help:"If nod is not running: let the agent program ask, if it can, or deny."`

	// If Unasked is true, the command does not ask whether to import the agent program's own rules.
	Unasked bool `kong:"-"`

	unimported bool // if true, the command does not mention the agent program's own rules
}

func (c *installCmd) Run(e *env) error {
	var err error
	if c.Command, err = commandAfter(c.Command); err != nil {
		return err // a mistyped flag, such as --dryrun, must not install
	}
	if len(c.Command) > 0 && c.Agent != hook.ACPName {
		return fmt.Errorf("unexpected argument %s: only acp takes a command; see nod install --help", c.Command[0])
	}
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
		for line := range strings.SplitSeq(c.asksNow(e, change.Path), "\n") {
			e.printWrapped(line)
		}
	}
	if change.Note != "" {
		fmt.Fprintf(e.stderr, "nod: %s\n", change.Note)
	}
	if change.Warning != "" {
		fmt.Fprintf(e.stderr, "nod: warning: %s\n", change.Warning)
	}
	if c.seesAll() && !c.Uninstall && !c.DryRun && !c.unimported {
		return e.offerImport(c.Agent, change.Path, !c.Unasked && e.interactive())
	}
	return nil
}

// isStrict reports whether the hooks in a settings file were installed with --strict.
func isStrict(host hook.Host, path string) bool {
	at, err := hook.Inspect(host, hook.InstallOptions{Settings: path})
	return err == nil && slices.ContainsFunc(at.Hooks, func(i hook.Installed) bool { return slices.Contains(host.Setup.Strict, i.Event) })
}

// seesAll reports whether the host runs the hook before every tool call, even before calls that the host
// would allow by itself. A host without --strict has only one kind of hook, and runs it before every tool
// call.
func (c *installCmd) seesAll() bool {
	host, err := hostNamed(c.Agent)
	return err == nil && (c.Strict || len(host.Setup.Strict) == 0)
}

// installed contains the changed files of an installation: an agent program's settings and, if the
// program has one, its list of trusted hooks (Codex) or plugins (OpenClaw).
type installed struct {
	hook.Change
	trust hook.Change
}

func (i installed) Changed() bool { return i.Change.Changed() || i.trust.Changed() }

func (i installed) Diff() string { return i.Change.Diff() + i.trust.Diff() }

// install installs the hook. With --dry-run it computes the changes and writes nothing.
func (c *installCmd) install(e *env) (installed, error) {
	if host, err := hostNamed(c.Agent); c.Turns != nil && (err != nil || len(host.Setup.Turns) == 0) {
		return installed{}, fmt.Errorf("--turns: nod install %s takes no replies to the end of a turn; claude-code and codex do, and nod opencode, nod kilo and nod acp have a flag of their own", c.Agent)
	}
	switch c.Agent {
	case hook.OpenCode.Name, hook.Kilo.Name:
		change, err := c.installOpenCode(e)
		return installed{Change: change}, err
	case hook.MCPName, hook.ACPName:
		change, err := c.installServer(e)
		return installed{Change: change}, err
	case hook.MCPGateName:
		change, err := c.installGate(e)
		return installed{Change: change}, err
	}
	host, err := hostNamed(c.Agent)
	if err != nil {
		return installed{}, fmt.Errorf("%w, %s, %s, %s, %s and %s", err, hook.OpenCode.Name, hook.Kilo.Name, hook.MCPName, hook.ACPName, hook.MCPGateName)
	}
	o, err := c.options(e)
	if err != nil {
		return installed{}, err
	}
	if c.Uninstall {
		o.KeepEmptyHooks = e.hadEmptyHooks(host, o)
	}
	if host.Name == hook.OpenClaw().Name && c.Project {
		return installed{}, errors.New("--project: OpenClaw loads plugins by its user's settings alone")
	}
	change, err := hook.Install(host, o)
	if err != nil {
		return installed{Change: change}, err
	}
	made := installed{Change: change}
	switch host.Name {
	case hook.Codex().Name:
		c.trust(host, &made)
	case hook.OpenClaw().Name:
		if err := c.loads(&made); err != nil {
			return made, err
		}
	}
	return made, e.remember(host.Name, change, o)
}

// hadEmptyHooks reports whether the user's file had an empty list of hooks before nod was installed
// there.
func (e *env) hadEmptyHooks(host hook.Host, o hook.InstallOptions) bool {
	dir, err := e.dataDir()
	if err != nil {
		return false
	}
	at, err := hook.Inspect(host, o)
	if err != nil {
		return false // the installation reports this error
	}
	was, err := installs.Find(dir, host.Name, at.Path)
	return err == nil && was.EmptyHooks
}

// trust marks the hook as trusted in Codex's config.toml, because Codex runs
// trusted hooks only; with --uninstall it removes the mark. It reports a failure as
// a note, not as an error, because the hook itself is installed.
func (c *installCmd) trust(host hook.Host, made *installed) {
	was, is, err := hook.InspectChange(host, made.Change)
	switch {
	case err != nil:
	case c.Uninstall:
		made.trust, err = codex.Distrust(was)
	default:
		made.trust, err = codex.Trust(is)
	}
	if err == nil && !c.DryRun {
		err = made.trust.Write()
	}
	made.Note = ""
	switch {
	case err != nil && c.Uninstall:
		made.Note = fmt.Sprintf("Codex's config.toml still says that it trusts the hook (%v)", err)
	case err != nil:
		made.Note = fmt.Sprintf("%s (%v)", host.Setup.Note, err)
	case made.trust.Changed() && !c.DryRun && !c.Uninstall:
		made.Note = "Codex trusts the hook now, by " + made.trust.Path
	}
	if err != nil {
		made.trust = hook.Change{}
	}
}

// loads makes OpenClaw load nod's plugin. With --uninstall it reverses this.
func (c *installCmd) loads(made *installed) (err error) {
	made.trust, err = hook.LoadPlugin(made.Path, c.Uninstall)
	if err == nil && !c.DryRun {
		err = made.trust.Write()
	}
	if err != nil {
		if c.Uninstall {
			return fmt.Errorf("OpenClaw's settings still name nod's plugin: %w", err)
		}
		return fmt.Errorf("OpenClaw does not load nod's plugin yet: %w", err)
	}
	made.Warning = made.trust.Warning
	return nil
}

func (c *installCmd) installOpenCode(e *env) (hook.Change, error) {
	if c.OnUnavailable != string(hook.UnavailableAsk) || c.DeferAfter > 0 {
		return hook.Change{}, fmt.Errorf("%[1]s has no hook, so --on-unavailable and --defer-after have no effect: give --on-unavailable to nod %[1]s", c.Agent)
	}
	o := hook.InstallOptions{Settings: c.Settings, Project: c.Project, Strict: c.Strict, Uninstall: c.Uninstall, DryRun: c.DryRun}
	kind := hook.OpenCode
	if c.Agent == hook.Kilo.Name {
		kind = hook.Kilo
	}
	change, err := kind.Install(o)
	if err != nil {
		return change, err
	}
	return change, e.remember(c.Agent, change, o)
}

// installServer adds nod to a host's list of MCP servers or ACP agents.
func (c *installCmd) installServer(e *env) (hook.Change, error) {
	server := hook.MCPServer()
	var err error
	if c.Agent == hook.ACPName && c.Uninstall && len(c.Command) == 0 {
		server = hook.ACPServers()
	} else if c.Agent == hook.ACPName {
		server, err = hook.ACPServer(c.Command)
	} else if c.Settings == "" {
		c.Settings = ".mcp.json" // Claude Code reads .mcp.json in a project's directory
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

// installGate puts nod's gate before the MCP servers in a client's settings. With --uninstall it removes the
// gate.
func (c *installCmd) installGate(e *env) (hook.Change, error) {
	if c.Settings == "" {
		c.Settings = ".mcp.json" // Claude Code reads .mcp.json in a project's directory
	}
	o, err := c.options(e)
	if err != nil {
		return hook.Change{}, err
	}
	if !c.Uninstall {
		change, gated, err := hook.GateServers(o, mcpgate.CheckName)
		if err != nil {
			return change, err
		}
		return change, e.remember(c.Agent, change, o, gated...)
	}
	dir, err := e.dataDir()
	if err != nil {
		return hook.Change{}, err
	}
	path, err := filepath.Abs(c.Settings)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return hook.Change{}, fmt.Errorf("find the client's settings: %w", err)
	}
	was, err := installs.Find(dir, c.Agent, path)
	if err != nil {
		return hook.Change{}, err
	}
	change, err := hook.UngateServers(o, was.Servers)
	if err != nil {
		return change, err
	}
	return change, e.remember(c.Agent, change, o)
}

// remember stores, for nod uninstall, the path of the changed settings file and the MCP servers behind nod's
// gate. With --uninstall it removes this entry.
func (e *env) remember(agent string, change hook.Change, o hook.InstallOptions, gated ...hook.GatedServer) error {
	if o.DryRun {
		return nil
	}
	dir, err := e.dataDir()
	if err != nil {
		return err
	}
	in := installs.Install{Agent: agent, Path: change.Path, At: time.Now().UTC(), Created: change.Creates(), Dirs: change.NewDirectories, EmptyHooks: change.EmptyHooks, Servers: gated}
	if o.Uninstall {
		was, err := installs.Find(dir, agent, change.Path)
		if err == nil {
			err = restoreEmpty(was)
		}
		if err != nil {
			return err
		}
		return installs.Forget(dir, in)
	}
	if change.Blank() {
		blank := string(change.Before)
		in.Blank = &blank
	}
	return installs.Remember(dir, in, change.Changed())
}

// options returns the installation options for the flags. The hook's command line names the data directory,
// servers and key of this command, because the host may run the hook in another environment. The hook's
// program is the launcher, a link to nod in the data directory. options creates the launcher before the hook,
// because some hosts run a tool without asking while the hook's program is missing.
func (c *installCmd) options(e *env) (hook.InstallOptions, error) {
	o := hook.InstallOptions{Settings: c.Settings, Project: c.Project, Strict: c.Strict, Uninstall: c.Uninstall, DryRun: c.DryRun, Turns: c.Turns}
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
	if usual, err := bus.DataHome(); err != nil || dir != usual || os.Getenv("XDG_DATA_HOME") != "" { // the command line names the data directory, because the host may lack this command's environment variables
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
	if place.TokenFile != "" {
		token, err := filepath.Abs(place.TokenFile)
		if err != nil {
			return o, fmt.Errorf("find the token file: %w", err)
		}
		o.Args = append(o.Args, "--oidc-token-file", token)
	}
	if c.DeferAfter > 0 {
		if c.Agent != hook.ClaudeCode().Name || !c.Strict {
			return o, errors.New("--defer-after: only claude-code can end a run and resume it later, and only with --strict")
		}
		o.Args = append(o.Args, "--defer-after", c.DeferAfter.String())
	}
	if c.OnUnavailable != string(hook.UnavailableAsk) {
		o.Args = append(o.Args, "--on-unavailable", c.OnUnavailable)
	}
	if host, err := hostNamed(c.Agent); err == nil && (len(host.Setup.Newer) > 0 || host.ChangesSince != "") {
		ctx, cancel := e.soon()
		o.HostVersion, _ = host.Version(ctx) // a version that cannot be read is reported by nod doctor
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
