// Package nod is the Go client of nod, a permission bus for AI agents: an agent
// asks before it acts, a rule or a person decides, and the agent gets exactly
// one decision, whatever crashes in between.
//
//	c, err := nod.Connect(ctx)
//	if err != nil {
//		return err
//	}
//	if _, err := c.Ask(ctx, nod.Command("rm -rf build")); err != nil {
//		return err // it was denied, or nobody decided: do not act
//	}
//
// Silence is never consent: without an error, and only then, the agent may act.
package nod

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// Why a decision does not allow; see Err.
var (
	ErrTimedOut  = errors.New("the permission request timed out")
	ErrWithdrawn = errors.New("the permission request was withdrawn")
	ErrCancelled = errors.New("the permission request was dismissed")
	ErrDenied    = errors.New("permission was denied")
	// ErrEdited is a yes to another input than the one that was asked about: the
	// decision's UpdatedInput, and nothing else, may be run.
	ErrEdited = errors.New("permission was given for another input")
)

// Err is nil for a decision that allows what was asked, as it was asked, and
// otherwise says in errors.Is terms why it does not.
func Err(d schemas.Decision) error {
	var err error
	switch d.Outcome {
	case schemas.Allowed:
		if d.UpdatedInput == nil {
			return nil
		}
		err = fmt.Errorf("%w: %s", ErrEdited, d.UpdatedInput)
	case schemas.TimedOut:
		err = ErrTimedOut
	case schemas.Withdrawn:
		err = ErrWithdrawn
	case schemas.Cancelled:
		err = ErrCancelled
	default:
		err = ErrDenied
	}
	if d.Message != "" {
		return fmt.Errorf("%w: %s", err, d.Message)
	}
	return err
}

// Options say where nod is and who asks. The zero value asks the nod of this
// user on this machine, or the one that NOD_URL names.
type Options struct {
	bus.Place
	// Agent names the asker on the bus, as its key does; empty is the agent that
	// this machine was invited as, else "local".
	Agent string
	Log   *slog.Logger
}

// Client asks on behalf of one agent. It is safe for concurrent use.
type Client struct {
	conn  *bus.Conn
	asker *bus.Asker
	agent string
}

// Connect finds a running nod and connects to it, by the options if there are
// any. Where none runs, the error is bus.ErrNotRunning.
func Connect(ctx context.Context, options ...Options) (*Client, error) {
	var o Options
	if len(options) > 0 {
		o = options[0]
	}
	if o.Agent == "" {
		var err error
		if o.Agent, err = o.Place.Agent(); err != nil {
			return nil, err
		}
	}
	conn, err := bus.Join(ctx, o.Place, roles.AgentID(o.Agent), o.Log)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, asker: bus.NewAsker(conn, o.Agent), agent: o.Agent}, nil
}

// Ask asks and waits for the one decision, through restarts of everything. The
// error is nil only where it allows r as it is; of any other decision it is what
// Err says, and the decision is returned with it. When ctx ends the request is withdrawn.
// Errors of nod's own are *schemas.Error.
func (c *Client) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	d, err := c.asker.Ask(ctx, complete(r))
	if err == nil {
		err = Err(d)
	}
	return d, err
}

// Submit hands a request in and returns once it is stored or decided; the
// result must be awaited or dropped. What Err says of the decision, and nothing
// else of it, tells whether to act.
func (c *Client) Submit(ctx context.Context, r schemas.Request) (*bus.OpenRequest, error) {
	return c.asker.Submit(ctx, complete(r))
}

// Withdraw takes a request back and returns the decision it then has.
func (c *Client) Withdraw(ctx context.Context, sessionID, pendingID, reason string) (schemas.Decision, error) {
	return c.asker.Withdraw(ctx, sessionID, pendingID, reason)
}

// Detach stops waiting for a tool call and leaves it open: where it is allowed
// before its deadline, the same call asked again is let through, once.
func (c *Client) Detach(ctx context.Context, sessionID, pendingID, reason string) error {
	return c.asker.Detach(ctx, sessionID, pendingID, reason)
}

// HostResolved says that a host has gone on without some answers, and returns the
// requests that this withdrew.
func (c *Client) HostResolved(ctx context.Context, p schemas.HostResolved) ([]string, error) {
	return c.asker.HostResolved(ctx, p)
}

// Share lets another session of the same agent hold permissions that this one
// holds, and returns the grant that it got. It ends when what it was shared of
// does.
func (c *Client) Share(ctx context.Context, s schemas.Share) (schemas.StandingAnswer, error) {
	s.Type = schemas.TypeShare
	var reply schemas.Grants
	if err := c.conn.CallInto(ctx, schemas.GrantSubject(c.agent), s, &reply); err != nil {
		return schemas.StandingAnswer{}, fmt.Errorf("share: %w", err)
	}
	if len(reply.Grants) != 1 {
		return schemas.StandingAnswer{}, schemas.Errorf(schemas.CodeInternal, "share: nod named %d grants", len(reply.Grants))
	}
	return reply.Grants[0], nil
}

// Gate returns what a scheduled task needs and its session does not hold. The
// session is told; whether the task runs is the caller's.
func (c *Client) Gate(ctx context.Context, g schemas.Gate) (missing []string, err error) {
	g.Type = schemas.TypeGate
	var reply schemas.GateReply
	if err := c.conn.CallInto(ctx, schemas.GateSubject(c.agent), g, &reply); err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	return reply.Missing, nil
}

// Session returns what a session of this agent holds, with every grant that
// counts in it. A session that nobody has asked in yet becomes this agent's;
// another agent's is NOT_FOUND.
func (c *Client) Session(ctx context.Context, id string) (schemas.Session, error) {
	var s schemas.Session
	err := c.conn.CallInto(ctx, schemas.SessionSubject(c.agent), schemas.Query{Type: schemas.TypeQuery, SessionID: id}, &s)
	if err != nil {
		return schemas.Session{}, fmt.Errorf("read the session %s: %w", id, err)
	}
	return s, nil
}

// Close ends the connection. What is pending stays pending.
func (c *Client) Close() {
	c.asker.Close()
	c.conn.Close()
}

// Open reports whether the bus asks for no keys, so that anyone on it can
// answer.
func (c *Client) Open() bool { return c.conn.Open() }

// Command is a request to run a shell command in the current directory.
func Command(command string) schemas.Request {
	cwd, _ := os.Getwd()                                                            // shown only; unknown is empty
	details, _ := schemas.Encode(map[string]string{"command": command, "cwd": cwd}) // strings always encode
	return schemas.Request{
		Kind: schemas.KindToolCall, Title: "Run a command", ToolName: "Bash",
		ActionType: schemas.ActionCommand, ActionDetails: details,
	}
}

// Permission is a request to hold permissions, for a reason that the person is
// shown: @read:<path>, @write:<path>, @network.
func Permission(reason string, tags ...string) schemas.Request {
	return schemas.Request{
		Kind: schemas.KindPermission, Title: "Permission request", Permissions: tags, Reason: reason,
		ActionType: schemas.ActionOther, ActionDetails: []byte("{}"),
	}
}

// complete fills in what the caller left open of who asks from where. One that
// names a host speaks for that host, where this directory is no project of its.
func complete(r schemas.Request) schemas.Request {
	if r.SessionID == "" {
		r.SessionID = "default"
	}
	if r.Host == "" {
		r.Host, _ = os.Hostname() // display only
		if cwd, err := os.Getwd(); err == nil && r.Project == "" {
			r.Project = cwd
		}
	}
	if u, err := user.Current(); err == nil && r.User == "" {
		r.User = u.Username
	}
	if r.AgentName == "" {
		r.AgentName = filepath.Base(os.Args[0])
	}
	return r
}
