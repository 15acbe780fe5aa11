package hook

import (
	"context"
	"errors"
	"fmt"

	"github.com/nodbus/nod/schemas"
)

// callUntil calls f with ctx and returns its result. It also returns when ctx ends, because f may
// ignore ctx and the host waits for a reply. It turns a panic of f into an error. If f's result is
// ready when ctx ends, callUntil returns this result, except an error that is no *schemas.Error.
// Instead of such an error, it returns ctx's cause.
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
