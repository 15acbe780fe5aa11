package hook

import (
	"context"
	"errors"
	"time"
)

var (
	errDefer  = errors.New("nobody answered yet")
	errShared = errors.New("nobody answered yet, and a run is not taken up again at one of several calls")
)

const (
	transcriptWithin = 5 * time.Second
	recheckAfter     = time.Second
)

// patience is how long the host waits for a decision.
func (h *run) untilDeferred(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.call.Turn == nil || h.opts.DeferAfter <= 0 {
		return ctx, func() {}
	}
	waiting, give := context.WithCancelCause(ctx)
	go func() {
		for wait(waiting, h.opts.DeferAfter) {
			switch h.turn(waiting) {
			case Alone:
				give(errDefer)
			case Shared:
				give(errShared)
			case Attended: // who sits there goes on waiting
				return
			}
		}
	}()
	return waiting, func() { give(nil) }
}

// turn looks at the call's turn. A host may be in the midst of writing down one
// call after another, so that one which is Alone still has to be so a while later.
func (h *run) turn(ctx context.Context) Turn {
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

// wait reports whether d went by before ctx ended.
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
