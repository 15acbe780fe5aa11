package hook

import (
	"context"
	"errors"
	"fmt"

	"github.com/nodbus/nod/schemas"
)

// callUntil calls the function f with ctx and returns its result. If ctx ends, callUntil does not wait
// for f, because f may ignore ctx while the host waits for a reply. A panic of f becomes an error. If f
// has ended when ctx ends, the result is that of f, unless f returned an error that is no
// *schemas.Error. In all other cases after ctx has ended, the error is ctx's cause.
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
