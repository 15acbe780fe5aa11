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

// untilDeferred returns a context that ends, with errDefer or errShared, once the
// host's run should not wait any longer; see Options.DeferAfter.
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
			case Attended: // a user is at the terminal and keeps waiting
				return
			}
		}
	}()
	return waiting, func() { give(nil) }
}

// readTurn reads the call's turn. A host may still be writing several calls to its
// transcript, so a turn counts as Alone only if it still is one after recheckAfter.
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

// wait waits for d and returns true, or false if ctx ends first.
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
