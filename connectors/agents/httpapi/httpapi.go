// Package httpapi connects agents over HTTP. An agent sends a request with one POST, waits for the
// decision with GETs, and withdraws the request with a DELETE. The package also serves Claude Code's
// HTTP hooks. The file openapi.json describes the whole API.
//
// Each caller sends a token, by which the server knows its agent. The server refuses every call that
// may come from a web page, before it reads the body.
package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/schemas"
)

// Nod is the interface to nod that the server needs. Each agent has its own Nod. If nod refuses a
// call, the error is a *schemas.Error.
type Nod interface {
	// Submit sends the request r with its id. The id must be new, unless r.Rejoin is true. If r is decided,
	// Submit returns the decision. If r is pending, Submit returns a receipt, and nil as the decision.
	Submit(ctx context.Context, r schemas.Request) (*schemas.Decision, schemas.Receipt, error)
	// Await waits for the decision about a stored request. It returns nil if the request is still
	// pending after the duration wait. If nod's first reply takes longer than that, Await waits for
	// this reply. The error is NOT_FOUND if this agent has no such request.
	Await(ctx context.Context, sessionID, pendingID string, wait time.Duration) (*schemas.Decision, error)
	// Withdraw withdraws a request. It returns the request's decision, which is the withdrawal unless
	// the request was decided before.
	Withdraw(ctx context.Context, sessionID, pendingID, reason string) (schemas.Decision, error)
	// Notices returns the notices that nod has kept for a session. If nod has none, Notices waits for
	// the next, for at most the duration wait.
	Notices(ctx context.Context, sessionID string, wait time.Duration) ([]schemas.Notice, error)
}

// Agent is an agent that may use the API.
type Agent struct {
	Name  string
	Token string // the bearer token in the agent's calls
	Nod   Nod
	// Hook connects a hook of the agent to nod; see hook.Connect.
	Hook hook.Connect
}

// Options configure a Server: the address to listen on and the agents to serve.
type Options struct {
	httpserve.Listen
	Agents []Agent
	// Host and User are the names of this machine and of the user of this process. The server adds them
	// to a request from this machine if they are missing there.
	Host, User string
	// BodyWithin is the time limit for the whole body of an HTTP request to arrive. 0 means 10 s.
	BodyWithin time.Duration
	Log        *slog.Logger // nil discards the log
}

// Server is a running HTTP API.
type Server struct {
	opts   Options
	addr   httpserve.Address
	agents []agentToken
	doc    []byte // the OpenAPI document, as the server sends it
	http   *http.Server
	stop   context.CancelCauseFunc
	done   chan error
}

type agentToken struct {
	*Agent
	sum [sha256.Size]byte
}

// The time limits of an HTTP request.
const (
	headerWithin = 5 * time.Second
	bodyWithin   = 10 * time.Second // the default of Options.BodyWithin
	writeWithin  = 30 * time.Second
	// callWithin is the time limit for a request that does not wait for a person.
	callWithin = 15 * time.Second
	// MaxWait is the longest time for which one GET may wait.
	MaxWait = 10 * time.Minute
)

var errStopping = schemas.Errorf(schemas.CodeUnavailable, "nod's HTTP API is stopping: ask again")

// Open starts a server, and returns as soon as the server listens. The message of an error is one line.
// The caller must call Stop in the end.
func Open(o Options) (*Server, error) {
	doc, err := document()
	if err != nil {
		return nil, err
	}
	listener, addr, err := o.Listen.Open(httpserve.Server{
		Name: "nod's HTTP API", Flag: "--listen", Default: "127.0.0.1:4282", PublicURL: "--public-url",
	})
	if err != nil {
		return nil, err
	}
	o.BodyWithin = cmp.Or(o.BodyWithin, bodyWithin)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	s := &Server{opts: o, addr: addr, doc: doc, stop: stop, done: make(chan error, 1)}
	for i := range o.Agents {
		s.agents = append(s.agents, agentToken{&o.Agents[i], sha256.Sum256([]byte(o.Agents[i].Token))})
	}
	s.http = &http.Server{
		Handler: s.handler(), ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerWithin, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	go func() { s.done <- o.Listen.Serve(s.http, listener) }()
	return s, nil
}

// URL returns the URL of the server.
func (s *Server) URL() string { return s.addr.URL }

// Done returns a channel. The channel gets one value when the server no longer listens: nil after Stop,
// and otherwise the error.
func (s *Server) Done() <-chan error { return s.done }

// Stop makes the server stop listening, and ends every open call with a response. It returns when all
// calls have ended or when ctx ends. Requests to nod stay pending, except those of hooks. The server
// withdraws these, because their hosts get a denial.
func (s *Server) Stop(ctx context.Context) error {
	s.stop(errStopping)
	if err := s.http.Shutdown(ctx); err != nil {
		return fmt.Errorf("stop the HTTP API: %w", errors.Join(err, s.http.Close()))
	}
	return nil
}

// agent returns the agent with this token, or nil. It compares hashes in constant time, because the
// duration must reveal nothing about the tokens.
func (s *Server) agent(token string) (found *Agent) {
	sum := sha256.Sum256([]byte(token))
	for _, a := range s.agents {
		if subtle.ConstantTimeCompare(sum[:], a.sum[:]) == 1 && a.Token != "" {
			found = a.Agent
		}
	}
	return found
}
