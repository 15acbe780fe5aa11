package hook

import (
	"context"
	"errors"
	"time"
)

var (
	errDefer  = errors.New("no approver has answered yet")
	errShared = errors.New("no approver has answered yet, and the host cannot repeat one of several parallel calls")
)

const (
	transcriptWithin = 5 * time.Second
	recheckAfter     = time.Second
)

// untilDeferred returns a context that ends after Options.DeferAfter if the turn allows it (see Turn).
// In an Alone turn, the cause is errDefer, and in a Shared turn errShared. If the turn is Unsure,
// untilDeferred reads the turn again after another DeferAfter. In an Attended turn, the context does
// not end.
func (h *run) untilDeferred(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.call.Turn == nil || h.opts.DeferAfter <= 0 {
		return ctx, func() {}
	}
	waiting, give := context.WithCancelCause(ctx)
	go func() {
		for wait(waiting, h.opts.DeferAfter) {
			switch h.readTurn(waiting) {
			case Alone:
				give(errDefer)
			case Shared:
				give(errShared)
			case Attended: // a user is at the terminal, so the hook waits without a limit
				return
			}
		}
	}()
	return waiting, func() { give(nil) }
}

// readTurn returns the turn of the call. If it is Alone, readTurn reads the turn again after
// recheckAfter and returns the second result, because the host may still be writing other calls of the
// same message to its transcript.
func (h *run) readTurn(ctx context.Context) Turn {
	look := func() Turn {
		limited, cancel := context.WithTimeoutCause(ctx, transcriptWithin, errLate)
		defer cancel()
		turn, err := callUntil(limited, "reading the transcript", func(context.Context) (Turn, error) { return h.call.Turn(), nil })
		if err != nil {
			return Unsure
		}
		return turn
	}
	turn := look()
	if turn == Alone && wait(ctx, recheckAfter) {
		return look()
	}
	return turn
}

// wait waits for the duration d and returns true. If ctx ends first, it returns false.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
