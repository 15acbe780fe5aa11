package main

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

type resumeCmd struct {
	Session string   `arg:"" help:"Claude Code's id of the session."`
	Claude  string   `default:"claude" placeholder:"PROGRAM" help:"Claude Code's program."`
	Args    []string `arg:"" optional:"" passthrough:"" help:"Arguments for Claude Code, after --."`
}

// Run waits until the session has no pending requests, and then resumes the session in Claude Code.
// Claude Code asks nod again about its unfinished call, with the same request id, and gets the
// decision.
func (c *resumeCmd) Run(e *env) error {
	if err := e.awaitDecisions(agents.ID(c.Session)); err != nil {
		return err
	}
	args := append([]string{"-p", "--resume", c.Session}, c.Args...)
	if len(c.Args) > 0 && c.Args[0] == "--" {
		args = append(args[:3], c.Args[1:]...)
	}
	cmd := exec.CommandContext(e.ctx, c.Claude, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.stdin, e.stdout, e.stderr
	err := cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return exit(ended.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("resume the session: %w; start it yourself: claude -p --resume %s", err, c.Session)
	}
	return nil
}

func (e *env) awaitDecisions(session string) error {
	ctx, conn, done, err := e.join(roles.ConnectorID(schemas.ConnectorTerminal))
	if err != nil {
		return err
	}
	defer done()
	decided := newDecisions(session)
	sys := actors.NewSystem(e.log)
	defer sys.Stop()
	viewer, err := connector.View(ctx, sys, conn, schemas.ConnectorTerminal, e.log, decided.add)
	if err != nil {
		return err
	}
	defer func() {
		_ = viewer.Stop(e.ctx) // an error has no effect, because the viewer has no work left
	}()
	pending, err := connector.NewDesk(conn, schemas.ConnectorTerminal).Pending(ctx, schemas.Query{SessionID: session})
	if err != nil {
		return err
	}
	open := map[string]bool{}
	for _, p := range pending {
		open[p.Key()] = true
		fmt.Fprintf(e.stderr, "waiting for %s: %s (until %s)\n", p.PendingID, people.Summary(&p, 60), p.Deadline.Local().Format(time.DateTime))
	}
	for {
		for _, p := range decided.take() {
			if open[p.Key()] {
				delete(open, p.Key())
				fmt.Fprintf(e.stderr, "%s  %s\n", p.PendingID, people.Outcome(p.Decision, &p))
			}
		}
		if len(open) == 0 {
			return nil
		}
		select {
		case <-decided.added:
		case <-e.ctx.Done():
			return errors.New("stopped waiting; pending requests stay pending")
		}
	}
}

// decisions collects the decided requests of a session from a viewer. It never blocks the viewer, because
// connector.View returns only after the viewer has shown all pending requests.
type decisions struct {
	session string
	added   chan struct{} // signals that there are new decisions

	mu  sync.Mutex
	new []schemas.Prompt
}

func newDecisions(session string) *decisions {
	return &decisions{session: session, added: make(chan struct{}, 1)}
}

func (d *decisions) add(p schemas.Prompt) {
	if p.SessionID != d.session || p.Decision == nil {
		return
	}
	d.mu.Lock()
	d.new = append(d.new, p)
	d.mu.Unlock()
	select {
	case d.added <- struct{}{}:
	default:
	}
}

// take returns the decisions since the last call of take.
func (d *decisions) take() (all []schemas.Prompt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, d.new = d.new, nil
	return all
}
