package hook

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// askAboutDenied asks nod about a call that the host has denied by itself. If nod allows the call, the host
// tells its agent to try again. If a person allowed it, nod keeps this as an approval for one identical
// call, which a hook with Options.ApprovedOnly uses. In every other case, the host's denial stays.
func (h *run) askAboutDenied(ctx context.Context, nod Nod) int {
	r, err := deniedRequest(h.host, h.call, h.opts)
	if err != nil || h.opts.Unsettled == nil { // without Unsettled, the hook cannot note the approval, and no other hook would ask nod about the repeated call
		if err != nil {
			h.log(err)
		}
		return h.reply(Verdict{Effect: Leave})
	}
	ctx, stop := h.untilStopped(ctx, errStopped)
	defer stop()
	unregister := h.registerWait(r)
	defer unregister()
	d, err := callUntil(ctx, "asking nod", func(ctx context.Context) (schemas.Decision, error) { return nod.Ask(ctx, r) })
	switch {
	case err == nil && d.Outcome == schemas.Allowed && d.UpdatedInput == nil:
		if d.By.Kind == schemas.ByHuman { // before the reply, because the agent repeats the call at once
			h.release(ctx, nod.Detach, r, "the agent tries again")
		}
		if err := h.noteApproved(r.SessionID); err != nil {
			h.log(err)
			return h.reply(Verdict{Effect: Leave})
		}
		return h.reply(Verdict{Effect: Allow})
	case err == nil: // the approval would be for the agent's own input, so that an allow with an edit leaves the call denied
		return h.reply(Verdict{Effect: Leave})
	}
	h.log(err)
	leave, exit := nod.Withdraw, h.reply(Verdict{Effect: Leave})
	if errors.Is(err, errDeadline) {
		if leave = nod.Detach; h.noteApproved(r.SessionID) != nil {
			leave = nod.Withdraw
		}
	}
	if agents.MayBeOpen(err) {
		h.release(ctx, leave, r, err.Error())
	}
	return exit
}

// deniedRequest returns the request about a call that the host has denied. The request has a new id,
// because a strict hook may have sent a request with the id of the call.
func deniedRequest(host Host, call Call, o Options) (schemas.Request, error) {
	call.ChangesInput = false // the host takes no changed input in this reply
	r, err := newRequest(host, call, o)
	if call.ToolCallID != "" {
		r.PendingID = agents.ID("denied." + call.ToolCallID)
	}
	r.Reason = host.Agent + " itself denied this call"
	if call.Reason != "" {
		r.Reason += ": " + call.Reason
	}
	if len(r.Reason) > maxDeniedReason {
		r.Reason = string(bytes.ToValidUTF8([]byte(r.Reason[:maxDeniedReason]), nil))
	}
	return r, err
}

// maxDeniedReason is the largest length, in bytes, of the host's reason in a request. nod cuts a longer
// reason.
const maxDeniedReason = 1000

// mayBeApproved reports whether there is a note of askAboutDenied about this call.
func (h *run) mayBeApproved() bool {
	return h.call.check() == nil && h.opts.Unsettled != nil && h.opts.Unsettled.Noted(agents.ID(h.call.SessionID), h.call.approvalNote())
}

func (h *run) noteApproved(session string) error {
	return h.opts.Unsettled.Note(session, h.call.approvalNote())
}

// approvalNote returns the name of the note about a tool with its input. Unsettled stores the note with
// the session.
func (c Call) approvalNote() string {
	var input bytes.Buffer
	_ = json.Compact(&input, c.Input) // cannot fail, because check has found a JSON object
	sum := sha256.Sum256(append([]byte(c.ToolName+"\x00"), input.Bytes()...))
	return "approved:" + hex.EncodeToString(sum[:])
}
