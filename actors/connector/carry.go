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
	// carryTimeout is the limit of one attempt to show one prompt or outcome. No second
	// worker starts meanwhile: the claim is renewed until the channel has replied.
	carryTimeout = 25 * time.Second
	// channelTimeout is the part of carryTimeout in which the channel must reply; the rest
	// is for storing the result.
	channelTimeout = 20 * time.Second
	// claimedMin and claimedMax are the shortest and the longest pause before another
	// try, if another worker has claimed the prompt.
	claimedMin = 100 * time.Millisecond
	claimedMax = 5 * time.Second
)

// errClaimed means that another worker is showing the prompt.
var errClaimed = errors.New("another worker has claimed it")

// showAttempt is one attempt to show one prompt, or its outcome.
//
// Before it sends anything, the worker claims the prompt's entry in the bucket shown_prompts,
// and renews the claim until the channel replies. A second worker sends nothing while the
// claim lasts. If the worker dies while it sends, or never gets the channel's reply, a message
// may exist that no worker can edit. A later attempt then sends a second message. Every
// version of the second message says that the prompt may have been sent before (Repeat).
type showAttempt struct {
	*Worker
	prompt schemas.Prompt
	try    string // the attempt's id, which is also stored in its claim
}

func (w *Worker) newAttempt(p schemas.Prompt) showAttempt { return showAttempt{w, p, bus.NewID()} }

// promptJob shows a prompt from the queue.
type promptJob struct {
	showAttempt
	delivery *bus.Delivery
}

func (q promptJob) Run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, carryTimeout)
	defer cancel()
	q.finish(ctx, q.deliver(ctx))
}

func (q promptJob) Failed(any) { q.delivery.Again(retryMin) }

// retryUntil returns the time after which a worker no longer tries to show a prompt: the
// prompt's deadline. A worker tries to show an outcome for as long as the queue keeps the
// outcome, because the question may still be shown with live buttons.
func retryUntil(p *schemas.Prompt) time.Time {
	if p.Decision != nil {
		return p.Deadline.Add(bus.PromptGrace)
	}
	return p.Deadline
}

// finish acknowledges the delivery after a success. After a failure it requests another
// delivery, until the time that retryUntil returns; then it gives up and reports the failure.
func (q promptJob) finish(ctx context.Context, err error) {
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
	case time.Now().Add(wait).Before(retryUntil(&q.prompt)):
		if !claimed {
			q.log.Info("connector: a prompt was not shown; trying again", "key", q.prompt.Key(), "times", q.delivery.Times, "after", wait, "error", err)
		}
		q.delivery.Again(wait)
		return
	}
	if q.prompt.Decision != nil { // a failed outcome is not reported: only a question can be undeliverable
		q.log.Warn("connector: an outcome was not shown", "key", q.prompt.Key(), "error", err)
		q.delivery.Done()
		return
	}
	if claimed { // the other worker reports the result
		q.delivery.Done()
		return
	}
	if err := q.desk.delivered(ctx, &q.prompt, state, err.Error()); err != nil {
		q.delivery.Again(wait)
		return
	}
	q.delivery.Done()
}

// deliver shows this version of the prompt, or its outcome, unless it is already shown. The
// error is errClaimed if another worker is just showing the prompt.
func (c showAttempt) deliver(ctx context.Context) error {
	shown, err := c.desk.claim(ctx, &c.prompt, c.id, c.try)
	switch {
	case err != nil:
		return err
	case shown.Claim == nil: // this version is already shown, or the request ended before it was shown
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

func (c showAttempt) show(ctx context.Context, shown schemas.Shown) error {
	shown, err := c.send(ctx, shown)
	if err != nil {
		return err
	}
	ctx = c.recording // This context outlives the attempt: if the handle is not stored, no worker can edit the message.
	lost, err := c.record(ctx, shown)
	if err == nil && lost {
		err = c.addMessage(ctx, shown.Ref)
	}
	if err != nil {
		return err
	}
	return c.desk.delivered(ctx, &c.prompt, schemas.DeliveryShown, "")
}

// send shows the prompt, or its outcome, in a new message. If the channel reports that it
// sent nothing, send releases the claim. After any other failure a message may exist: the
// claim stays until it expires, and the next message is marked as a repeat.
func (c showAttempt) send(ctx context.Context, shown schemas.Shown) (schemas.Shown, error) {
	hop, cancel := context.WithTimeout(ctx, channelTimeout)
	defer cancel()
	p := c.prompt
	p.Repeat = shown.Repeat
	var ref people.Ref
	var err error
	c.keepClaim(ctx, func() { ref, err = c.carrier.Prompt(hop, p) })
	var e *people.Error
	if errors.As(err, &e) && (e.After > 0 || e.Permanent || e.Unreachable) {
		c.releaseClaim(ctx, shown)
	}
	shown.Ref = string(ref)
	return shown, err
}

// keepClaim runs call, and renews the claim until call returns. A renewal never brings back a
// claim that has ended; endClaim then reports that the claim is lost.
func (c showAttempt) keepClaim(ctx context.Context, call func()) {
	ctx, cancel := context.WithCancel(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		tick := time.NewTicker(c.renewClaimEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			hop, cancel := context.WithTimeout(ctx, c.renewClaimEvery)
			if err := c.desk.renewClaim(hop, &c.prompt, c.id, c.try); err != nil && ctx.Err() == nil {
				c.log.Info("connector: a claim was not renewed; trying again", "key", c.prompt.Key(), "error", err)
			}
			cancel()
		}
	}()
	call()
	cancel()
	<-renewed
}

// edit calls change for each message of the prompt that has a handle, and returns all
// errors: after one failure it continues with the next message.
func (c showAttempt) edit(ctx context.Context, shown schemas.Shown, p schemas.Prompt, change func(context.Context, people.Ref, schemas.Prompt) error) error {
	hop, cancel := context.WithTimeout(ctx, channelTimeout)
	defer cancel()
	p.Repeat = shown.Repeat || len(shown.Also) > 0
	var errs []error
	c.keepClaim(ctx, func() {
		for _, ref := range append([]string{shown.Ref}, shown.Also...) {
			if ref != "" { // without a handle a message cannot be changed
				errs = append(errs, change(hop, people.Ref(ref), p))
			}
		}
	})
	return errors.Join(errs...)
}

// showOutcome changes the shown messages to the outcome. If no message has a handle, it
// sends the outcome in a new message.
func (c showAttempt) showOutcome(ctx context.Context, shown schemas.Shown) error {
	var err error
	if shown.Ref == "" && len(shown.Also) == 0 {
		if shown, err = c.send(ctx, shown); err != nil {
			return err
		}
	} else if err = c.edit(ctx, shown, c.prompt, c.carrier.Settle); err != nil && !isPermanent(err) {
		c.releaseClaim(ctx, shown)
		return err
	}
	shown.Settled = true
	_, notStored := c.record(ctx, shown) // a lost claim does no harm: the other worker shows the outcome as well
	return errors.Join(err, notStored)
}

// isPermanent reports whether the channel has refused a message for good, so that a retry
// cannot help.
func isPermanent(err error) bool {
	var e *people.Error
	return errors.As(err, &e) && (e.Permanent || e.Unreachable)
}

// revise updates the shown messages of a pending request, if the carrier is a Reviser. The
// question stays visible, so a change that the channel refuses is not a failed delivery.
func (c showAttempt) revise(ctx context.Context, shown schemas.Shown) error {
	if err := c.change(ctx, shown, c.prompt); err != nil {
		c.releaseClaim(ctx, shown)
		return err
	}
	// Another worker may have shown the outcome before this change arrived; the change has
	// then put the buttons back. Only this worker knows of its change, so this worker checks
	// the entry even if the attempt's time is up.
	ctx = c.recording
	lost, err := c.record(ctx, shown)
	if err != nil || !lost {
		return err
	}
	now, err := c.newest(ctx) // another worker may have shown a newer version, which this change has overwritten
	switch {
	case err != nil:
		return err
	case now.Decision != nil:
		return c.edit(ctx, shown, now, c.carrier.Settle)
	}
	return c.change(ctx, shown, now)
}

func (c showAttempt) change(ctx context.Context, shown schemas.Shown, p schemas.Prompt) error {
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

// newest returns the current version of the request, as a prompt for the same recipient.
func (c showAttempt) newest(ctx context.Context) (schemas.Prompt, error) {
	now, _, err := c.desk.Show(ctx, c.prompt.SessionID, c.prompt.PendingID)
	now.Connector, now.Recipient = c.prompt.Connector, c.prompt.Recipient
	return now, err
}

// record stores that this version of the prompt is shown, and ends the claim. lost means
// that the claim had expired and another worker has taken over; nothing is stored then.
func (c showAttempt) record(ctx context.Context, shown schemas.Shown) (lost bool, err error) {
	shown.Revision = c.prompt.Revision
	return c.endClaim(ctx, shown)
}

// releaseClaim ends the claim after an attempt that sent no message, so that the next
// attempt need not wait for its expiry. If that cannot be stored, the claim expires.
func (c showAttempt) releaseClaim(ctx context.Context, shown schemas.Shown) {
	if _, err := c.endClaim(ctx, shown); err != nil {
		c.log.Info("connector: a claim was not released; it expires", "key", c.prompt.Key(), "error", err)
	}
}

// endClaim writes the entry without a claim. lost means that the claim had expired: the
// stored entry is another worker's, and stays unchanged.
func (c showAttempt) endClaim(ctx context.Context, shown schemas.Shown) (lost bool, err error) {
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
		shown.Entry, shown.Also = now.Entry, now.Also // the entry has changed because the claim was renewed, or because another worker's message was added
	}
}

// addMessage adds to the entry a message that this worker sent although another worker had
// taken over the claim, so that the outcome is shown in that message too. If the outcome is
// already shown, addMessage changes the message to the outcome at once.
func (c showAttempt) addMessage(ctx context.Context, ref string) error {
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
