package hook

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nodbus/nod/schemas"
)

// errStopped means that the user has stopped the agent, according to the host's transcript.
var errStopped = errors.New("the agent was stopped at its terminal")

// errPrompted means that the user has written the next prompt at the terminal.
var errPrompted = errors.New("the user continued at the terminal")

const stoppedEvery = time.Second

// untilStopped returns a context. If the host's transcript shows that the user has stopped the agent,
// the context ends with the cause why. This is necessary because some hosts let their hook continue
// after a stop, and ignore its reply.
func (h *run) untilStopped(ctx context.Context, why error) (context.Context, context.CancelFunc) {
	if h.call.Stopped == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		for wait(ctx, stoppedEvery) {
			if h.stopped() {
				cancel(why)
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

// hostMovedOn reports whether the host has certainly continued without the hook's reply.
func (h *run) hostMovedOn(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, errReaderGone) || errors.Is(cause, errParentGone) || h.unwritten || h.stopped()
}

// reportUnheard tells nod that the host did not get the allow for r.
func (h *run) reportUnheard(ctx context.Context, nod Nod, r schemas.Request) {
	h.release(ctx, func(ctx context.Context, sessionID, pendingID, reason string) error {
		return nod.HostResolved(ctx, schemas.HostResolved{SessionID: sessionID, PendingID: pendingID, Reason: reason})
	}, r, "the agent had gone on")
}

// registerWait records that this process waits for r. The function unregister ends the record.
func (h *run) registerWait(r schemas.Request) (unregister func()) {
	return h.opts.Waits.Register(&r, h.log)
}

// noteUnlessSettled makes a note about the call of r (see Unsettled), unless nod simply allows the
// call. If the host also asks its own user, it makes the note at once. Otherwise, it makes the note
// when the caller calls settled(false), or if the caller does not call settled within settledWithin.
func (h *run) noteUnlessSettled(r schemas.Request) (settled func(allowed bool)) {
	if h.opts.Unsettled == nil {
		return func(bool) {}
	}
	note := sync.OnceFunc(func() {
		if err := h.opts.Unsettled.Note(r.SessionID, r.ToolName); err != nil {
			h.log(err) // then no hook can tell nod that the call ran without nod's decision
		}
	})
	if r.HostAsks {
		note()
		return func(bool) {}
	}
	late := time.AfterFunc(settledWithin, note)
	return func(allowed bool) {
		late.Stop()
		if !allowed {
			note()
		}
	}
}

// programHostResolved describes the requests that the host no longer waits for after the signal c. It is
// for a host that does not ask its own user while its hook runs.
func programHostResolved(host Host, c *Call) schemas.HostResolved {
	p := schemas.HostResolved{AgentName: host.Agent, Reason: "the agent's turn is over"}
	switch c.Event {
	case userPromptSubmit, beforeAgent, postToolUse, afterTool: // earlier calls of the agent may still wait
		return schemas.HostResolved{}
	case sessionEnd:
		p.WholeSession, p.Reason = true, "the session has ended"
	case interrupted:
		p.Reason = errStopped.Error()
	}
	return p
}
