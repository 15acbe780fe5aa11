package opencode

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// askAndReply asks nod about the permission p and sends the decision to OpenCode. It returns when p has
// an answer, either from nod or from OpenCode's user. If it returns an error, OpenCode's own prompt
// stays open.
func (f *follower) askAndReply(ctx context.Context, p permission) error {
	r, over, err := f.readRequest(ctx, p)
	if err != nil || over {
		return err
	}
	d, err := f.decide(ctx, r)
	if ctx.Err() != nil && err != nil {
		f.leave(ctx, r)
		return nil
	}
	switch {
	case err == nil:
		says, message := answer(r, d)
		took, err := f.reply(ctx, p, says, message)
		if says != reject && !took && f.rejected(ctx) {
			f.leave(ctx, r)
		}
		return err
	case refused(err): // nod stored no request, so there is nothing to withdraw
		_, err = f.reply(ctx, p, reject, "nod refused the call: "+err.Error())
		return err
	}
	_, err = f.reply(ctx, p, reject, "nod cannot be reached, and calls are refused without it: "+err.Error())
	f.leave(ctx, r) // the withdrawal comes last, because it takes some seconds if nod is gone
	return err
}

// rejected waits until OpenCode reports the answer to a permission, and reports whether the answer was
// a rejection. If OpenCode reports nothing within repliedWithin, rejected returns false, because the
// call may run.
func (f *follower) rejected(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return errors.Is(context.Cause(ctx), errRejected)
	case <-time.After(repliedWithin):
		return false
	}
}

// readRequest reads the tool call of the permission p from OpenCode, and makes it a request for nod. It
// retries until OpenCode replies or reports a permanent error, or until ctx ends. If OpenCode has not
// stored the call yet, readRequest waits up to storedWithin. over is true if nod need not be asked,
// because the call has ended or OpenCode does not let nod read it.
func (f *follower) readRequest(ctx context.Context, p permission) (r *schemas.Request, over bool, err error) {
	var c call
	var own, root session
	late := time.Now().Add(storedWithin)
	err = retry(ctx, func() (bool, error) {
		var err error
		if c, err = f.host.call(ctx, p); err == nil && p.CallID != "" && !c.stored() && time.Now().Before(late) {
			return true, errors.New("the tool call is not stored yet")
		}
		if err == nil {
			own, root, err = f.host.sessions(ctx, p.SessionID)
		}
		var answered status
		return !errors.As(err, &answered) || !answered.permanent(), err
	})
	if err != nil || c.finished() {
		return r, true, err
	}
	r, err = f.request(p, c, own, root)
	return r, false, err
}

// decide asks nod and waits for the decision. While nod is unavailable, it tries again, unless
// DenyUnavailable is true. If the end of an earlier `nod opencode` withdrew the same request, decide
// sends the request again with a new r.PendingID.
func (f *follower) decide(ctx context.Context, r *schemas.Request) (d schemas.Decision, err error) {
	warned := false
	err = retry(ctx, func() (bool, error) {
		d, err = agents.AskAnew(ctx, r, f.ask)
		if err != nil && !warned && ctx.Err() == nil {
			warned = true
			f.opts.Log.Warn("nod could not be asked", "permission", r.ToolCallID, "error", err)
		}
		return !f.opts.DenyUnavailable && !refused(err), err
	})
	return d, err
}

// ask asks nod. While it waits, Options.Waits contains a record of this process.
func (f *follower) ask(ctx context.Context, r *schemas.Request) (schemas.Decision, error) {
	defer f.opts.Waits.Register(r, func(err error) {
		f.opts.Log.Warn("if this program is killed, a request stays open until its deadline", "request", r.PendingID, "error", err)
	})()
	return f.nod.Ask(ctx, *r)
}

// refused reports whether nod refused the request, so that it would also refuse the same request again.
func refused(err error) bool {
	var own *schemas.Error
	return errors.As(err, &own) && own.Code != schemas.CodeUnavailable && own.Code != schemas.CodeInternal
}

// leave withdraws r. The reason is the cause for which ctx has ended. If r is decided already, the
// decision stays. If OpenCode rejected a call that nod allowed, r's record says that the call never
// ran. If nod is unavailable, r ends at its deadline.
func (f *follower) leave(ctx context.Context, r *schemas.Request) {
	why, end := "the agent no longer waits", f.nod.Withdraw
	if c := context.Cause(ctx); c != nil {
		why = c.Error()
		if errors.Is(c, errRejected) {
			end = f.nod.Abandon
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	if err := end(ctx, r.SessionID, r.PendingID, why); err != nil {
		f.opts.Log.Info("a request could not be withdrawn; its deadline ends it", "request", r.PendingID, "error", err)
	}
}

// answer converts the decision d about r to an answer for OpenCode and a message for the agent. The
// answer is a rejection, unless d allows r without edits.
func answer(r *schemas.Request, d schemas.Decision) (reply, string) {
	heard := agents.DescribeDecision(r, &d)
	switch {
	case !heard.Allowed:
		return reject, heard.Text
	case d.UpdatedInput != nil:
		return reject, "Allowed only with edited input, which this agent cannot run: make the call again with " + string(d.UpdatedInput)
	case d.OptionID == alwaysOption && d.OptionKind == schemas.AllowAlways && d.By.Kind == schemas.ByHuman:
		return always, ""
	}
	return once, ""
}

// reply sends the answer to the permission p to OpenCode. It retries until OpenCode accepts the answer
// or reports a permanent error, or until ctx ends. took reports whether OpenCode has accepted the
// answer. If p already has another answer, took is false and err is nil.
func (f *follower) reply(ctx context.Context, p permission, says reply, message string) (took bool, err error) {
	err = retry(ctx, func() (bool, error) {
		err := f.host.reply(ctx, p, says, message)
		var answered status
		return !errors.As(err, &answered) || !answered.permanent(), err
	})
	var answered status
	if errors.As(err, &answered) && answered == http.StatusNotFound {
		return false, nil // status 404 means that p already has an answer
	}
	return err == nil, err
}
