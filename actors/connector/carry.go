package connector

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// carryTimeout bounds one try to show or settle one prompt. No second worker starts
	// meanwhile: the claim is renewed until the channel has answered.
	carryTimeout = 25 * time.Second
	// channelTimeout is the channel's share of it: the rest is for noting what it did.
	channelTimeout = 20 * time.Second
	// claimedMin and claimedMax are the pauses until a prompt is looked at again that
	// another worker is about to show.
	claimedMin = 100 * time.Millisecond
	claimedMax = 5 * time.Second
)

// errClaimed: another worker is about to show it.
var errClaimed = errors.New("another worker has claimed it")

// carry is one try to show one prompt, or its outcome.
//
// Before anything is sent the worker claims the entry that says where the prompt is
// shown, and renews the claim for as long as the channel takes. A second worker sends
// nothing while the claim lasts. If a worker does not come back from sending, because it died or was never told how that ended, there may
// be a message that nobody can edit: the next one says so (Repeat), and so does every
// change of it.
type carry struct {
	*Worker
	prompt schemas.Prompt
	try    string
}

func (w *Worker) carry(p schemas.Prompt) carry { return carry{w, p, bus.NewID()} }

// queued is a prompt of the queue as a job.
type queued struct {
	carry
	delivery *bus.Delivery
}

func (q queued) Run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, carryTimeout)
	defer cancel()
	q.finish(ctx, q.carry.carry(ctx))
}

func (q queued) Failed(any) { q.delivery.Again(retryMin) }

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
func (q queued) finish(ctx context.Context, err error) {
	if err == nil {
		q.delivery.Done()
		return
	}
	var e *people.Error
	known, claimed := errors.As(err, &e), errors.Is(err, errClaimed)
	state := schemas.DeliveryFailed
	wait := backoff(err, q.delivery.Times)
	if claimed {
		wait = min(claimedMin<<min(q.delivery.Times-1, 10), claimedMax)
	}
	switch {
	case known && e.Unreachable:
		state = schemas.DeliveryUnreachable
	case known && e.Permanent:
	case time.Now().Add(wait).Before(triedUntil(&q.prompt)):
		if !claimed {
			q.log.Info("connector: a prompt is tried again", "key", q.prompt.Key(), "times", q.delivery.Times, "after", wait, "error", err)
		}
		q.delivery.Again(wait)
		return
	}
	if q.prompt.Decision != nil { // the question was shown; only its outcome is not
		q.log.Warn("connector: an outcome was not shown", "key", q.prompt.Key(), "error", err)
		q.delivery.Done()
		return
	}
	if claimed { // the other worker says how it fared
		q.delivery.Done()
		return
	}
	if err := q.desk.delivered(ctx, &q.prompt, state, err.Error()); err != nil {
		q.delivery.Again(wait)
		return
	}
	q.delivery.Done()
}

// carry shows, changes or settles, unless what is shown is as new already.
func (c carry) carry(ctx context.Context) error {
	shown, err := c.desk.claim(ctx, &c.prompt, c.id, c.try)
	switch {
	case err != nil:
		return err
	case shown.Claim == nil: // it is as new already, or there is nothing to show any more
		return nil
	case shown.Claim.Try != c.try:
		return errClaimed
	case c.prompt.Decision != nil:
		return c.showOutcome(ctx, shown)
	case shown.Revision == 0:
		return c.show(ctx, shown)
	}
	return c.revise(ctx, shown)
}

func (c carry) show(ctx context.Context, shown schemas.Shown) error {
	shown, err := c.send(ctx, shown)
	if err != nil {
		return err
	}
	ctx = c.recording // a message whose Ref is not stored can be edited by no worker
	lost, err := c.record(ctx, shown)
	if err == nil && lost {
		err = c.addMessage(ctx, shown.Ref)
	}
	if err != nil {
		return err
	}
	return c.desk.delivered(ctx, &c.prompt, schemas.DeliveryShown, "")
}

// send shows the prompt, or how it ended, in a new message. The claim is given back
// if the channel has said that there is none: otherwise it stays, and the next message
// is a repeat.
func (c carry) send(ctx context.Context, shown schemas.Shown) (schemas.Shown, error) {
	hop, cancel := context.WithTimeout(ctx, channelTimeout)
	defer cancel()
	p := c.prompt
	p.Repeat = shown.Repeat
	var ref people.Ref
	var err error
	c.keepClaim(ctx, func() { ref, err = c.carrier.Prompt(hop, p) })
	var e *people.Error
	if errors.As(err, &e) && (e.After > 0 || e.Permanent || e.Unreachable) {
		c.giveBack(ctx, shown)
	}
	shown.Ref = string(ref)
	return shown, err
}

// keepClaim renews the claim until call returns. A claim that another worker has taken
// over meanwhile stays that worker's: endClaim reports it.
func (c carry) keepClaim(ctx context.Context, call func()) {
	ctx, cancel := context.WithCancel(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		tick := time.NewTicker(c.renewClaim)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// Not under ctx: a renewal that arrived after the claim was given back would
			// take it again.
			hop, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.renewClaim)
			if _, err := c.desk.claim(hop, &c.prompt, c.id, c.try); err != nil {
				c.log.Info("connector: a claim was not renewed; it is tried again", "key", c.prompt.Key(), "error", err)
			}
			cancel()
		}
	}()
	call()
	cancel()
	<-renewed
}

// edit has each known message changed, all of them whatever becomes of the others.
func (c carry) edit(ctx context.Context, shown schemas.Shown, p schemas.Prompt, change func(context.Context, people.Ref, schemas.Prompt) error) error {
	hop, cancel := context.WithTimeout(ctx, channelTimeout)
	defer cancel()
	p.Repeat = shown.Repeat || len(shown.Also) > 0
	var errs []error
	c.keepClaim(ctx, func() {
		for _, ref := range append([]string{shown.Ref}, shown.Also...) {
			if ref != "" { // the channel has a handle
				errs = append(errs, change(hop, people.Ref(ref), p))
			}
		}
	})
	return errors.Join(errs...)
}

// showOutcome replaces what is shown by the outcome. What nobody can edit is followed by a
// message that says how it ended.
func (c carry) showOutcome(ctx context.Context, shown schemas.Shown) error {
	var err error
	if shown.Revision == 0 && len(shown.Also) == 0 {
		if shown, err = c.send(ctx, shown); err != nil {
			return err
		}
	} else if err = c.edit(ctx, shown, c.prompt, c.carrier.Settle); err != nil && !isPermanent(err) {
		c.giveBack(ctx, shown)
		return err
	}
	shown.Settled = true
	_, noted := c.record(ctx, shown) // a worker that has taken over settles as well
	return errors.Join(err, noted)
}

// isPermanent reports whether the channel has refused a message for good.
func isPermanent(err error) bool {
	var e *people.Error
	return errors.As(err, &e) && (e.Permanent || e.Unreachable)
}

// revise has what is shown say what has changed of an open request, if the channel
// can. The question is there: that it was not changed is no failure of its delivery.
func (c carry) revise(ctx context.Context, shown schemas.Shown) error {
	if err := c.change(ctx, shown, c.prompt); err != nil {
		c.giveBack(ctx, shown)
		return err
	}
	// Another worker may have shown the outcome before this change arrived. Only this
	// worker can tell, so it tries until it stops.
	ctx = c.recording
	lost, err := c.record(ctx, shown)
	if err != nil || !lost {
		return err
	}
	now, err := c.newest(ctx) // another has shown what is newer, perhaps before this
	switch {
	case err != nil:
		return err
	case now.Decision != nil:
		return c.edit(ctx, shown, now, c.carrier.Settle)
	}
	return c.change(ctx, shown, now)
}

func (c carry) change(ctx context.Context, shown schemas.Shown, p schemas.Prompt) error {
	r, can := c.carrier.(people.Reviser)
	if !can {
		return nil
	}
	err := c.edit(ctx, shown, p, r.Revise)
	if isPermanent(err) {
		c.log.Info("connector: a change was not shown", "key", p.Key(), "error", err)
		return nil
	}
	return err
}

// newest is the request as it stands now.
func (c carry) newest(ctx context.Context) (schemas.Prompt, error) {
	now, _, err := c.desk.Show(ctx, c.prompt.SessionID, c.prompt.PendingID)
	now.Connector, now.Recipient = c.prompt.Connector, c.prompt.Recipient
	return now, err
}

// record writes that the prompt's version is shown, which ends the claim. lost: the
// claim had ended before, and another worker has taken over.
func (c carry) record(ctx context.Context, shown schemas.Shown) (lost bool, err error) {
	shown.Revision = c.prompt.Revision
	return c.endClaim(ctx, shown)
}

// giveBack ends the claim: nothing was sent. If that cannot be stored, the claim ends
// by itself.
func (c carry) giveBack(ctx context.Context, shown schemas.Shown) {
	if _, err := c.endClaim(ctx, shown); err != nil {
		c.log.Info("connector: a claim was not given back", "key", c.prompt.Key(), "error", err)
	}
}

// endClaim writes the entry without a claim. lost: the claim had ended before, and
// another worker's entry stands.
func (c carry) endClaim(ctx context.Context, shown schemas.Shown) (lost bool, err error) {
	shown.Claim = nil
	for {
		_, err := c.desk.setShown(ctx, shown)
		if !errors.Is(err, &schemas.Error{Code: schemas.CodeConflict}) {
			return false, err
		}
		now, err := c.desk.shownTo(ctx, &c.prompt)
		if err != nil {
			return false, err
		}
		if now.Claim == nil || now.Claim.Try != c.try {
			return true, nil
		}
		shown.Entry, shown.Also = now.Entry, now.Also // the claim was renewed, or a late message added
	}
}

// addMessage notes a message that was sent so late that another worker has taken over:
// whoever settles the request finds it. If it is settled already, this one is now.
func (c carry) addMessage(ctx context.Context, ref string) error {
	for {
		now, err := c.desk.shownTo(ctx, &c.prompt)
		if err != nil || ref == "" || now.Ref == ref || slices.Contains(now.Also, ref) {
			return err
		}
		if now.Settled {
			ended, err := c.newest(ctx)
			if err != nil || ended.Decision == nil {
				return err
			}
			return c.edit(ctx, schemas.Shown{Ref: ref, Repeat: true}, ended, c.carrier.Settle)
		}
		now.Also = append(now.Also, ref)
		_, err = c.desk.setShown(ctx, now)
		if !errors.Is(err, &schemas.Error{Code: schemas.CodeConflict}) {
			return err
		}
	}
}
