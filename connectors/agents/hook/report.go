package hook

import (
	"context"
	"errors"
	"slices"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// reportResolved tells nod that the host has continued without a decision. If it fails, the requests
// that the host no longer waits for stay pending until their deadlines.
func (h *run) reportResolved(ctx context.Context) {
	if h.call.SessionID == "" {
		return // without a session id, nod cannot find the requests
	}
	session, ended := agents.ID(h.call.SessionID), h.call.HostResolved.WholeSession
	if !ended && !h.mayBeUnsettled(h.call.HostResolved.ToolName) {
		return // nod does not need this report, because it has simply allowed every call of this tool
	}
	if ended && h.opts.Unsettled != nil {
		defer h.opts.Unsettled.Forget(session)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reportWithin, errLate)
	defer cancel()
	nod, err := h.dial(ctx)
	if err == nil {
		p := h.call.HostResolved
		p.SessionID, p.TaskID = session, h.call.TaskID
		_, err = callUntil(ctx, "telling nod that the host went on", func(ctx context.Context) (struct{}, error) {
			return struct{}{}, nod.HostResolved(ctx, p)
		})
	}
	if err != nil && !errors.Is(err, &schemas.Error{Code: schemas.CodeUnavailable}) {
		h.log(err)
	}
}

// takeNotices returns the notices of the session, as lines for the agent and its user. It returns none
// if the reply to this report cannot contain notices. For a report about a call that nod has simply
// allowed, it does not connect to nod.
func (h *run) takeNotices(ctx context.Context) (lines []string) {
	c := &h.call
	switch {
	case c.TaskID != "" || c.SessionID == "" || !slices.Contains(h.host.Setup.Notices, c.Event):
		return nil
	case c.Signal && c.ToolName != "" && !h.mayBeUnsettled(c.ToolName):
		return nil
	}
	return h.readNotices(ctx)
}

// withNotices adds the session's notices to a decision. In a denial, they are a part of the reason.
func (h *run) withNotices(ctx context.Context, v Verdict) Verdict {
	if v.Effect == Deny && h.call.TaskID == "" {
		if lines := h.readNotices(ctx); len(lines) > 0 {
			v.Reason = v.withReason().Reason + "\n" + forModel(lines)
		}
		return v
	}
	v.Notices = h.takeNotices(ctx)
	return v
}

// mayBeUnsettled reports whether nod may have done something else than simply allow the session's calls
// of a tool.
func (h *run) mayBeUnsettled(tool string) bool {
	return h.opts.Unsettled == nil || h.opts.Unsettled.Noted(agents.ID(h.call.SessionID), tool)
}

func (h *run) readNotices(ctx context.Context) (lines []string) {
	ctx, cancel := context.WithTimeoutCause(ctx, noticesWithin, errLate)
	defer cancel()
	nod, err := h.dial(ctx)
	if err != nil {
		return nil // nod is not running, or does not reply now
	}
	notices, err := callUntil(ctx, "reading nod's notices", func(ctx context.Context) ([]schemas.Notice, error) {
		return nod.TakeNotices(ctx, agents.ID(h.call.SessionID))
	})
	if err != nil && ctx.Err() == nil { // a timeout is not logged, because older versions of nod do not reply
		h.log(err)
	}
	for _, n := range notices {
		lines = append(lines, agents.DescribeNotice(n))
	}
	return lines
}
