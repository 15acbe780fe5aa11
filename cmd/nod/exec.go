package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/connectors/agents/exec"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type execCmd struct {
	Session            string   `required:"" placeholder:"S" help:"The session that runs it."`
	Permission         []string `sep:"none" placeholder:"TAG" help:"What else of the session's it may do: @read:PATH, @write:PATH or @network; repeatable."`
	RequireEnforcement bool     `name:"require-enforcement" help:"Refuse to run what this kernel cannot hold to its permissions."`
	Command            []string `arg:"" passthrough:"" placeholder:"CMD" help:"The command and its arguments, after --."`
}

// Help is what nod exec --help says beside the flags.
func (execCmd) Help() string {
	return "The command may use the session's working directory and what --permission names of what the session holds, and nothing else of it. " +
		"It starts where it is called, or in the working directory where that is out of reach. " +
		"Where it was not run, the exit code is 125, or 126 and 127 as in a shell. To run programs it may also read, where they are there: " +
		strings.Join(exec.SystemPaths(), " ") + "; and read and write: " + strings.Join(exec.SystemDevices(), " ") +
		". What a program keeps in the home directory (git: ~/.gitconfig) must be named, or the program told to do without."
}

// Run becomes the command. It returns only where that was not possible, with
// one of the exit codes that shells have for it.
func (c *execCmd) Run(e *env) error {
	err := c.become(e)
	code := exec.CodeRefused
	var failed *exec.Error
	if errors.As(err, &failed) {
		code = failed.Code
	}
	fail(e.stderr, err)
	return exit(code)
}

func (c *execCmd) become(e *env) error {
	args, err := behind(c.Command)
	if err != nil {
		return err
	}
	set, err := c.held(e)
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

// held is what the session holds now, by the engine's word.
func (c *execCmd) held(e *env) (schemas.SessionPermissions, error) {
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
		return none, fmt.Errorf("session %s holds no permissions to run inside of: nod session set %[1]s --working-dir DIR", c.Session)
	}
	return set, nil
}

// startIn is the working directory where the command may not even read the
// directory that it was called in; "" leaves it there.
func startIn(e *env, scope *schemas.SessionPermissions) string {
	cwd, err := os.Getwd()
	if err != nil {
		return scope.WorkingDir
	}
	if scope.WorkingDir == "" || policy.Covers(scope, policy.Permission{Access: policy.AccessRead, Path: cwd}, policy.OnDisk) {
		return ""
	}
	fmt.Fprintf(e.stderr, "nod: running in %s, as %s is out of reach\n", people.Line(scope.WorkingDir), people.Line(cwd))
	return scope.WorkingDir
}
