package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// Call is one request to a service. Its handler must reply once, at any time and from any goroutine.
// Further replies are dropped.
type Call struct {
	Tokens []string // the tokens that follow the verb in the call's subject; all of them are valid ids
	Data   []byte

	req      micro.Request
	answered atomic.Bool
	done     func()
	log      *slog.Logger
}

// Reply replies with v, or with INTERNAL_ERROR if v cannot be encoded.
func (c *Call) Reply(v any) {
	if !c.answered.CompareAndSwap(false, true) {
		return
	}
	defer c.done()
	data, err := schemas.Encode(v)
	if err != nil {
		c.log.Error("bus: a reply cannot be encoded", "subject", c.req.Subject(), "error", err)
		data, _ = schemas.Encode(schemas.Errorf(schemas.CodeInternal, "the reply could not be encoded")) // the encoding of a plain Error cannot fail
	}
	if err := c.req.Respond(data); err != nil {
		c.log.Warn("bus: a reply was not sent; the asker will ask again", "subject", c.req.Subject(), "error", err)
	}
}

// Fail replies with an error. It sends a *schemas.Error as it is. It sends a temporary error as
// UNAVAILABLE, after which callers try again, for example if a store has no leader or no room. It logs
// every other error, and sends it as INTERNAL_ERROR without details.
func (c *Call) Fail(err error) {
	e := toWireError(err)
	if e.Code == schemas.CodeInternal {
		c.log.Error("bus: a call failed", "subject", c.req.Subject(), "error", err)
	}
	e.Type = schemas.TypeError
	c.Reply(e)
}

// ErrorCode returns the code with which Fail would send an error.
func ErrorCode(err error) schemas.Code { return toWireError(err).Code }

func toWireError(err error) *schemas.Error {
	var e *schemas.Error
	var low *lowDisk
	switch {
	case errors.Is(err, ErrUnreadable): // if the caller tries again, it may reach an engine of the version that can read the value
		return schemas.Errorf(schemas.CodeUnavailable, "a later version of nod wrote what this engine needs; ask again, or update this engine")
	case errors.As(err, &e):
		return e
	case errors.As(err, &low):
		return schemas.Errorf(schemas.CodeUnavailable, "%s", low)
	case errors.Is(err, ErrFull):
		return schemas.Errorf(schemas.CodeUnavailable, "nod's stores have no room, so it can store no request and allows nothing: make room on the disks of the NATS servers, or raise their limits (max_file_store); nod then goes on by itself")
	case transient(err):
		return schemas.Errorf(schemas.CodeUnavailable, "nod could not complete this in time; ask again")
	}
	return schemas.Errorf(schemas.CodeInternal, "an internal error of nod; its log has the details")
}

func transient(err error) bool {
	for _, t := range []error{
		context.DeadlineExceeded, context.Canceled, ErrUnknown, ErrMoved,
		nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionClosed, nats.ErrConnectionDraining,
		nats.ErrConnectionReconnecting, nats.ErrDisconnected, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection,
	} {
		if errors.Is(err, t) {
			return true
		}
	}
	return apiUnavailable(err)
}

// Endpoint is one subject of a service.
type Endpoint struct {
	Name string
	Verb string // the first token after "nod.v1." in the subject
	// Tokens is the number of ids after the verb.
	Tokens int
	// Handle gets one call of the endpoint after another. It must not block, and may reply later.
	Handle func(*Call)
}

// ServiceOptions describe a service.
type ServiceOptions struct {
	Name, Version, Description string
	// Open is the greatest number of calls without a reply. Further calls get UNAVAILABLE.
	Open int
	// Stats returns data that the service adds to its statistics.
	Stats func() any
}

// Service is a running NATS micro service.
type Service struct {
	svc  micro.Service
	open sync.WaitGroup
	room chan struct{}
	log  *slog.Logger
	// noCredentials means that the server requires no credentials.
	noCredentials bool

	mu       sync.Mutex
	stopping bool
}

// Serve starts a micro service with these endpoints. Each endpoint is in a queue group.
func (c *Conn) Serve(o ServiceOptions, endpoints ...Endpoint) (*Service, error) {
	s := &Service{room: make(chan struct{}, o.Open), log: c.log, noCredentials: c.Open()}
	config := micro.Config{Name: o.Name, Version: o.Version, Description: o.Description}
	if o.Stats != nil {
		config.StatsHandler = func(*micro.Endpoint) any { return o.Stats() }
	}
	svc, err := micro.AddService(c.nc, config)
	if err != nil {
		return nil, fmt.Errorf("start the service %s: %w", o.Name, err)
	}
	s.svc = svc
	for _, e := range endpoints {
		subject := "nod.v1." + e.Verb + strings.Repeat(".*", e.Tokens)
		err := svc.AddEndpoint(e.Name, micro.HandlerFunc(func(r micro.Request) { s.accept(e, r) }), micro.WithEndpointSubject(subject))
		if err != nil {
			_ = svc.Stop() // the error of AddEndpoint is more useful than a later error of Stop
			return nil, fmt.Errorf("serve %s: %w", subject, err)
		}
	}
	return s, nil
}

// ID returns the service instance's id, which is also in its statistics.
func (s *Service) ID() string { return s.svc.Info().ID }

// accept passes a call to its endpoint's handler, or refuses it with an error.
func (s *Service) accept(e Endpoint, r micro.Request) {
	call := &Call{req: r, Data: r.Data(), log: s.log, done: func() {}}
	if !s.replies(r) { // a reply, even an error, may go only to the caller's own inbox
		s.log.Warn("bus: a call was dropped, because its reply would not go to an inbox of its asker", "subject", r.Subject())
		return
	}
	tokens, ok := schemas.Tokens(r.Subject(), e.Verb, e.Tokens)
	if !ok {
		call.Fail(schemas.Errorf(schemas.CodeValidation, "the subject %q holds an id that is not 1 to 128 letters, digits, _ or -", r.Subject()))
		return
	}
	call.Tokens = tokens
	if !s.begin() {
		call.Fail(schemas.Errorf(schemas.CodeUnavailable, "this engine is stopping; ask again"))
		return
	}
	select {
	case s.room <- struct{}{}:
	default:
		s.open.Done()
		call.Fail(schemas.Errorf(schemas.CodeUnavailable, "this engine has %d calls open; ask again", cap(s.room)))
		return
	}
	call.done = func() { <-s.room; s.open.Done() }
	e.Handle(call)
}

// replies reports whether the reply subject is in the caller's inbox. On any other subject, the reply
// could be mistaken for another message, such as a decision. On a server without credentials, callers
// have no identity, so replies accepts any inbox.
func (s *Service) replies(r micro.Request) bool {
	if s.noCredentials {
		return strings.HasPrefix(r.Reply(), "_INBOX.")
	}
	return roles.OwnReply(r.Subject(), r.Reply())
}

func (s *Service) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.open.Add(1)
	return true
}

// Drain refuses new calls. It waits until all open calls have their replies or ctx ends.
func (s *Service) Drain(ctx context.Context) error {
	err := s.svc.Stop()
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	idle := make(chan struct{})
	go func() { s.open.Wait(); close(idle) }()
	select {
	case <-idle:
		return err
	case <-ctx.Done():
		return fmt.Errorf("stop the service: calls are still open: %w", ctx.Err())
	}
}
