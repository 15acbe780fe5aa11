package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/traces"
)

// takeBackTimeout is how long a stopped nod ask waits for its withdrawal.
const takeBackTimeout = 5 * time.Second

type askCmd struct {
	Command        []string `arg:"" optional:"" passthrough:"" help:"The command to ask about, after --, as one line or as words. nod does not run it."`
	Session        string   `placeholder:"S" help:"The session of the request; for a command without one it is \"shell\", and \"shell-AGENT\" of an agent that is not \"local\"."`
	Tool           string   `placeholder:"T" xor:"what" help:"Ask to use this tool, such as Bash."`
	Input          string   `placeholder:"JSON" help:"The tool's input, a JSON object; @FILE reads a file, - standard input."`
	Permission     []string `sep:"none" placeholder:"TAG" xor:"what" help:"Ask for this permission: @read:PATH, @write:PATH, @network, or @network:HOST:PORT for one host; repeatable."`
	Reason         string   `help:"The agent's reason, for the approver."`
	TimeoutMinutes int      `name:"timeout-minutes" placeholder:"N" help:"How long a permission may wait, 1 to 60 (15)."`
	ID             string   `placeholder:"ID" help:"The request's id: if it was sent before, wait for it again."`
	Agent          string   `hidden:"" help:"The agent's name on the bus."`
	AgentName      string   `name:"agent-name" placeholder:"NAME" help:"The agent's name as approvers see it."`
	Label          string   `placeholder:"TEXT" help:"The session's title as approvers see it."`
	Async          bool     `help:"Do not wait: exit with 6 while the request is pending."`
	JSON           bool     `name:"json" help:"Print the decision, or the receipt, as JSON."`
}

// agent connects as an agent for one command. The caller must call done, which closes the connection
// and cancels ctx.
func (e *env) agent(name string) (ctx context.Context, client *nod.Client, done func(), err error) {
	ctx, cancel := e.soon()
	if client, err = nod.Connect(ctx, nod.Options{Place: e.place, Agent: name, Log: e.log}); err != nil {
		cancel()
		return nil, nil, nil, err
	}
	e.warnOpen(client.Open())
	return ctx, client, func() { client.Close(); cancel() }, nil
}

// Run sends a request, waits for the decision and exits with the decision's code: 0
// only if the request is allowed unchanged.
func (c *askCmd) Run(e *env) error {
	if err := c.readCommand(); err != nil {
		return err
	}
	request, err := c.request(e)
	if err != nil {
		return c.failed(e, err)
	}
	ctx, client, done, err := e.agent(c.Agent)
	if err != nil {
		return err
	}
	defer done()
	request.SessionID = cmp.Or(request.SessionID, client.OwnSession("shell"))
	return c.send(ctx, e, client, &request)
}

// send sends r, at most until ctx ends, and waits for the decision. If e.ctx ends first, it withdraws
// r. It prints the decision or, with --async, the receipt.
func (c *askCmd) send(ctx context.Context, e *env, client *nod.Client, r *schemas.Request) error {
	// The id is made before SubmitAs, so that a signal during SubmitAs can withdraw the request.
	r.Rejoin = r.PendingID != ""
	r.PendingID = cmp.Or(r.PendingID, bus.NewID())
	open, err := client.SubmitAs(traces.FromEnvironment(ctx), *r)
	if err == nil && c.Async && open.Receipt.Revision != 0 {
		open.Drop()
		return c.printReceipt(e, open.Receipt)
	}
	var d schemas.Decision
	if err == nil {
		if open.Receipt.Revision != 0 && !c.JSON {
			fmt.Fprintf(e.stderr, "waiting for a person until %s: nod allow %s\n", open.Receipt.Deadline.Local().Format(time.DateTime), r.PendingID)
		}
		d, err = open.Await(e.ctx)
	}
	if err != nil && e.ctx.Err() != nil && !c.Async {
		d, err = takeBack(client, r)
	}
	if err != nil {
		return c.failed(e, err)
	}
	return c.printDecision(e, r, d)
}

// takeBack withdraws a request because the user has stopped nod ask. If no engine replies in time, the
// error says how to end the request by hand.
func takeBack(client *nod.Client, r *schemas.Request) (schemas.Decision, error) {
	ctx, cancel := context.WithTimeout(context.Background(), takeBackTimeout)
	defer cancel()
	d, err := client.Withdraw(ctx, r.SessionID, r.PendingID, "nod ask was stopped")
	if err != nil {
		return d, fmt.Errorf("the request may still be pending: end it with nod deny %s: %w", r.PendingID, err)
	}
	return d, nil
}

// readCommand turns the command after -- into the tool Bash and its input.
func (c *askCmd) readCommand() error {
	if len(c.Command) == 0 {
		if c.Session == "" {
			return errors.New("missing flags: --session=S: see nod ask --help")
		}
		return nil
	}
	words, err := commandAfter(c.Command)
	switch {
	case err != nil:
		return err
	case c.Tool != "" || c.Input != "" || len(c.Permission) > 0:
		return errors.New("a command after -- stands alone: leave out --tool, --input and --permission")
	}
	line := words[0]
	if len(words) > 1 {
		line = schemas.ShellLine(words)
	}
	input, err := schemas.Encode(map[string]string{"command": line})
	c.Tool, c.Input = "Bash", string(input)
	return err
}

func (c *askCmd) request(e *env) (schemas.Request, error) {
	r := schemas.Request{
		SessionID: c.Session, PendingID: c.ID, Reason: c.Reason,
		AgentName: cmp.Or(c.AgentName, "nod ask"), SessionLabel: c.Label,
	}
	switch {
	case c.Tool != "":
		details, cwd, err := c.details(e)
		if err != nil {
			return r, err
		}
		r.Project = cwd
		r.Kind, r.Title, r.ToolName, r.ActionDetails = schemas.KindToolCall, c.Tool, c.Tool, details
		r.ActionType = agents.ActionOf(c.Tool)
	case len(c.Permission) > 0:
		if c.Reason == "" {
			return r, errors.New("a permission needs a reason: add --reason")
		}
		if c.TimeoutMinutes < 0 || c.TimeoutMinutes > 60 {
			return r, fmt.Errorf("--timeout-minutes is %d: use 1 to 60", c.TimeoutMinutes)
		}
		for _, tag := range c.Permission {
			if _, err := policy.ParsePermission(tag); err != nil {
				return r, schemas.Errorf(schemas.CodeValidation, "%s: %v", people.Line(tag), err)
			}
		}
		wanted := nod.Permission(c.Reason, c.Permission...)
		r.Kind, r.Title, r.Permissions = wanted.Kind, wanted.Title, wanted.Permissions
		r.ActionType, r.ActionDetails = wanted.ActionType, wanted.ActionDetails
		r.TimeoutSeconds = 60 * c.TimeoutMinutes
	default:
		return r, errors.New("name what to ask for: -- COMMAND, --tool T --input JSON, or --permission TAG --reason R")
	}
	return r, nil
}

// details returns the tool's input as JSON, and the call's working directory. If the input has no
// field cwd, details sets that field to this process's working directory.
func (c *askCmd) details(e *env) (details json.RawMessage, cwd string, err error) {
	input, err := e.readInput(cmp.Or(c.Input, "{}"))
	if err != nil {
		return nil, "", fmt.Errorf("read --input: %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(input, &fields); err != nil || fields == nil {
		return nil, "", errors.New("--input must be a JSON object, such as '{\"command\":\"make\"}'")
	}
	if raw, ok := fields["cwd"]; ok {
		if json.Unmarshal(raw, &cwd) != nil {
			return nil, "", errors.New("--input: cwd must be a directory's path")
		}
	} else {
		if cwd, err = os.Getwd(); err != nil {
			return nil, "", fmt.Errorf("find the current directory: %w", err)
		}
		if fields["cwd"], err = schemas.Encode(cwd); err != nil {
			return nil, "", fmt.Errorf("encode the current directory: %w", err)
		}
	}
	details, err = schemas.Encode(fields)
	return details, cwd, err
}

// printReceipt prints that the request is pending, and returns the exit code
// exitOpen.
func (c *askCmd) printReceipt(e *env, r schemas.Receipt) error {
	if c.JSON {
		if err := e.printJSON(r); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(e.stdout, r.PendingID)
		fmt.Fprintf(e.stderr, "pending until %s: wait for it with --id %s\n", r.Deadline.Local().Format(time.DateTime), r.PendingID)
	}
	return exit(exitOpen)
}

func (c *askCmd) printDecision(e *env, r *schemas.Request, d schemas.Decision) error {
	reply := agents.DescribeRefusingEdits(r, &d) // an allow with an edited input counts as a refusal, because after exit code 0 a script runs its original input
	if c.JSON {
		if err := e.printJSON(d); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(e.stdout, people.Line(reply.Text))
	}
	switch {
	case reply.Allowed:
		return nil
	case d.Outcome == schemas.TimedOut:
		return exit(exitTimedOut)
	case d.Outcome == schemas.Withdrawn, d.Outcome == schemas.Cancelled:
		return exit(exitWithdrawn)
	default:
		return exit(exitDenied)
	}
}

// failed returns the error to show for err. With --json it also prints err as JSON, if nod returned
// it.
func (c *askCmd) failed(e *env, err error) error {
	var se *schemas.Error
	if !errors.As(err, &se) {
		return err
	}
	if c.JSON {
		if err := e.printJSON(se); err != nil {
			return err
		}
	}
	if se.Code == schemas.CodeUndeliverable && !strings.HasSuffix(se.Message, ".") {
		return fmt.Errorf("no approver could be asked: %w", se)
	}
	return se
}
