package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/schemas"
)

// decided runs the command of an allowed call in a container. Immediately before the start, nod must
// confirm that the call may run, and return the limits of its container.
func (c *execCmd) decided(e *env) error {
	if c.Contain || c.Session != "" || len(c.Permission) > 0 || c.Project != "" {
		return errors.New("--run takes the container from nod's decision: leave out --contain, --session, --permission and --project")
	}
	args, err := commandAfter(c.Command)
	if err != nil {
		return err
	}
	session, id := schemas.SplitKey(c.Decision)
	if session == "" || id == "" {
		return fmt.Errorf("%q is not SESSION.CALL, as nod writes it into an allowed command", c.Decision)
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	ctx, client, done, err := e.agent("")
	if err != nil {
		return err
	}
	defer done()
	running, err := client.Run(ctx, schemas.Run{SessionID: session, PendingID: id, Words: schemas.WordsDigest(args), Dir: dir})
	if err != nil {
		return err
	}
	spec, err := runSpec(running.Container, args, session)
	if err == nil {
		err = e.keepNotes(&spec)
	}
	if err != nil {
		return err
	}
	// The context must outlive e.ctx, because the command gets the signals that end e.ctx and handles
	// them itself.
	report, err := contain.Run(context.WithoutCancel(e.ctx), spec)
	code := report.ExitCode
	var refused *agents.ExitError
	if err != nil {
		code = agents.CodeRefused
		if errors.As(err, &refused) {
			code = refused.Code
		}
	}
	e.reportRun(client, schemas.Ran{SessionID: session, PendingID: id, RunID: running.RunID, Report: reportOf(report, code)})
	if err != nil {
		return err
	}
	e.printContained(report, 0, "nod ask --session "+session+" --permission "+networkTag+"%s --reason WHY (or request_permission), then make the call again", " --permission "+networkTag)
	if code != 0 {
		return exit(code)
	}
	return nil
}

// runSpec returns the limits for a command in the container that nod decided on.
func runSpec(c schemas.Container, args []string, session string) (contain.Spec, error) {
	project, err := filepath.EvalSymlinks(c.Project)
	if err != nil {
		return contain.Spec{}, err
	}
	if project != c.Project { // the project path has become a symbolic link, possibly by an earlier command
		return contain.Spec{}, fmt.Errorf("the project %s leads to %s: start the agent in that directory", c.Project, project)
	}
	dir, err := filepath.EvalSymlinks(c.Dir)
	if err != nil {
		return contain.Spec{}, err
	}
	spec, err := containSpec(project, dir, args, c.Permissions)
	if err != nil {
		return spec, err
	}
	spec.ReadOnly = c.ReadOnly
	spec.Scratch, err = scratchDir(session, project)
	return spec, err
}

// reportOf returns the report of a contained command, cut to the size limits of a message.
func reportOf(r contain.Report, code int) schemas.RunReport {
	out := schemas.RunReport{ExitCode: min(max(code, 0), 255), Changes: r.Changes, Partial: r.Partial}
	for _, f := range r.Refused {
		out.Refused = append(out.Refused, f.String())
	}
	out.Refused = append(out.Refused, r.LookedUp...)
	refused := len(out.Refused)
	out.Refused = out.Refused[:min(refused, schemas.MaxRefusedHosts)]
	out.Changed = append(out.Changed, r.Changed[:min(len(r.Changed), schemas.MaxChangedFiles)]...)
	out.Partial = out.Partial || refused > len(out.Refused) || r.Changes > len(out.Changed)
	return out
}

// reportRun reports to nod that a command has ended. A failure to reach nod does not change the
// command's exit code.
func (e *env) reportRun(client *nod.Client, ran schemas.Ran) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), callTimeout)
	defer cancel()
	if err := client.Ran(ctx, ran); err != nil {
		e.log.Warn("the end of a contained command was not recorded", "error", err)
	}
}
