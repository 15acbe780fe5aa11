package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/exec"
	"github.com/nodbus/nod/connectors/agents/readable"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type execCmd struct {
	Session            string   `placeholder:"S" help:"The session whose permissions the command gets. With --contain: the session whose /tmp and caches the command uses."`
	Permission         []string `sep:"none" placeholder:"TAG" help:"A permission of the session for the command, besides the working directory: @read:PATH, @write:PATH or @network; with --contain also @network:HOST:PORT; repeatable."`
	RequireEnforcement bool     `name:"require-enforcement" help:"Refuse to run the command if this kernel cannot enforce its permissions."`

	Decision           string        `name:"run" placeholder:"SESSION.CALL" help:"Run the command of this allowed call contained, as nod decided it, once."`
	Contain            bool          `help:"Run the command contained: it may use the project without its secrets, and no network except the given hosts."`
	Project            string        `type:"path" placeholder:"DIR" help:"With --contain: the project (the work tree around the current directory)."`
	ReadOnly           bool          `name:"read-only" help:"With --contain: the command may not change the project."`
	AllowLandlockAlone bool          `name:"allow-landlock-alone" help:"With --contain: run the command with weaker containment if this machine allows no namespaces."`
	MemoryMB           uint64        `name:"memory" placeholder:"MIB" help:"With --contain: the memory of each process."`
	Processes          uint64        `placeholder:"N" help:"With --contain: how many processes and threads may run at a time."`
	Time               time.Duration `placeholder:"D" help:"With --contain: kill the command after this time."`

	Command []string `arg:"" passthrough:"" placeholder:"CMD" help:"The command and its arguments, after --."`
}

// Help returns the text that nod exec --help shows besides the flags.
func (execCmd) Help() string {
	return "With --contain the command uses its project without its secrets: docs/containment.md. Without it, the command may use the session's working directory and those of the session's permissions that --permission names, and no others. " +
		"It starts in the current directory, or in the working directory if it may not read the current one. " +
		"If the command was not run, the exit code is 125, or 126 or 127 as in a shell. To run programs it may also read these paths, if they exist: " +
		strings.Join(readable.System(), " ") + "; and read and write: " + strings.Join(exec.SystemDevices(), " ") +
		". Name a program's files in the home directory (git: ~/.gitconfig) by --permission, or tell the program to do without them."
}

// Run runs the command. With --contain it returns the command's exit code. Otherwise the command
// replaces this process, and Run returns only on failure. If the command could not start, the exit code
// is the one that a shell uses for that failure.
func (c *execCmd) Run(e *env) error {
	become := c.become
	switch {
	case c.Decision != "":
		become = c.decided
	case c.Contain:
		become = c.contained
	}
	err := become(e)
	if err == nil {
		return nil
	}
	var ended exit
	if errors.As(err, &ended) {
		return ended
	}
	code := agents.CodeRefused
	var failed *agents.ExitError
	if errors.As(err, &failed) {
		code = failed.Code
	}
	fail(e.stderr, err)
	return exit(code)
}

func (c *execCmd) become(e *env) error {
	if c.Session == "" {
		return errors.New("name the session whose permissions the command gets (--session S), or contain the command (--contain)")
	}
	args, err := commandAfter(c.Command)
	if err != nil {
		return err
	}
	set, err := c.permissions(e)
	if err != nil {
		return err
	}
	scope, err := policy.ExecScope(set, c.Permission, policy.OnDisk)
	if err != nil {
		return err
	}
	if e.ctx.Err() != nil {
		return errors.New("stopped before the command ran")
	}
	return exec.Run(exec.Command{
		Args: args, Env: os.Environ(), Dir: startIn(e, &scope), Scope: scope,
		RequireEnforcement: c.RequireEnforcement, Stderr: e.stderr,
	})
}

// permissions asks the engine for the session's current permissions.
func (c *execCmd) permissions(e *env) (schemas.SessionPermissions, error) {
	var none schemas.SessionPermissions
	ctx, d, done, err := e.desk()
	if err != nil {
		return none, err
	}
	defer done()
	s, err := d.Session(ctx, c.Session)
	if err != nil {
		return none, err
	}
	set := policy.Held(s.Permissions, s.Grants)
	if s.Permissions == nil && !set.Network && len(set.ReadDirs)+len(set.WriteDirs) == 0 {
		return none, fmt.Errorf("session %s has no permissions to confine the command to: nod session set %[1]s --working-dir DIR", c.Session)
	}
	return set, nil
}

// startIn returns the directory in which to start the command. An empty result means the current
// directory. If the command has no permission to read the current directory, startIn returns the
// session's working directory.
func startIn(e *env, scope *schemas.SessionPermissions) string {
	cwd, err := os.Getwd()
	if err != nil {
		return scope.WorkingDir
	}
	if scope.WorkingDir == "" || policy.Covers(scope, policy.Permission{Access: policy.AccessRead, Path: cwd}, policy.OnDisk) {
		return ""
	}
	fmt.Fprintf(e.stderr, "nod: running in %s, as the command may not read %s\n", people.Line(scope.WorkingDir), people.Line(cwd))
	return scope.WorkingDir
}
