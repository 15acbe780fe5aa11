package hook

import (
	"context"
	"errors"
	"time"

	"github.com/nodbus/nod/schemas"
)

// errStopped: the host's own records say that it waits for the hook no longer.
var errStopped = errors.New("the agent was stopped at its terminal")

// stoppedEvery is how often those records are looked at.
const stoppedEvery = time.Second

// untilStopped is a context that ends once the host's records say that its user has
// stopped the agent. Some hosts let their hook run on then, and run nothing.
func (h *run) untilStopped(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.call.Stopped == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for wait(ctx, stoppedEvery) {
			if h.stopped() {
				cancel(errStopped)
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

func (h *run) stopped() bool {
	if h.call.Stopped == nil {
		return false
	}
	stopped, err := callUntil(context.Background(), "reading the transcript", func(context.Context) (bool, error) { return h.call.Stopped(), nil })
	return stopped && err == nil
}

// goneOn reports whether the host is known to have gone on without the answer.
func (h *run) hostMovedOn(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, errReaderGone) || errors.Is(cause, errParentGone) || h.unwritten || h.stopped()
}

// unheard tells nod that the host never heard that r was allowed.
func (h *run) reportUnheard(ctx context.Context, nod Nod, r schemas.Request) {
	h.release(ctx, func(ctx context.Context, sessionID, pendingID, reason string) error {
		return nod.HostResolved(ctx, schemas.HostResolved{SessionID: sessionID, PendingID: pendingID, Reason: reason})
	}, r, "the agent had gone on")
}

// waits says that this process waits for r, until over is called.
func (h *run) registerWait(r schemas.Request) (over func()) {
	if h.opts.Waits == nil {
		return func() {}
	}
	over, err := h.opts.Waits(r.SessionID, r.PendingID)
	if err != nil {
		h.log(err) // that the hook died is then not told
		return func() {}
	}
	return over
}

// passedProgram is what a host's signal says if the host does not ask its own user
// beside its hook: everything that its hooks wait for is passed.
func programHostResolved(host Host, c *Call) schemas.HostResolved {
	p := schemas.HostResolved{AgentName: host.Agent, Reason: "the agent's turn is over"}
	switch c.Event {
	case sessionEnd:
		p.WholeSession, p.Reason = true, "the session has ended"
	case interrupted:
		p.Reason = errStopped.Error()
	}
	return p
}
