package hook

import (
	"context"
	"errors"
	"fmt"

	"github.com/nodbus/nod/schemas"
)

// guard runs f until it returns or ctx ends, whichever is first: what others
// wrote may panic or not heed ctx, and the host waits for an answer. A result
// that is there when ctx ends counts, and so does nod's own error; any other
// error is ctx's cause then.
func callUntil[T any](ctx context.Context, doing string, f func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		r := result{err: fmt.Errorf("%s stopped without a result", doing)}
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("%s failed: internal error: %v", doing, p)
			}
			done <- r
		}()
		r.value, r.err = f(ctx)
	}()

	var r result
	select {
	case r = <-done:
	case <-ctx.Done():
		select {
		case r = <-done:
		default:
			r.err = context.Cause(ctx)
		}
	}
	var own *schemas.Error
	if r.err != nil && ctx.Err() != nil && !errors.As(r.err, &own) {
		r.err = context.Cause(ctx)
	}
	return r.value, r.err
}
