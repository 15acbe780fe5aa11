package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/cmd/nod/internal/hookwait"
	"github.com/nodbus/nod/cmd/nod/internal/installs"
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
	return hook.Host{}, fmt.Errorf("nod knows no agent %q: it knows %s", name, strings.Join(known, ", "))
}

type hookCmd struct {
	Agent         string        `arg:"" help:"The agent program: claude-code, codex, gemini or copilot."`
	HostTimeout   time.Duration `name:"host-timeout" help:"How long the agent program waits for the hook."`
	ChangesInput  bool          `name:"changes-input" hidden:"" help:"The agent program is of a version that runs changed inputs (nod install writes this)."`
	DeferAfter    time.Duration `name:"defer-after" placeholder:"D" help:"In claude -p: end the run after this long without an answer, or deny the call for now if it is one of several; continue with nod resume."`
	OnUnavailable string        `name:"on-unavailable" enum:"ask,deny" default:"ask" help:"If nod is not running: let the agent program ask, if it can, or deny."`
}

// Run answers one call of an agent program's hook. In every case it writes exactly
// one JSON object to stdout.
func (c *hookCmd) Run(e *env) error {
	host, err := hostNamed(c.Agent)
	if err != nil {
		fail(e.stderr, err)
		return exit(hook.Refuse(e.stdout))
	}
	ctx, stop := hook.Lifetime(context.Background(), os.Stdout)
	defer stop()
	hostname, _ := os.Hostname() // the host name is only shown to people
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
	dir, dirErr := e.dataDir()
	waits := func(sessionID, pendingID string) (func(), error) { return hookwait.Hold(dir, sessionID, pendingID) }
	var notes hook.Unsettled = unsettled(dir)
	if dirErr != nil {
		waits, notes = nil, nil
	}
	code := hook.Run(ctx, host, e.stdin, e.stdout, connect, hook.Options{
		HostTimeout: c.HostTimeout, DeferAfter: c.DeferAfter, OnUnavailable: hook.OnUnavailable(c.OnUnavailable),
		Host: hostname, User: name, Project: os.Getenv("CLAUDE_PROJECT_DIR"), Waits: waits, Unsettled: notes, Stderr: e.stderr,
		ChangesInput: c.ChangesInput,
		Contain:      containable(os.Getenv("CLAUDE_PROJECT_DIR")),
	})
	if dirErr == nil {
		_ = e.sweepHooks(context.WithoutCancel(ctx), dir, client) // after an error, the next sweep withdraws the remaining requests
		if os.Getenv(hook.ProbeEnv) == "" {
			installs.Ran(dir, host.Name, version())
		}
	}
	// The connection ends with the process. Every call has its reply by now, so that nothing is
	// left to send; Client.Close would wait 10 ms longer.
	if code != exitOK {
		return exit(code)
	}
	return nil
}

// unsettled is hook.Unsettled in a data directory.
type unsettled string

func (dir unsettled) Note(sessionID, tool string) error {
	return hookwait.NoteUnsettled(string(dir), sessionID, tool)
}

func (dir unsettled) Noted(sessionID, tool string) bool {
	return hookwait.IsUnsettled(string(dir), sessionID, tool)
}

func (dir unsettled) Forget(sessionID string) { hookwait.Settle(string(dir), sessionID) }

// containable returns the hook.Options.Contain for a project.
func containable(project string) string {
	switch {
	case runtime.GOOS != "linux":
		return "this system cannot run it contained"
	case !filepath.IsAbs(project):
		return "the hook was given no project directory, so it cannot run contained"
	case leadsElsewhere(project):
		return "the project's directory is a link, or lies below one, so it cannot run contained"
	case !found(os.Getenv("PATH"), project):
		return "a directory of the project comes before nod's in PATH, so a contained command could put another nod there"
	}
	return schemas.ContainPossible
}

// leadsElsewhere reports whether a path is not the real path of its directory.
func leadsElsewhere(project string) bool {
	real, err := filepath.EvalSymlinks(project)
	return err != nil || real != filepath.Clean(project)
}

// found reports whether a shell with this PATH finds nod, and finds it before it looks into a
// directory of the project. The changed call runs nod by its name, outside of any container.
func found(path, project string) bool {
	projects := []string{filepath.Clean(project)}
	if real, err := filepath.EvalSymlinks(project); err == nil {
		projects = append(projects, real)
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			return false
		}
		for _, at := range []string{dir, filepath.Join(dir, "nod")} {
			real, err := filepath.EvalSymlinks(at)
			for _, p := range append([]string{filepath.Clean(at)}, real) {
				if slices.ContainsFunc(projects, func(top string) bool { return p == top || strings.HasPrefix(p, top+"/") }) {
					return false
				}
			}
			if info, statErr := os.Stat(at); err == nil && at != dir && statErr == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return true
			}
		}
	}
	return false
}

// unavailable gives an error the code UNAVAILABLE if nod does not run or cannot be reached:
// a hook may then let the host ask its own user. Other errors, such as refused keys, stay
// as they are, and make a hook deny.
func unavailable(err error) error {
	if errors.Is(err, bus.ErrNotRunning) || errors.Is(err, bus.ErrNoServer) {
		return schemas.Errorf(schemas.CodeUnavailable, "%v", err)
	}
	return err
}

// asker adapts nod.Client to the interfaces of hooks and of agent connectors.
type asker struct{ *nod.Client }

// Ask waits for nod to store the request, and then for the decision until ctx ends.
// If nod does not store the request within callTimeout, the error is UNAVAILABLE.
// When ctx ends, the request stays pending, and the caller decides whether to
// withdraw it.
func (a asker) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	soon, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	open, err := a.Submit(soon, r)
	if err != nil {
		return schemas.Decision{}, err
	}
	defer open.Drop()
	return open.Await(ctx)
}

// Withdraw ends a request. Its decision does not matter to the caller.
func (a asker) Withdraw(ctx context.Context, sessionID, pendingID, reason string) error {
	_, err := a.Client.Withdraw(ctx, sessionID, pendingID, reason)
	return err
}

// HostResolved withdraws the requests that the host resolved without nod's
// decision.
func (a asker) HostResolved(ctx context.Context, p schemas.HostResolved) error {
	_, err := a.Client.HostResolved(ctx, p)
	return err
}
