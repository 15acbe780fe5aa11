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

// hopTimeout is the time limit of one NATS hop: a request and its reply, or a publish and
// its acknowledgement.
const hopTimeout = 5 * time.Second

// The pauses between the tries of one hop.
const (
	backoffMin = 50 * time.Millisecond
	backoffMax = 2 * time.Second
)

// Reply is the successful reply to a call. Call returns an error reply as an error instead.
type Reply struct {
	Type string
	data []byte
}

// Into decodes the reply into v. The reply must be of v's type.
func (r Reply) Into(v any) error { return schemas.Load(r.data, v) }

// Call sends v to subject and waits for the reply. While there is no reply, or the reply
// is UNAVAILABLE, it tries again with backoff for as long as ctx allows. An error that
// the receiver replies with is a *schemas.Error. The receiver may get a call more than
// once: make only calls that are safe to repeat.
func (c *Conn) Call(ctx context.Context, subject string, v any) (Reply, error) {
	return c.call(ctx, subject, func(int) any { return v })
}

// CallInto calls Call and decodes the reply into out.
func (c *Conn) CallInto(ctx context.Context, subject string, v, out any) error {
	r, err := c.Call(ctx, subject, v)
	if err != nil {
		return err
	}
	return r.Into(out)
}

// call does what Call does, but makes a new message for each try. Tries are numbered from
// 0.
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

// hop is one try of a call.
func (c *Conn) hop(ctx context.Context, subject string, data []byte) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, hopTimeout)
	defer cancel()
	msg, err := c.nc.RequestWithContext(ctx, subject, data)
	if errors.Is(err, nats.ErrMaxPayload) { // JSON escapes can make a message longer than the limits of its fields suggest
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

// isTransient reports whether err is a failure of one try, and not the result of the
// call.
func isTransient(err error) bool {
	var e *schemas.Error
	if errors.As(err, &e) {
		return e.Code == schemas.CodeUnavailable
	}
	return !errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrMaxPayload) &&
		!errors.Is(err, nats.ErrBadSubject) && !errors.Is(err, context.Canceled)
}

// unavailable returns the error of a call whose context has ended; last is the error of
// its last try.
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

// Retry calls f, for up to hopTimeout each time, until f succeeds or fails permanently, or
// ctx ends. Retries are needed, for example, while a new stream has no leader yet.
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

// retryOperation does what Retry does, and adds the operation's name to the error. The
// error is ErrUnknown if ctx ended before the result was known.
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

// pause waits before the next try, for a time that grows with try and has jitter. It returns
// ctx's error if ctx ends first.
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
