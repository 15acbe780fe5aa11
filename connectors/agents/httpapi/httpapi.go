// Package httpapi connects programs over HTTP: a program sends a request with one
// POST, waits for the decision with GETs, and gives up with a DELETE. Claude Code's
// HTTP hooks are served here too. openapi.json describes each call.
//
// Each caller sends a token, which identifies its agent. Requests that a web page
// could send are refused before they are read.
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

// Nod is the interface to nod that the API needs, with one connection for each agent.
// Nod's own refusals are a *schemas.Error.
type Nod interface {
	// Submit sends r under its id, which must be new unless r.Rejoin is set. It
	// returns the decision if there is one already, else nil and the receipt.
	Submit(ctx context.Context, r schemas.Request) (*schemas.Decision, schemas.Receipt, error)
	// Await waits for the decision of a stored request, for the time wait but at least
	// long enough for one reply of nod. It returns nil if there is no decision by then,
	// and changes nothing. The error NOT_FOUND also covers requests of other agents.
	Await(ctx context.Context, sessionID, pendingID string, wait time.Duration) (*schemas.Decision, error)
	// Withdraw withdraws a request and returns its decision, which may be an
	// earlier one.
	Withdraw(ctx context.Context, sessionID, pendingID, reason string) (schemas.Decision, error)
}

// Agent is an agent that may use the API, with the token of its callers.
type Agent struct {
	Name  string
	Token string
	Nod   Nod
	// Hook connects hooks to nod; see hook.Connect.
	Hook hook.Connect
}

// Options are the address to listen on and the agents to serve.
type Options struct {
	httpserve.Listen
	Agents []Agent
	// Host and User are the machine and user of this process, and the defaults for
	// callers on this machine.
	Host, User string
	// BodyWithin is how long a request body may take to arrive; 0 means 10 s.
	BodyWithin time.Duration
	Log        *slog.Logger
}

// Server is a running API.
type Server struct {
	opts   Options
	addr   httpserve.Address
	agents []agentToken
	doc    []byte // openapi.json
	http   *http.Server
	stop   context.CancelCauseFunc
	done   chan error
}

type agentToken struct {
	*Agent
	sum [sha256.Size]byte
}

// The time limits of a call.
const (
	headerWithin = 5 * time.Second
	bodyWithin   = 10 * time.Second // the default of Options.BodyWithin
	writeWithin  = 30 * time.Second
	// callWithin is how long a call waits if nod does not respond.
	callWithin = 15 * time.Second
	// MaxWait is the longest wait of one GET.
	MaxWait = 10 * time.Minute
)

var errStopping = schemas.Errorf(schemas.CodeUnavailable, "nod's HTTP API is stopping: ask again")

// Open starts the server and returns once it listens. The text of its error fits one
// line.
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

// URL returns the server's address.
func (s *Server) URL() string { return s.addr.URL }

// Done receives the reason that the server no longer listens; nil after Stop.
func (s *Server) Done() <-chan error { return s.done }

// Stop answers every call in progress and stops listening. Pending requests stay
// pending, except those of hooks: their hosts continue without them.
func (s *Server) Stop(ctx context.Context) error {
	s.stop(errStopping)
	if err := s.http.Shutdown(ctx); err != nil {
		return fmt.Errorf("stop the HTTP API: %w", errors.Join(err, s.http.Close()))
	}
	return nil
}

// agent returns the agent with this token, or nil. How long it takes reveals nothing
// about the tokens.
func (s *Server) agent(token string) (found *Agent) {
	sum := sha256.Sum256([]byte(token))
	for _, a := range s.agents {
		if subtle.ConstantTimeCompare(sum[:], a.sum[:]) == 1 && a.Token != "" {
			found = a.Agent
		}
	}
	return found
}
