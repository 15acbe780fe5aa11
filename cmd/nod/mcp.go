package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/agents/mcp"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/schemas"
)

// mcpCmd is nod mcp. It serves nod's own tools, or gates another MCP server.
type mcpCmd struct {
	Serve mcpServeCmd `cmd:"" default:"withargs" help:"Serve nod's own tools (the default)."`
	Gate  mcpGateCmd  `cmd:"" help:"Run an MCP server for its client, and ask nod before each call of its tools."`
}

type mcpServeCmd struct {
	HTTP      string   `name:"http" placeholder:"ADDR" help:"Serve streamable HTTP at this address, such as 127.0.0.1:4281, in place of standard input and output."`
	Session   string   `placeholder:"S" help:"The session of the requests (a new one)."`
	Project   string   `placeholder:"DIR" type:"path" help:"The project that the agent works in (the current directory; over HTTP none)."`
	InProject bool     `name:"in-project" help:"Every tool runs in the project's directory (Claude Code: CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR=1): rules may rely on it."`
	TokenFile string   `name:"token-file" placeholder:"FILE" type:"path" help:"File with the bearer token for HTTP; created if it is missing (mcp-token in the data directory)."`
	AllowHost []string `name:"allow-host" sep:"none" placeholder:"NAME" help:"A name by which other machines reach this one over HTTP; repeatable."`
}

// Run serves MCP until the client disconnects or the process gets a signal to stop. While nod does not
// run, every call is refused.
func (c *mcpServeCmd) Run(e *env) error {
	if c.Session != "" && !schemas.ValidID(c.Session) {
		return fmt.Errorf("--session %q is no id: use 1 to 128 letters, digits, _ or -", c.Session)
	}
	late := &lateNod{e: e, turn: make(chan struct{}, 1)}
	defer late.close()
	o := mcp.Options{Session: c.Session, Project: c.Project, InProject: c.InProject, Waits: e.waits(true), Version: version(), Log: e.log}
	o.Host, o.User = hostAndUser()
	if o.Project == "" && c.HTTP == "" {
		o.Project, _ = os.Getwd() // if the directory is unknown, allow rules that depend on the directory do not apply
	}
	if c.HTTP == "" {
		o.Contain, o.Nod = containable(e.place, o.Project)
	} else {
		o.Contain = "a client over HTTP may be on another machine, so the call cannot run contained"
	}
	server := mcp.New(late, o)
	defer server.Stop()
	if c.HTTP != "" {
		return c.http(e, server)
	}
	ctx, stop := hook.Lifetime(e.ctx, os.Stdout)
	defer stop()
	return server.ServeStdio(ctx, io.NopCloser(e.stdin), os.Stdout)
}

func (c *mcpServeCmd) http(e *env, server *mcp.Server) error {
	file := c.TokenFile
	if file == "" {
		place, err := e.place.WithDefaults()
		if err != nil {
			return err
		}
		file = filepath.Join(place.DataDir, "mcp-token")
	}
	token, err := httpserve.Token(file)
	if err != nil {
		return err
	}
	l, err := mcp.Listen(e.ctx, c.HTTP, c.AllowHost)
	if err != nil {
		return err
	}
	if len(c.AllowHost) > 0 {
		fmt.Fprintln(e.stderr, "nod: warning: the token and all requests cross the network unencrypted: put a proxy with TLS in front of it")
	}
	fmt.Fprintf(e.stdout, "nod mcp is up on http://%s%s; its bearer token is in %s\n", l.Addr(), mcp.Path, file)
	return server.Serve(e.ctx, l, mcp.HTTPOptions{Token: token, Hosts: c.AllowHost})
}

// connectWithin is the time limit of one attempt to connect to nod.
const connectWithin = 5 * time.Second

// lateNod connects to nod at the first call, because an agent program starts its MCP servers even if
// nod does not run. After a failure, the next call tries again.
type lateNod struct {
	e      *env
	turn   chan struct{} // a lock, held while the channel is full; not a mutex, because a wait for a mutex cannot end with a context
	client *nod.Client   // the connection to nod; guarded by the field turn
}

// lock waits until the lock in the field turn is free, and takes it. It returns an error if ctx ends first.
func (l *lateNod) lock(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *lateNod) unlock() { <-l.turn }

func (l *lateNod) find(ctx context.Context) (*nod.Client, error) {
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	if l.client == nil {
		ctx, cancel := context.WithTimeout(ctx, connectWithin)
		defer cancel()
		client, err := nod.Connect(ctx, nod.Options{Place: l.e.place, Log: l.e.log})
		if err != nil {
			return nil, err
		}
		l.e.warnOpen(client.Open())
		l.client = client
	}
	return l.client, nil
}

func (l *lateNod) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	client, err := l.find(ctx)
	if err != nil {
		return schemas.Decision{}, err
	}
	return asker{client}.Ask(ctx, r)
}

// Withdraw withdraws a request. Without a connection it does nothing, because no request was sent.
func (l *lateNod) Withdraw(ctx context.Context, sessionID, pendingID, reason string) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	client := l.client
	l.unlock()
	if client == nil {
		return nil
	}
	_, err := client.Withdraw(ctx, sessionID, pendingID, reason)
	return err
}

// Detach leaves a request pending. Without a connection it does nothing, because no request was sent.
func (l *lateNod) Detach(ctx context.Context, sessionID, pendingID, reason string) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	client := l.client
	l.unlock()
	if client == nil {
		return nil
	}
	return client.Detach(ctx, sessionID, pendingID, reason)
}

func (l *lateNod) Share(ctx context.Context, s schemas.Share) (schemas.StandingAnswer, error) {
	client, err := l.find(ctx)
	if err != nil {
		return schemas.StandingAnswer{}, err
	}
	return client.Share(ctx, s)
}

func (l *lateNod) Session(ctx context.Context, id string) (schemas.Session, error) {
	client, err := l.find(ctx)
	if err != nil {
		return schemas.Session{}, err
	}
	return client.Session(ctx, id)
}

func (l *lateNod) Notices(ctx context.Context, sessionID string, heard func(schemas.Notice)) error {
	client, err := l.find(ctx)
	if err != nil {
		return err
	}
	return client.Notices(ctx, sessionID, heard)
}

func (l *lateNod) close() {
	if l.client != nil {
		l.client.Close()
	}
}
