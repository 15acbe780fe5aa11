package bus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nodbus/nod/schemas"
)

// hopTimeout is the time limit of one NATS hop: a request with its reply, or a publish with its
// acknowledgement.
const hopTimeout = 5 * time.Second

const (
	backoffMin = 50 * time.Millisecond
	backoffMax = 2 * time.Second
)

// Reply is the successful reply to a call. Call returns an error reply as an error.
type Reply struct {
	Type string
	data []byte
}

// Into decodes the reply into v, which must be of the reply's type.
func (r Reply) Into(v any) error { return schemas.Load(r.data, v) }

// Call sends v to a subject and waits for the reply. If no reply comes, or the reply is UNAVAILABLE,
// Call tries again with backoff until ctx ends. Errors of the receiver are *schemas.Error. Every call
// must be safe to repeat, because the receiver may get it more than once.
func (c *Conn) Call(ctx context.Context, subject string, v any) (Reply, error) {
	return c.call(ctx, subject, func(int) any { return v })
}

// CallInto makes a call as Call does, and decodes the reply into out.
func (c *Conn) CallInto(ctx context.Context, subject string, v, out any) error {
	r, err := c.Call(ctx, subject, v)
	if err != nil {
		return err
	}
	return r.Into(out)
}

// call does the work of Call, and makes a new message for each try. The first try is number 0.
func (c *Conn) call(ctx context.Context, subject string, message func(try int) any) (Reply, error) {
	var last error
	for try := 0; ; try++ {
		data, err := schemas.Encode(message(try))
		if err != nil {
			return Reply{}, fmt.Errorf("encode for %s: %w", subject, err)
		}
		attempt := c.attempt()
		reply, err := c.hop(ctx, subject, data)
		c.recordAttempt(attempt, err)
		if err == nil || !isTransient(err) {
			return reply, err
		}
		if ctx.Err() == nil {
			last = err
		}
		if pause(ctx, try) != nil {
			return Reply{}, unavailable(ctx, last)
		}
	}
}

func (c *Conn) hop(ctx context.Context, subject string, data []byte) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, hopTimeout)
	defer cancel()
	msg, err := c.exchange(ctx, subject, data)
	if errors.Is(err, nats.ErrMaxPayload) { // JSON escapes can lengthen a message beyond the server's limit, although each field keeps to its own limit
		return Reply{}, schemas.Errorf(schemas.CodeValidation, "the message takes %d bytes and the server accepts %d: shorten it", len(data), c.nc.MaxPayload())
	}
	if err != nil {
		return Reply{}, err
	}
	typ, err := schemas.TypeOf(msg.Data)
	if err != nil {
		return Reply{}, schemas.Errorf(schemas.CodeInternal, "the reply from %s is not a message of nod: %v", subject, err)
	}
	if typ != schemas.TypeError {
		return Reply{Type: typ, data: msg.Data}, nil
	}
	var e schemas.Error
	if err := schemas.Decode(msg.Data, &e); err != nil {
		return Reply{}, err
	}
	return Reply{}, &e
}

// exchange sends a request, with the trace of ctx if there is one, and returns the reply.
func (c *Conn) exchange(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	if header := traceHeader(ctx, nil); header != nil {
		return c.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data, Header: header})
	}
	return c.nc.RequestWithContext(ctx, subject, data)
}

// isTransient reports whether another try may succeed.
func isTransient(err error) bool {
	var e *schemas.Error
	if errors.As(err, &e) {
		return e.Code == schemas.CodeUnavailable
	}
	return !errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrMaxPayload) &&
		!errors.Is(err, nats.ErrBadSubject) && !errors.Is(err, context.Canceled)
}

// unavailable returns the error of a call whose context has ended. The parameter last is the error of
// the call's last try.
func unavailable(ctx context.Context, last error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	var e *schemas.Error
	switch {
	case errors.As(last, &e):
		return e
	case errors.Is(last, nats.ErrNoResponders):
		return schemas.Errorf(schemas.CodeUnavailable, "no nod engine is on the bus, or these credentials may not ask it: start one with `nod up` or `nod engine`")
	}
	return schemas.Errorf(schemas.CodeUnavailable, "no answer from nod: the bus or its engine is away, or these credentials may not ask it")
}

// Retry calls f until f succeeds or fails permanently, or ctx ends. Each call of f may take up to
// hopTimeout. For example, the first calls to a new stream fail, because the stream has no leader yet.
func Retry(ctx context.Context, f func(context.Context) error) error {
	for try := 0; ; try++ {
		hop, cancel := context.WithTimeout(ctx, hopTimeout)
		err := f(hop)
		cancel()
		if err == nil || isPermanent(err) || pause(ctx, try) != nil {
			return err
		}
	}
}

// retryOperation calls f as Retry does, and puts the operation's name into the error. If ctx ends
// before the result is known, the error is ErrUnknown.
func retryOperation(ctx context.Context, operation string, f func(context.Context) error) error {
	err := Retry(ctx, f)
	switch {
	case err == nil:
		return nil
	case isPermanent(err):
		return fmt.Errorf("%s: %w", operation, err)
	}
	return fmt.Errorf("%s: %w (%v)", operation, ErrUnknown, err)
}

// pause waits before the next try. The wait is longer after each try, and partly random. If ctx ends
// first, pause returns the error of ctx.
func pause(ctx context.Context, try int) error {
	d := min(backoffMin<<min(try, 10), backoffMax)
	d = d/2 + rand.N(d)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
