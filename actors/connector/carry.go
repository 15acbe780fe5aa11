package connector

import (
	"context"
	"errors"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// carry is one prompt as a job.
type carry struct {
	*Worker
	delivery *bus.Delivery
	prompt   schemas.Prompt
}

func (c carry) Run(ctx context.Context) {
	defer c.held.Delete(c.delivery)
	ctx, cancel := context.WithTimeout(ctx, carryTimeout)
	defer cancel()
	c.finish(ctx, c.carry(ctx))
}

func (c carry) Failed(any) { c.delivery.Again(retryMax) }

// triedUntil is how long it is tried to show a prompt. An outcome is for as long as
// its question may be on a screen with live buttons, which is as long as the queue
// keeps it.
func triedUntil(p *schemas.Prompt) time.Time {
	if p.Decision != nil {
		return p.Deadline.Add(bus.PromptGrace)
	}
	return p.Deadline
}

// finish acknowledges, or has it tried again for as long as that is of use, and says
// so when it gives up.
func (c carry) finish(ctx context.Context, err error) {
	if err == nil {
		c.delivery.Done()
		return
	}
	var e *people.Error
	known := errors.As(err, &e)
	state := schemas.DeliveryFailed
	wait := backoff(err, c.delivery.Times)
	switch {
	case known && e.Unreachable:
		state = schemas.DeliveryUnreachable
	case known && e.Permanent:
	case time.Now().Add(wait).Before(triedUntil(&c.prompt)):
		c.log.Info("connector: a prompt is tried again", "key", c.prompt.Key(), "times", c.delivery.Times, "after", wait, "error", err)
		c.delivery.Again(wait)
		return
	}
	if c.prompt.Decision != nil { // the question was shown; only its outcome is not
		c.log.Warn("connector: an outcome was not shown", "key", c.prompt.Key(), "error", err)
		c.delivery.Done()
		return
	}
	if err := c.desk.delivered(ctx, &c.prompt, state, err.Error()); err != nil {
		c.delivery.Again(wait)
		return
	}
	c.delivery.Done()
}

// carry shows or settles, unless what is shown is as new already.
func (c carry) carry(ctx context.Context) error {
	shown, err := c.desk.shownTo(ctx, &c.prompt)
	if err != nil {
		return err
	}
	// What is settled stays as it is, but for a call that ended otherwise than decided.
	if shown.Revision >= c.prompt.Revision || shown.Settled && len(c.prompt.Aftermath) == 0 {
		return nil
	}
	if c.prompt.Decision != nil {
		return c.settle(ctx, shown, &c.prompt)
	}
	if shown.Ref == "" && shown.Revision == 0 {
		return c.show(ctx, shown)
	}
	return c.revise(ctx, shown)
}

// show sends first and writes then: writing first would lose the prompt that a
// crash keeps from being sent.
func (c carry) show(ctx context.Context, shown schemas.Shown) error {
	ref, err := c.carrier.Prompt(ctx, c.prompt)
	if err != nil {
		return err
	}
	shown.Ref = string(ref)
	now, _, err := c.note(ctx, shown)
	if err != nil || now.Decision != nil {
		return err
	}
	return c.desk.delivered(ctx, &c.prompt, schemas.DeliveryShown, "")
}

// revise has what is shown say what has changed of an open request, where the
// channel can. The question is there: that it was not changed is no failure of
// its delivery.
func (c carry) revise(ctx context.Context, shown schemas.Shown) error {
	revise := func(schemas.Prompt) error { return nil }
	if r, can := c.carrier.(people.Reviser); can && shown.Ref != "" {
		revise = func(p schemas.Prompt) error {
			err := r.Revise(ctx, people.Ref(shown.Ref), p)
			if e := (*people.Error)(nil); errors.As(err, &e) && (e.Permanent || e.Unreachable) {
				c.log.Info("connector: a change was not shown", "key", p.Key(), "error", err)
				return nil
			}
			return err
		}
	}
	if err := revise(c.prompt); err != nil {
		return err
	}
	now, lost, err := c.note(ctx, shown)
	if err != nil || !lost || now.Decision != nil {
		return err
	}
	return revise(now) // another has shown what is newer, perhaps before this
}

// note writes what the prompt's message shows, and looks once more. A message
// that loses the write, or whose request has ended meanwhile, is settled, so that
// no button is left live.
func (c carry) note(ctx context.Context, shown schemas.Shown) (now schemas.Prompt, lost bool, err error) {
	shown.Revision = c.prompt.Revision
	written, err := c.desk.setShown(ctx, shown)
	lost = errors.Is(err, &schemas.Error{Code: schemas.CodeConflict})
	if err != nil && !lost {
		return now, lost, err
	}
	now, _, err = c.desk.Show(ctx, c.prompt.SessionID, c.prompt.PendingID)
	now.Connector, now.Recipient = c.prompt.Connector, c.prompt.Recipient
	switch {
	case err != nil || now.Decision == nil:
	case lost: // another has settled what is written; this message is only known here
		err = c.carrier.Settle(ctx, people.Ref(shown.Ref), now)
	default:
		err = c.settle(ctx, written, &now)
	}
	return now, lost, err
}

// settle replaces what is shown by the outcome, and notes it even where
// nothing is shown yet: the prompt that is still on its way finds it.
func (c carry) settle(ctx context.Context, shown schemas.Shown, p *schemas.Prompt) error {
	if shown.Ref != "" {
		if err := c.carrier.Settle(ctx, people.Ref(shown.Ref), *p); err != nil {
			return err
		}
	}
	shown.Settled, shown.Revision = true, p.Revision
	_, err := c.desk.setShown(ctx, shown)
	return err
}
