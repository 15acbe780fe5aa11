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

// hopTimeout bounds one NATS hop: a request and its reply, or a publish and
// its acknowledgement.
const hopTimeout = 5 * time.Second

// backoff are the pauses between tries of one hop.
const (
	backoffMin = 50 * time.Millisecond
	backoffMax = 2 * time.Second
)

// Reply is what came back from a call: a message that is no error.
type Reply struct {
	Type string
	data []byte
}

// Into decodes the reply, which must be of v's type.
func (r Reply) Into(v any) error { return schemas.Load(r.data, v) }

// Call sends v to subject and waits for the reply, trying again with backoff
// for as long as ctx allows while nobody answers or the answer is UNAVAILABLE.
// An error of the other side is a *schemas.Error. A call may arrive more than
// once, so only what is safe to repeat may be called.
func (c *Conn) Call(ctx context.Context, subject string, v any) (Reply, error) {
	return c.call(ctx, subject, func(int) any { return v })
}

// CallInto is Call with the reply decoded into out.
func (c *Conn) CallInto(ctx context.Context, subject string, v, out any) error {
	r, err := c.Call(ctx, subject, v)
	if err != nil {
		return err
	}
	return r.Into(out)
}

// call is Call with the message of each try told by its number, from 0.
func (c *Conn) call(ctx context.Context, subject string, message func(try int) any) (Reply, error) {
	var last error
	for try := 0; ; try++ {
		data, err := schemas.Encode(message(try))
		if err != nil {
			return Reply{}, fmt.Errorf("encode for %s: %w", subject, err)
		}
		attempt := c.attempt()
		reply, err := c.hop(ctx, subject, data)
		c.tried(attempt, err)
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

// hop is one try.
func (c *Conn) hop(ctx context.Context, subject string, data []byte) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, hopTimeout)
	defer cancel()
	msg, err := c.nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		return Reply{}, err
	}
	typ, err := schemas.TypeOf(msg.Data)
	if err != nil {
		return Reply{}, schemas.Errorf(schemas.CodeInternal, "the answer from %s is not a message of nod's: %v", subject, err)
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

// isTransient reports whether a failed try says nothing of the call itself.
func isTransient(err error) bool {
	var e *schemas.Error
	if errors.As(err, &e) {
		return e.Code == schemas.CodeUnavailable
	}
	return !errors.Is(err, nats.ErrConnectionClosed) && !errors.Is(err, nats.ErrMaxPayload) &&
		!errors.Is(err, nats.ErrBadSubject) && !errors.Is(err, context.Canceled)
}

// unavailable is the error of a call whose caller's patience ended.
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

// Retry calls f until it succeeds, trying again cannot help, or ctx ends: a stream
// that was just made, or whose servers just came up, has no leader for a while.
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

// retry is Retry, with what failed in its error: ErrUnknown where ctx ended before
// it was settled.
func retry(ctx context.Context, what string, f func(context.Context) error) error {
	err := Retry(ctx, f)
	switch {
	case err == nil:
		return nil
	case isPermanent(err):
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%s: %w (%v)", what, ErrUnknown, err)
}

// pause waits before the next try, longer each time and with jitter, and
// returns ctx's error where that ends first.
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
