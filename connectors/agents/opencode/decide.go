package opencode

import (
	"context"
	"errors"
	"net/http"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// settle asks nod about p and replies what was decided. It returns when p is
// settled, here or in OpenCode; on an error OpenCode's own prompt stays.
func (f *follower) askAndReply(ctx context.Context, p permission) error {
	r, over, err := f.readRequest(ctx, p)
	if err != nil || over {
		return err
	}
	d, err := f.decide(ctx, r)
	if ctx.Err() != nil && err != nil {
		f.withdraw(ctx, r)
		return nil
	}
	switch {
	case err == nil:
		says, message := answer(r, d)
		return f.reply(ctx, p, says, message)
	case refused(err): // and nothing is left of it there
		return f.reply(ctx, p, reject, "nod refused the call: "+err.Error())
	}
	f.withdraw(ctx, r)
	return f.reply(ctx, p, reject, "nod cannot be reached, and calls are refused without it: "+err.Error())
}

// read makes nod's request of p. It goes on trying for as long as OpenCode does
// not say that there is nothing to read.
func (f *follower) readRequest(ctx context.Context, p permission) (r *schemas.Request, over bool, err error) {
	var c call
	var own, root session
	err = retry(ctx, func() (bool, error) {
		var err error
		if c, err = f.host.call(ctx, p); err == nil {
			own, root, err = f.host.sessions(ctx, p.SessionID)
		}
		var answered status
		return !errors.As(err, &answered) || !answered.permanent(), err
	})
	if err != nil || c.over() {
		return r, true, err
	}
	r, err = f.request(p, c, own, root)
	return r, false, err
}

// decide waits for nod's decision. Where nod cannot be reached it goes on trying,
// unless calls are to be refused then.
func (f *follower) decide(ctx context.Context, r *schemas.Request) (d schemas.Decision, err error) {
	warned := false
	err = retry(ctx, func() (bool, error) {
		d, err = f.nod.Ask(ctx, *r)
		if err == nil && d.Outcome == schemas.Withdrawn && ctx.Err() == nil {
			// An earlier nod opencode took it back when it stopped; OpenCode still asks.
			r.PendingID, r.Rejoin = agents.NewID(), false
			d, err = f.nod.Ask(ctx, *r)
		}
		if err != nil && !warned && ctx.Err() == nil {
			warned = true
			f.opts.Log.Warn("nod could not be asked", "permission", r.ToolCallID, "error", err)
		}
		return !f.opts.DenyUnavailable && !refused(err), err
	})
	return d, err
}

// refused reports whether nod was there and would not take the request.
func refused(err error) bool {
	var own *schemas.Error
	return errors.As(err, &own) && own.Code != schemas.CodeUnavailable && own.Code != schemas.CodeInternal
}

// withdraw takes r back. Where it was decided first nothing changes, and where
// nod is not there its deadline ends it.
func (f *follower) withdraw(ctx context.Context, r *schemas.Request) {
	why := "OpenCode no longer waits"
	if c := context.Cause(ctx); c != nil {
		why = c.Error()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawWithin)
	defer cancel()
	if err := f.nod.Withdraw(ctx, r.SessionID, r.PendingID, why); err != nil {
		f.opts.Log.Info("a request could not be withdrawn; its deadline ends it", "request", r.PendingID, "error", err)
	}
}

// answer is what a decision is in OpenCode's words. Only what allows r as it is
// becomes anything but a rejection.
func answer(r *schemas.Request, d schemas.Decision) (reply, string) {
	heard := agents.DescribeDecision(r, &d)
	switch {
	case !heard.Allowed:
		return reject, heard.Text
	case d.UpdatedInput != nil:
		return reject, "Allowed with an edited input, which OpenCode cannot run: make the call with that input. " + string(d.UpdatedInput)
	case d.OptionID == alwaysOption && d.OptionKind == schemas.AllowAlways && d.By.Kind == schemas.ByHuman:
		return always, ""
	}
	return once, ""
}

// reply tells OpenCode, until it has taken it or p is over.
func (f *follower) reply(ctx context.Context, p permission, says reply, message string) error {
	err := retry(ctx, func() (bool, error) {
		err := f.host.reply(ctx, p, says, message)
		var answered status
		return !errors.As(err, &answered) || !answered.permanent(), err
	})
	var answered status
	if errors.As(err, &answered) && answered == http.StatusNotFound {
		return nil // somebody was faster
	}
	return err
}
