// Package mcp connects agents that speak the Model Context Protocol, over standard input and output or
// streamable HTTP. Client and server have a session in the earlier versions of the protocol, and none in
// the later versions. The package has five tools: request_permission, permission_status,
// grant_permission, list_permissions, and approve, for Claude Code's option --permission-prompt-tool.
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

// Nod is the interface to nod that the server needs. If nod refuses a call, the error is a
// *schemas.Error. A method returns an error while nod is not running, but may succeed later.
type Nod interface {
	agents.Asker
	// Share grants another session a permission of the session s.SessionID, and returns the grant.
	// s.AgentID is the id of the other session.
	Share(ctx context.Context, s schemas.Share) (schemas.StandingAnswer, error)
	// Session returns the permissions of a session, and every grant that applies to it.
	Session(ctx context.Context, id string) (schemas.Session, error)
	// Notices calls the function heard for each notice of a session until ctx ends. The calls come one
	// after another.
	Notices(ctx context.Context, sessionID string, heard func(schemas.Notice)) error
}

// Options configure a server.
type Options struct {
	// Session is the nod session of a client that sends no SessionHeader and has no session with the
	// server. If it is empty, New chooses a random id.
	Session string
	// Host and User are the names of the client's machine and user, for people. Project is the full
	// path of the client's project. An empty value means unknown.
	Host, User, Project string
	// InProject is true if the client runs every tool in the project's directory. The protocol does not
	// say in which directory a call runs. If InProject is false, rules that depend on the directory
	// therefore do not apply.
	InProject bool
	// Contain is schemas.ContainPossible if this machine can run calls in Project contained. Otherwise
	// it is the reason why not, or empty if the reason is unknown. It matters only to the tool approve,
	// and only with InProject.
	Contain string
	// Nod is the nod program by which a call runs contained. If its Path is empty, no call runs contained.
	Nod schemas.NodProgram
	// Version is nod's version. The server tells it to clients.
	Version string
	// Waits records that this process waits for a decision.
	Waits agents.Waits
	// SignOfLife is the interval at which the server sends data to a client whose call waits for a
	// decision; 0 means 20 s. The data are necessary because some clients give up a call after a minute
	// without data.
	SignOfLife time.Duration
	// Log is the log of failures, without the content of requests. nil discards it.
	Log *slog.Logger
}

const (
	signOfLife     = 20 * time.Second
	withdrawWithin = 5 * time.Second
	// readWithin is the time limit of a call that does not wait for a person.
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
	polling   polling
	logging   sync.Map // the mcp.LoggingLevel that a client has set, by its *mcp.ServerSession

	life    context.Context // the parent of all contexts of calls; ends when the server stops
	end     context.CancelCauseFunc
	news    context.Context // ends after the last answers, and ends the HTTP streams of notifications
	endNews context.CancelFunc
}

// New returns a server that sends its requests to nod. The caller must call Stop in the end.
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
		Instructions: instructions, Capabilities: capabilities(),
	})
	s.mcp.AddReceivingMiddleware(s.noteLogLevels)
	s.addTools()
	return s
}

// Stop ends every call: it withdraws the call's request, and answers the call with a denial. Over HTTP,
// Stop waits until the answers are written, but for at most 10 s.
func (s *Server) Stop() {
	s.end(errStopped)
	ctx, cancel := context.WithTimeout(context.Background(), withdrawWithin+answersWithin)
	defer cancel()
	s.exchanges.awaitAnswers(ctx)
	s.polling.await(ctx)
	s.endNews()
}

// ServeStdio serves one client, which writes to in and reads from out, until in or ctx ends. If ctx
// ends, ServeStdio stops the server. When it returns, every call has an answer or was withdrawn. It
// returns an error if the input is no message of the protocol.
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
		_ = session.Close() // after the end of ctx, ServeStdio returns no error
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

type call struct {
	*mcp.CallToolRequest
	server   *Server
	exchange *exchange // the HTTP request that contains the call; nil over standard input
	session  string    // nod's session id
}

func (s *Server) newCall(req *mcp.CallToolRequest) *call {
	c := &call{CallToolRequest: req, server: s, exchange: s.exchanges.find(req), session: s.opts.Session}
	if id := req.Session.ID(); id != "" {
		c.session = agents.ID("mcp session " + id) // the ids must differ, because nod's session id is shown to people, and whoever knows the protocol's id can join the client's session
	}
	if c.exchange != nil && c.exchange.session != "" {
		c.session = agents.ID(c.exchange.session)
	}
	return c
}

// untilGone returns a context that ends when the client no longer waits, or when the server stops. In
// the second case, the cause is errStopped.
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

// request returns a request with the fields that all requests of this call share: session, agent,
// machine, user and project.
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

// ask sends r to nod, and returns the decision. While it waits, it sends signs of life to the client. If
// an earlier process withdrew r when it ended, ask sends r with a new r.PendingID; see agents.AskAnew.
func (c *call) ask(ctx context.Context, r *schemas.Request) (d schemas.Decision, err error) {
	ctx, done := c.untilGone(ctx)
	defer done()
	defer c.keepAlive(ctx)()
	c.tellNotices(ctx, r.PendingID)
	d, err = agents.AskAnew(ctx, r, c.server.ask)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return d, err
}

// ask sends r to nod, and returns the decision. If it gets no decision, it withdraws r, except if nod
// has certainly not stored r.
func (s *Server) ask(ctx context.Context, r *schemas.Request) (d schemas.Decision, err error) {
	defer s.opts.Waits.Register(r, func(err error) {
		s.opts.Log.Warn("mcp: if this program is killed, a request stays open until its deadline", "id", r.PendingID, "error", err)
	})()
	open := true
	defer func() {
		if open {
			s.withdraw(ctx, r)
		}
	}()
	d, err = s.nod.Ask(ctx, *r)
	open = err != nil && agents.MayBeOpen(err)
	return d, err
}

// withdraw withdraws r. The reason says whether the server stops or the client is gone. withdraw also
// works if ctx has ended.
func (s *Server) withdraw(ctx context.Context, r *schemas.Request) {
	reason := errGone.Error()
	if errors.Is(context.Cause(ctx), errStopped) {
		reason = errStopped.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	if err := s.nod.Withdraw(ctx, r.SessionID, r.PendingID, reason); err != nil {
		s.opts.Log.Warn("mcp: a request could not be withdrawn; it ends at its deadline", "session", r.SessionID, "id", r.PendingID, "error", err)
	}
}
