package connector

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// carryTimeout is the time limit for one attempt to show a prompt or an outcome. No other worker
	// starts an attempt at the same prompt during this time, because the worker renews its claim until
	// the channel replies.
	carryTimeout = 25 * time.Second
	// channelTimeout is the time within which the channel must reply. The rest of carryTimeout is
	// for storing the result.
	channelTimeout = 20 * time.Second
	// claimedMin and claimedMax are the shortest and the longest pause before the next attempt if
	// another worker has claimed the prompt.
	claimedMin = 100 * time.Millisecond
	claimedMax = 5 * time.Second
)

// errClaimed means that another worker is showing the prompt.
var errClaimed = errors.New("another worker has claimed it")

// showAttempt is one attempt to show one prompt or one outcome.
//
// Before the attempt sends a message, the worker claims the prompt's entry in the bucket shown_prompts.
// The worker renews the claim until the channel replies. During a claim, no other worker sends a message.
//
// If the worker dies while it calls the channel, the channel may have a message whose handle is not
// stored. No worker can edit such a message. The next attempt sends a second message, marked with
// Repeat. On a channel that can edit messages, the first message has no buttons, because
// showInSteps stores the handle before it adds the buttons.
type showAttempt struct {
	*Worker
	prompt schemas.Prompt
	try    string            // the id of this attempt, which the attempt's claim contains
	trace  trace.SpanContext // the request's own span; invalid if the request is not traced
}

func (w *Worker) newAttempt(p schemas.Prompt) showAttempt {
	return showAttempt{Worker: w, prompt: p, try: bus.NewID()}
}

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

// retryUntil returns the time until which the worker tries to show a prompt. For a question, this
// time is the question's deadline. For an outcome, it is the time until which the queue keeps the
// outcome. The worker tries for so long because a message with live buttons may still show the
// question.
func retryUntil(p *schemas.Prompt) time.Time {
	if p.Decision != nil {
		return p.Deadline.Add(bus.PromptGrace)
	}
	return p.Deadline
}

// finish acknowledges a delivery after a success. After a failure it requests another delivery. If
// the time for attempts is over, it reports the failure.
func (q promptJob) finish(ctx context.Context, err error) {
	if err == nil {
		q.delivery.Done()
		return
	}
	var e *people.Error
	known, claimed := errors.As(err, &e), errors.Is(err, errClaimed)
	state := schemas.DeliveryFailed
	wait := backoff(err, q.delivery.Times)
	wait += jitter(wait)
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
	if q.prompt.Decision != nil { // a failure to show an outcome is only logged, and not reported as undeliverable
		q.log.Warn("connector: an outcome was not shown", "key", q.prompt.Key(), "error", err)
		q.delivery.Done()
		return
	}
	if claimed { // the worker that has the claim reports the result instead
		q.delivery.Done()
		return
	}
	if err := q.desk.delivered(ctx, &q.prompt, state, err.Error()); err != nil {
		q.delivery.Again(wait)
		return
	}
	q.delivery.Done()
}

// deliver shows this version of a prompt or outcome, unless a message already shows the version.
// The error is errClaimed if another worker is showing the prompt.
func (c showAttempt) deliver(ctx context.Context) error {
	began := time.Now()
	shown, err := c.desk.claim(ctx, &c.prompt, c.id, c.try)
	switch {
	case err != nil:
		return err
	case shown.Claim == nil: // a message already shows this version, or the request ended before a worker showed it
		return nil
	case shown.Claim.Try != c.try:
		return errClaimed
	}
	err = c.show(ctx, shown)
	c.traceShow(began, err)
	return err
}

// show shows the prompt or its outcome while the attempt has the claim. The parameter shown is the
// entry with the claim.
func (c showAttempt) show(ctx context.Context, shown schemas.Shown) error {
	switch {
	case c.prompt.Decision != nil:
		return c.showOutcome(ctx, shown)
	case shown.Revision > 0:
		return c.revise(ctx, shown)
	}
	if r, can := c.carrier.(people.Reviser); can {
		return c.showInSteps(ctx, shown, r)
	}
	return c.showAtOnce(ctx, shown)
}
