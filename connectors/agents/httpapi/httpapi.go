// Package httpapi is the way in for everything that speaks HTTP: a program asks
// with one POST, waits with GETs, and gives up with a DELETE. Claude Code's HTTP
// hooks come in here too. openapi.json says what each call takes and answers.
//
// Whoever calls shows a token, which says as which agent. What a web page could
// send is turned away before it is read.
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

// Nod is what callers may do with nod, as one agent. Its refusals are
// *schemas.Error.
type Nod interface {
	// Submit hands r in under its id, which is fresh unless r says that it
	// rejoins. It returns the decision where there is one already, else nil and
	// the receipt.
	Submit(ctx context.Context, r schemas.Request) (*schemas.Decision, schemas.Receipt, error)
	// Await waits for up to wait, but long enough to be told how it stands, until a
	// request that was handed in before is decided. It returns nil where it is not,
	// and changes nothing. NOT_FOUND is also another agent's.
	Await(ctx context.Context, sessionID, pendingID string, wait time.Duration) (*schemas.Decision, error)
	// Withdraw takes a request back, and returns the decision that it then has.
	Withdraw(ctx context.Context, sessionID, pendingID, reason string) (schemas.Decision, error)
}

// Agent is one that may call.
type Agent struct {
	Name  string
	Token string
	Nod   Nod
	// Hook is how hooks reach nod; see hook.Connect.
	Hook hook.Connect
}

// Options say where to listen and for whom.
type Options struct {
	httpserve.Listen
	Agents []Agent
	// Host and User are those of this process, which askers on this machine need
	// not name.
	Host, User string
	// BodyWithin is how long a body may take to arrive; 0 is 10 s.
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

// known is an agent by what its token is told by.
type agentToken struct {
	*Agent
	sum [sha256.Size]byte
}

// How long things take that a caller has a part in.
const (
	headerWithin = 5 * time.Second
	bodyWithin   = 10 * time.Second // unless Options say otherwise
	writeWithin  = 30 * time.Second
	// callWithin is how long nod is tried for while it does not answer.
	callWithin = 15 * time.Second
	// MaxWait is the longest that one GET may wait.
	MaxWait = 10 * time.Minute
)

var errStopping = schemas.Errorf(schemas.CodeUnavailable, "nod's HTTP API is stopping: ask again")

// Open starts to listen, and returns when it does. What keeps it from that is
// one line.
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

// URL is where it is reached.
func (s *Server) URL() string { return s.addr.URL }

// Done hears why the server no longer listens; nil after Stop.
func (s *Server) Done() <-chan error { return s.done }

// Stop answers every open call and stops listening. What waits for a person
// stays, but for what hooks asked: their hosts go on without it.
func (s *Server) Stop(ctx context.Context) error {
	s.stop(errStopping)
	if err := s.http.Shutdown(ctx); err != nil {
		return fmt.Errorf("stop the HTTP API: %w", errors.Join(err, s.http.Close()))
	}
	return nil
}

// agent is whose token a request shows, nil where it is nobody's. How long that
// takes tells nothing of the tokens.
func (s *Server) agent(token string) (found *Agent) {
	sum := sha256.Sum256([]byte(token))
	for _, a := range s.agents {
		if subtle.ConstantTimeCompare(sum[:], a.sum[:]) == 1 && a.Token != "" {
			found = a.Agent
		}
	}
	return found
}
