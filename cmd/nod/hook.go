package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/cmd/nod/internal/hookwait"
	"github.com/nodbus/nod/cmd/nod/internal/installs"
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/traces"
)

func hostNamed(name string) (hook.Host, error) {
	var known []string
	for _, h := range hook.Hosts() {
		if h.Name == name {
			return h, nil
		}
		known = append(known, h.Name)
	}
	return hook.Host{}, fmt.Errorf("nod knows no agent %q: it knows %s", name, strings.Join(known, ", "))
}

type hookCmd struct {
	Agent         string        `arg:"" help:"The agent program: claude-code, codex, gemini, copilot, qwen-code, cursor, vscode, droid, pi or openclaw."`
	HostTimeout   time.Duration `name:"host-timeout" help:"How long the agent program waits for the hook."`
	ChangesInput  bool          `name:"changes-input" hidden:"" help:"The agent program is of a version that runs changed inputs (nod install writes this)."`
	ApprovedOnly  bool          `name:"approved-only" hidden:"" help:"Ask nod only about calls that a person may have approved (nod install writes this)."`
	Turns         bool          `hidden:"" help:"Ask people for the agent's next prompt (nod install writes this)."`
	DeferAfter    time.Duration `name:"defer-after" placeholder:"D" help:"In claude -p: end the run after this long without an answer, or deny the call for now if it is one of several; continue with nod resume."`
	OnUnavailable string        `name:"on-unavailable" enum:"ask,deny" default:"ask" help:"If nod is not running: let the agent program ask, if it can, or deny."`
}

// Run answers one call of an agent program's hook. In every case it writes exactly
// one JSON object to stdout.
func (c *hookCmd) Run(e *env) error {
	began := time.Now()
	host, err := hostNamed(c.Agent)
	if err != nil {
		fail(e.stderr, err)
		return exit(hook.Refuse(e.stdout))
	}
	ctx, stop := hook.Lifetime(traces.FromEnvironment(context.Background()), os.Stdout)
	defer stop()
	hostname, name := hostAndUser()
	var client *nod.Client
	connect := func(ctx context.Context) (hook.Nod, error) {
		client, err = nod.Connect(ctx, nod.Options{Place: e.place, Log: e.log})
		if err != nil {
			return nil, unavailable(err)
		}
		return asker{client}, nil
	}
	dir, dirErr := e.dataDir()
	var notes hook.Unsettled = unsettled(dir)
	if dirErr != nil {
		notes = nil
	}
	project := os.Getenv("CLAUDE_PROJECT_DIR")
	possible, program := containable(e.place, project)
	code := hook.Run(ctx, host, e.stdin, e.stdout, connect, hook.Options{
		HostTimeout: c.HostTimeout, DeferAfter: c.DeferAfter, OnUnavailable: hook.OnUnavailable(c.OnUnavailable),
		Host: hostname, User: name, Project: project, Waits: e.waits(false), Unsettled: notes, Stderr: e.stderr,
		ChangesInput: c.ChangesInput, ApprovedOnly: c.ApprovedOnly,
		Turns: c.Turns, InTerminal: inTerminal(host),
		Contain: possible, Nod: program,
	})
	if dirErr == nil {
		e.reviewKilled(dir)
		if time.Since(began) < sweepBefore { // a hook that has run for longer than sweepBefore may be near its host's timeout
			_ = e.sweepHooks(context.WithoutCancel(ctx), dir, client) // after an error, the next hook or nod up withdraws the requests of dead hooks
		}
		if os.Getenv(hook.ProbeEnv) == "" {
			installs.Ran(dir, host.Name, version())
		}
	}
	// The connection is not closed, because it ends with the process and Client.Close would wait 10 ms.
	// Nothing is left to send, because every call has its reply.
	if code != exitOK {
		return exit(code)
	}
	return nil
}

// inTerminal reports whether the host's user started the host in a terminal, as an environment variable of
// the host says. For a host without such a variable it returns true.
func inTerminal(host hook.Host) bool {
	name, value, says := strings.Cut(host.Setup.Terminal, "=")
	return !says || os.Getenv(name) == value
}

// sweepBefore is the running time after which a hook no longer looks for hooks that died. The next hook
// or nod up then looks for them.
const sweepBefore = time.Second

// unsettled implements hook.Unsettled with files in a data directory.
type unsettled string

func (dir unsettled) Note(sessionID, tool string) error {
	return hookwait.NoteUnsettled(string(dir), sessionID, tool)
}

func (dir unsettled) Noted(sessionID, tool string) bool {
	return hookwait.IsUnsettled(string(dir), sessionID, tool)
}

func (dir unsettled) Forget(sessionID string) { hookwait.Settle(string(dir), sessionID) }

// containable returns the value of hook.Options.Contain for a project, and the nod program that starts
// the project's contained calls. That program asks the same nod as this process.
func containable(place bus.Place, project string) (possible string, program schemas.NodProgram) {
	var none schemas.NodProgram
	switch {
	case runtime.GOOS != "linux":
		return "this system cannot run it contained", none
	case !filepath.IsAbs(project):
		return "the hook was given no project directory, so it cannot run contained", none
	case leadsElsewhere(project):
		return "the project's directory is a link, or lies below one, so it cannot run contained", none
	}
	program, err := ownProgram(place, project)
	if err != nil {
		return err.Error() + ", so it cannot run contained", none
	}
	if level, why := knownSupport(); level != contain.Namespaces {
		return fmt.Sprintf("this machine cannot run it contained (%v): nod doctor", why), none
	}
	return schemas.ContainPossible, program
}

// knownSupport returns how this machine can contain commands. The check takes too long for a hook, so the
// result is kept in the user's cache directory.
func knownSupport() (contain.Level, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return contain.Support()
	}
	return contain.KnownSupport(filepath.Join(cache, "nod"))
}

// namedData returns the data directory that a command for the host's shell must name, or "" for the
// default directory. The shell may lack the environment variables with which the host runs its hooks.
func namedData(dir string) string {
	if home, err := bus.DataHome(); err != nil || home != dir {
		return dir
	}
	return ""
}

// leadsElsewhere reports whether the project's path contains a symbolic link or cannot be resolved.
func leadsElsewhere(project string) bool {
	real, err := filepath.EvalSymlinks(project)
	return err != nil || real != filepath.Clean(project)
}

// ownProgram returns the nod program that runs now, with the data directory, the servers and the key file of
// the given place. It returns an error if nod connects by a token, if an update has replaced the program, if
// a contained command could replace it, or if a path or a server's address cannot be written in a command
// line.
func ownProgram(place bus.Place, project string) (schemas.NodProgram, error) {
	var none schemas.NodProgram
	place, err := place.WithDefaults()
	if err != nil {
		return none, err
	}
	dir, err := filepath.Abs(place.DataDir)
	if err != nil {
		return none, err
	}
	program := schemas.NodProgram{Data: namedData(dir), URL: place.URL}
	if err := policy.CheckServers(place.URL); err != nil {
		return none, err
	}
	if place.TokenFile != "" {
		return none, errors.New("nod's agent connects by a token")
	}
	if place.Creds != "" {
		if program.Creds, err = filepath.Abs(place.Creds); err != nil || policy.CheckPath(program.Creds) != nil {
			return none, errors.New("the path of nod's key file has characters that a command line must not have")
		}
	}
	p, err := os.Executable()
	if err != nil {
		return none, errors.New("nod cannot tell where its own program is")
	}
	running, err := os.Stat("/proc/self/exe")
	if err != nil {
		return none, errors.New("nod cannot tell where its own program is")
	}
	program.Path, err = checkedProgram(p, running, project)
	return program, err
}

// checkedProgram resolves the symbolic links in the path p. It returns an error unless the resolved path
// leads to the running program, is outside of the project, and can be written in a command line.
func checkedProgram(p string, running os.FileInfo, project string) (string, error) {
	real, err := filepath.EvalSymlinks(p)
	if err != nil || !filepath.IsAbs(real) {
		return "", errors.New("nod's own program has been moved")
	}
	info, err := os.Stat(real)
	switch {
	case err != nil || !os.SameFile(info, running):
		return "", errors.New("nod's own program has been replaced")
	case policy.CheckPath(real) != nil:
		return "", errors.New("the path of nod's own program has characters that a command line must not have")
	case strings.HasPrefix(real, filepath.Clean(project)+"/"):
		return "", errors.New("nod's own program lies in the project, where a contained command could replace it")
	}
	return real, nil
}

// unavailable gives an error the code UNAVAILABLE if nod does not run or cannot be reached. This code
// lets a hook leave the call to the host's own user. Any other error, such as refused keys, stays
// unchanged, and makes a hook deny.
func unavailable(err error) error {
	if errors.Is(err, bus.ErrNotRunning) || errors.Is(err, bus.ErrNoServer) {
		return schemas.Errorf(schemas.CodeUnavailable, "%v", err)
	}
	return err
}

// asker adapts nod.Client to the interfaces of hooks and of agent connectors.
type asker struct{ *nod.Client }

// Ask waits until nod has stored the request, and then for the decision until ctx ends. The error is
// UNAVAILABLE if nod does not store the request in time (see agents.UntilStored). At the end of ctx the
// request stays pending; the caller may withdraw it.
func (a asker) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	soon, cancel := agents.UntilStored(ctx)
	defer cancel()
	open, err := a.Submit(soon, r)
	if err != nil {
		return schemas.Decision{}, err
	}
	defer open.Drop()
	return open.Await(ctx)
}

// Withdraw ends a request. For a decided request it does nothing and returns no error.
func (a asker) Withdraw(ctx context.Context, sessionID, pendingID, reason string) error {
	_, err := a.Client.Withdraw(ctx, sessionID, pendingID, reason)
	return err
}

// Abandon withdraws a request whose call never runs. If the request was already allowed, its record
// gets the aftermath that the call never ran.
func (a asker) Abandon(ctx context.Context, sessionID, pendingID, reason string) error {
	d, err := a.Client.Withdraw(ctx, sessionID, pendingID, reason)
	if err != nil || d.Outcome != schemas.Allowed {
		return err
	}
	return a.HostResolved(ctx, schemas.HostResolved{SessionID: sessionID, PendingID: pendingID, Reason: reason})
}

// HostResolved withdraws the requests that the host resolved without a decision of nod.
func (a asker) HostResolved(ctx context.Context, p schemas.HostResolved) error {
	_, err := a.Client.HostResolved(ctx, p)
	return err
}
