// Package mcp is the way in for agent programs that speak the Model Context
// Protocol, over standard input and output or streamable HTTP, in both
// generations of the protocol. It serves four tools: approve, which is Claude
// Code's --permission-prompt-tool; request_permission; grant_permission;
// list_permissions.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// Nod is what the server may do with nod. Nod's own refusals are a
// *schemas.Error. A method may find that nod is not running now and is later.
type Nod interface {
	agents.Asker
	// Share lets another session hold what one holds, and returns its grant.
	Share(ctx context.Context, s schemas.Share) (schemas.StandingAnswer, error)
	// Session returns what a session holds, with every grant that counts in it.
	Session(ctx context.Context, id string) (schemas.Session, error)
}

// Options of a server.
type Options struct {
	// Session is asked in where a client names none; empty is a fresh one.
	Session string
	// Host and User are where the client runs, as people are shown it, and Project
	// the full path of the project that it works in. Empty is unknown.
	Host, User, Project string
	// InProject says that the client runs every tool in its project's directory.
	// Otherwise no rule goes by where a call would run: the protocol does not say.
	InProject bool
	// Version of nod, which clients are told.
	Version string
	// SignOfLife is how often a client hears that a person is still awaited; 0 is
	// 20 s. Some clients give a call up that is silent for a minute.
	SignOfLife time.Duration
	// Log gets faults of nod's own, and never what was asked.
	Log *slog.Logger
}

const (
	signOfLife     = 20 * time.Second
	withdrawWithin = 5 * time.Second
	// readWithin bounds what needs no person.
	readWithin = 15 * time.Second
)

var (
	errGone    = errors.New("the agent no longer waits for the answer")
	errStopped = errors.New("nod mcp was stopped")
)

// Server serves the tools to any number of clients.
type Server struct {
	nod       Nod
	opts      Options
	mcp       *mcp.Server
	exchanges exchanges

	life    context.Context // of every call
	end     context.CancelCauseFunc
	news    context.Context // of what is open over HTTP beside calls
	endNews context.CancelFunc
}

// New makes a server of what nod can do. Stop must be called in the end.
func New(nod Nod, o Options) *Server {
	if o.Session == "" {
		o.Session = "mcp-" + agents.NewID()
	}
	if o.SignOfLife <= 0 {
		o.SignOfLife = signOfLife
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{nod: nod, opts: o, exchanges: exchanges{open: map[string]*exchange{}}}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.news, s.endNews = context.WithCancel(context.Background())
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "nod", Title: "nod", Version: o.Version}, &mcp.ServerOptions{
		Instructions: instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	s.addTools()
	return s
}

// Stop ends every call: what it asked is withdrawn and it answers no. Over HTTP
// it returns when the answers are written, or nobody has read them for a while.
func (s *Server) Stop() {
	s.end(errStopped)
	ctx, cancel := context.WithTimeout(context.Background(), withdrawWithin+answersWithin)
	defer cancel()
	s.exchanges.awaitAnswers(ctx)
	s.endNews()
}

// ServeStdio serves one client, which writes to in and reads from out, until in
// ends or ctx does; then every call has been answered or withdrawn. Input that
// is not of the protocol ends it with an error.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	session, err := s.mcp.Connect(context.WithoutCancel(ctx), &mcp.IOTransport{Reader: in, Writer: out}, nil)
	if err != nil {
		return fmt.Errorf("serve the client: %w", err)
	}
	var stopping sync.WaitGroup
	stopping.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer stopping.Done()
		s.Stop()
		_ = session.Close() // Wait says how it ended
	})
	err = session.Wait()
	if !stop() {
		stopping.Wait()
		return nil
	}
	if err != nil {
		return fmt.Errorf("read from the client: %w", err)
	}
	return nil
}

// call is one call of a tool.
type call struct {
	*mcp.CallToolRequest
	server   *Server
	exchange *exchange // nil but over HTTP
	session  string
}

func (s *Server) newCall(req *mcp.CallToolRequest) *call {
	c := &call{CallToolRequest: req, server: s, exchange: s.exchanges.of(req), session: s.opts.Session}
	if id := req.Session.ID(); id != "" {
		c.session = agents.ID("mcp session " + id) // people are shown it, and need not know how to join it
	}
	if c.exchange != nil && c.exchange.session != "" {
		c.session = agents.ID(c.exchange.session)
	}
	return c
}

// during is ctx until nobody waits for the call any more, and then its cause
// says why.
func (c *call) untilGone(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stops := []func() bool{context.AfterFunc(c.server.life, func() { cancel(errStopped) })}
	if c.exchange != nil {
		stops = append(stops, context.AfterFunc(c.exchange.ctx, func() { cancel(errGone) }))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(nil)
	}
}

// request is what every request of the call's says of who asks from where.
func (c *call) request() schemas.Request {
	o := c.server.opts
	r := schemas.Request{
		Type: schemas.TypeRequest, SessionID: c.session, AgentName: "an MCP client",
		Host: o.Host, User: o.User, Project: o.Project, Options: schemas.DefaultOptions(), CreatedAt: time.Now().UTC(),
	}
	if who := c.ClientInfo(); who != nil && who.Title != "" {
		r.AgentName = who.Title
	} else if who != nil && who.Name != "" {
		r.AgentName = who.Name
	}
	if c.exchange != nil {
		r.Host, r.Project = c.exchange.host, c.exchange.project
	}
	if r.Project != "" {
		r.SessionLabel = filepath.Base(r.Project)
	}
	return r
}

// ask waits for the one decision about r, with signs of life to the client.
// Whatever ends the waiting otherwise, r is withdrawn.
func (c *call) ask(ctx context.Context, r schemas.Request) (d schemas.Decision, err error) {
	ctx, done := c.untilGone(ctx)
	defer done()
	defer c.keepAlive(ctx)()
	open := true
	defer func() {
		if open {
			c.withdraw(ctx, r)
		}
	}()
	d, err = c.server.nod.Ask(ctx, r)
	open = err != nil && agents.MayBeOpen(err)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return d, err
}

// withdraw takes r back, though ctx may have ended.
func (c *call) withdraw(ctx context.Context, r schemas.Request) {
	reason := errGone.Error()
	if errors.Is(context.Cause(ctx), errStopped) {
		reason = errStopped.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	if err := c.server.nod.Withdraw(ctx, r.SessionID, r.PendingID, reason); err != nil {
		c.server.opts.Log.Warn("mcp: a request was not withdrawn; its deadline ends it", "session", r.SessionID, "id", r.PendingID, "error", err)
	}
}
