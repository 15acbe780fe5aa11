// Package nod is the Go client of nod, a permission bus for AI agents: an agent
// asks before it acts, a rule or a person decides, and the agent gets exactly
// one decision, even if processes crash in between.
//
//	c, err := nod.Connect(ctx)
//	if err != nil {
//		return err
//	}
//	if _, err := c.Ask(ctx, nod.Command("rm -rf build")); err != nil {
//		return err // denied or undecided: do not act
//	}
//
// Silence is never consent: the agent may act only if Ask returned no error.
package nod

import (
	"cmp"
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

// The reasons why a decision does not allow a request exactly as it was sent. The errors of Err and
// Client.Ask wrap one of these errors, so that errors.Is finds it.
var (
	ErrTimedOut  = errors.New("the permission request timed out")
	ErrWithdrawn = errors.New("the permission request was withdrawn")
	ErrCancelled = errors.New("the permission request was dismissed")
	ErrDenied    = errors.New("permission was denied")
	// ErrEdited means that the approver changed the input before allowing it. The agent may run the
	// decision's UpdatedInput, and nothing else.
	ErrEdited = errors.New("the approver changed the input before allowing it")
)

// Err returns nil if the decision d allows the request exactly as it was sent. Otherwise the error
// wraps ErrDenied, ErrTimedOut, ErrWithdrawn, ErrCancelled or ErrEdited, and contains the decision's
// message.
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

// Options choose the nod to connect to, and the name of the agent. The zero value means the nod
// of this user on this machine, or the nod that NOD_URL names.
type Options struct {
	bus.Place
	// Agent is the agent's name on the bus, for which its key was made. If it is empty, the agent has
	// the name in the invitation that this machine has accepted or, without an invitation, the name
	// "local".
	Agent string
	// Log receives messages about the connection; nil logs nothing.
	Log *slog.Logger
}

// Client sends the requests of one agent. It is safe for concurrent use.
type Client struct {
	conn  *bus.Conn
	asker *bus.Asker
	agent string
}

// Connect connects to a running nod. It uses only the first of the given options. The error wraps
// bus.ErrNotRunning if no nod runs on this machine, and bus.ErrNoServer if the named servers do not
// reply. The caller must Close the client.
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

// Ask sends a request and waits for its decision, even across restarts of nod and of the broker. The
// error is nil only if the decision allows the request unchanged. For any other decision, Ask returns
// the decision and the error that Err makes of it. If ctx ends first, Ask withdraws the request and
// returns the error of ctx. If nod itself fails, the error is a *schemas.Error. If the request's
// session, host, project, user or agent's name is empty, Ask fills it in from this process.
func (c *Client) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	d, err := c.asker.Ask(ctx, c.complete(r))
	if err == nil {
		err = Err(d)
	}
	return d, err
}

// Submit sends a request and returns once an engine has stored or decided it. The caller must call
// Await or Drop on the result, and may act only if Err returns nil for the decision.
func (c *Client) Submit(ctx context.Context, r schemas.Request) (*bus.OpenRequest, error) {
	return c.asker.Submit(ctx, c.complete(r))
}

// SubmitAs works like Submit, for a request with a PendingID, which must be new unless r.Rejoin is
// set. Even after an error an engine may have stored the request, so the caller should then call
// Withdraw.
func (c *Client) SubmitAs(ctx context.Context, r schemas.Request) (*bus.OpenRequest, error) {
	return c.asker.SubmitAs(ctx, c.complete(r))
}

// Withdraw withdraws a pending request and returns its decision. If the request was already decided,
// that decision stays and is returned.
func (c *Client) Withdraw(ctx context.Context, sessionID, pendingID, reason string) (schemas.Decision, error) {
	return c.asker.Withdraw(ctx, sessionID, pendingID, reason)
}

// Detach tells nod that the agent no longer waits for a tool call, and leaves the call pending. If a
// person allows the call before its deadline, the agent's next identical call is allowed, once.
// Detach withdraws a request that is not a tool call.
func (c *Client) Detach(ctx context.Context, sessionID, pendingID, reason string) error {
	return c.asker.Detach(ctx, sessionID, pendingID, reason)
}

// HostResolved reports that a host continued without waiting for decisions. It returns the ids of the
// requests that nod withdrew, or in whose records it noted how the call ended at the host.
func (c *Client) HostResolved(ctx context.Context, p schemas.HostResolved) ([]string, error) {
	return c.asker.HostResolved(ctx, p)
}

// Share shares permissions of one session with another session of the same agent, and returns the new
// grant. The new grant ends no later than the grants from which the permissions come.
func (c *Client) Share(ctx context.Context, s schemas.Share) (schemas.StandingAnswer, error) {
	s.Type = schemas.TypeShare
	var reply schemas.Grants
	if err := c.conn.CallInto(ctx, schemas.GrantSubject(c.agent), s, &reply); err != nil {
		return schemas.StandingAnswer{}, fmt.Errorf("share: %w", err)
	}
	if len(reply.Grants) != 1 {
		return schemas.StandingAnswer{}, schemas.Errorf(schemas.CodeInternal, "share: expected one grant in the reply, got %d", len(reply.Grants))
	}
	return reply.Grants[0], nil
}

// Gate returns those of the permissions needed by a scheduled task that the task's session lacks. The
// session gets a notice that lists them. The caller decides whether to run the task.
func (c *Client) Gate(ctx context.Context, g schemas.Gate) (missing []string, err error) {
	g.Type = schemas.TypeGate
	var reply schemas.GateReply
	if err := c.conn.CallInto(ctx, schemas.GateSubject(c.agent), g, &reply); err != nil {
		return nil, fmt.Errorf("gate: %w", err)
	}
	return reply.Missing, nil
}

// Run asks whether the command of an allowed call may start contained. The reply names the container,
// and allows the command to start once. After an error the command must not start.
func (c *Client) Run(ctx context.Context, r schemas.Run) (schemas.Running, error) {
	r.Type = schemas.TypeRun
	var reply schemas.Running
	if err := c.conn.CallInto(ctx, schemas.RunSubject(c.agent, r.SessionID, r.PendingID), r, &reply); err != nil {
		return schemas.Running{}, fmt.Errorf("run: %w", err)
	}
	return reply, nil
}

// Ran reports the end of a contained command.
func (c *Client) Ran(ctx context.Context, r schemas.Ran) error {
	r.Type = schemas.TypeRan
	var reply schemas.OK
	if err := c.conn.CallInto(ctx, schemas.RanSubject(c.agent, r.SessionID, r.PendingID), r, &reply); err != nil {
		return fmt.Errorf("report the end of a run: %w", err)
	}
	return nil
}

// Session returns a session's state, with all grants in force in the session. A session that no agent
// has used becomes this agent's session. The error has the code NOT_FOUND if the session belongs to
// another agent.
func (c *Client) Session(ctx context.Context, id string) (schemas.Session, error) {
	var s schemas.Session
	err := c.conn.CallInto(ctx, schemas.SessionSubject(c.agent), schemas.Query{Type: schemas.TypeQuery, SessionID: id}, &s)
	if err != nil {
		return schemas.Session{}, fmt.Errorf("read the session %s: %w", id, err)
	}
	return s, nil
}

// Notices calls the function heard for each notice of a session, one after another, until ctx ends.
// It begins with the notices that nod kept while nobody listened. If several callers listen to a
// session, each notice goes to only one of them, except that the notice that a question is shown goes
// to all of them.
func (c *Client) Notices(ctx context.Context, sessionID string, heard func(schemas.Notice)) error {
	return c.asker.Notices(ctx, sessionID, heard)
}

// TakeNotices returns the notices that nod keeps for a session, oldest first, and makes nod forget them.
func (c *Client) TakeNotices(ctx context.Context, sessionID string) ([]schemas.Notice, error) {
	return c.asker.TakeNotices(ctx, sessionID)
}

// Close ends the connection. Pending requests stay pending.
func (c *Client) Close() {
	c.asker.Close()
	c.conn.Close()
}

// Open reports whether the bus requires no credentials. On an open bus every client can answer
// requests, even the agent itself.
func (c *Client) Open() bool { return c.conn.Open() }

// Command returns a request to run a shell command in the current directory.
func Command(command string) schemas.Request {
	cwd, _ := os.Getwd()                                                            // if the directory is unknown, rules that depend on it do not apply, and nod asks a person
	details, _ := schemas.Encode(map[string]string{"command": command, "cwd": cwd}) // encoding strings cannot fail
	return schemas.Request{
		Kind: schemas.KindToolCall, Title: "Run a command", ToolName: "Bash",
		ActionType: schemas.ActionCommand, ActionDetails: details,
	}
}

// Permission returns a request for permissions of a session, such as @read:<path>,
// @write:<path> and @network. The approver sees the reason.
func Permission(reason string, tags ...string) schemas.Request {
	return schemas.Request{
		Kind: schemas.KindPermission, Title: "Permission request", Permissions: tags, Reason: reason,
		ActionType: schemas.ActionOther, ActionDetails: []byte("{}"),
	}
}

// OwnSession returns a name for a session that only this agent uses. For the agent "local" it returns
// the given name unchanged, and for any other agent a name that ends with the agent's name. Agents
// must not share a session name, because a session belongs to the first agent that uses its name.
func (c *Client) OwnSession(name string) string {
	if c.agent == "local" {
		return name
	}
	own := name + "-" + c.agent
	return own[:min(len(own), 128)]
}

// complete fills in the request's session, host, project, user and agent's name from this process, if
// they are empty. A request that names a host gets no project, because this process's directory may
// not exist on that host.
func (c *Client) complete(r schemas.Request) schemas.Request {
	r.SessionID = cmp.Or(r.SessionID, c.OwnSession("default"))
	if r.Host == "" {
		r.Host, _ = os.Hostname() // without a host name, allow rules for named hosts do not apply
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
