package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// maxEndMessage bounds, in bytes, the stored reason for the end of a single waiter.
const maxEndMessage = 256

func everyWaiter(*schemas.Waiter) bool { return true }

func waiterOfID(pendingID string) func(*schemas.Waiter) bool {
	return func(w *schemas.Waiter) bool { return w.PendingID == pendingID }
}

// countedWaiters selects the waiters whose calls an answered prompt showed and whose deadlines have not
// passed. places is the number of calls that the prompt showed.
func countedWaiters(places int, now time.Time) func(*schemas.Waiter) bool {
	return func(w *schemas.Waiter) bool { return w.Place < max(places, 1) && now.Before(w.Deadline) }
}

// decide ends a question with the decision d for each open waiter that the function about accepts.
// Every other open waiter becomes a question of its own. If several decisions come at the same time,
// only one is stored, with its effects, and every caller gets that decision. decide writes nothing if
// about accepts no open waiter, or if it rejects the request that opened the question while that
// request is open.
func (e *recordLife) decide(ctx context.Context, entry bus.Entry, d *schemas.Decision, about func(*schemas.Waiter) bool) (bus.Entry, error) {
	observed, end := e.traceDecide(ctx, &entry.Record, d)
	entry, stored, err := e.change(observed, entry, func(next *bus.Entry) (write, error) {
		if next.Record.Terminal() {
			return nil, nil
		}
		return e.decideNow(next, d, about)
	})
	if end != nil {
		end(stored, err)
	}
	if err != nil || !entry.Record.Terminal() {
		return entry, err
	}
	return entry, e.holdings.applyEffects(ctx, entry)
}

// decideNow adds the decision to next, which is one version of the question, and returns the write.
func (e *recordLife) decideNow(next *bus.Entry, d *schemas.Decision, about func(*schemas.Waiter) bool) (write, error) {
	rec := &next.Record
	if err := refuseLater(next, d); err != nil {
		return nil, err
	}
	ended, detached := 0, 0
	for i := range rec.Waiters {
		switch w := &rec.Waiters[i]; {
		case !w.Open():
		case !about(w) && w.PendingID == ownID(next): // the request that opened the question cannot move to another question
			return nil, nil
		case !about(w):
			w.SplitOff = true
		default:
			if ended++; w.Detached {
				detached++
			}
		}
	}
	if ended == 0 {
		return nil, nil
	}
	if edited(rec, d) && ended == detached {
		return nil, schemas.Errorf(schemas.CodeValidation, "updated_input: the agent no longer waits for this call, so it can only be allowed unchanged")
	}
	rec.NextEvent = unreachedEvent(rec)
	var err error
	rec.Decision, err = withStandingAnswer(next, d)
	keepRun(next)
	return e.store.Records.Decide, err
}

// endSome gives the decision d to each waiter that the function about accepts. All other waiters stay.
// The question ends if no open waiter is left. The pending_id in d must name the request that opened
// the question.
func (e *recordLife) endSome(ctx context.Context, entry bus.Entry, d *schemas.Decision, about func(*schemas.Waiter) bool) (bus.Entry, error) {
	last := false
	entry, _, err := e.change(ctx, entry, func(next *bus.Entry) (write, error) {
		rec := &next.Record
		if rec.Terminal() {
			last = false
			return nil, nil
		}
		changed := false
		for i := range rec.Waiters {
			if w := &rec.Waiters[i]; w.Open() && about(w) {
				own := *d
				own.PendingID, own.Digest, own.Message = w.PendingID, w.Digest, cutBytes(d.Message, maxEndMessage)
				w.Decision, changed = &own, true
			}
		}
		_, open := rec.Waiting()
		if last = open == 0; last || !changed {
			return nil, nil
		}
		extendDeadline(rec)
		return e.store.Records.Update, nil
	})
	switch {
	case err != nil:
		return entry, err
	case last:
		return e.decide(ctx, entry, d, about)
	case entry.Record.Terminal():
		return entry, e.holdings.applyEffects(ctx, entry)
	}
	return entry, nil
}

// expire ends those waiters of a question whose deadlines have passed at the given time of the broker.
// If other waiters stay, expire sets the timer for the next event.
func (e *recordLife) expire(ctx context.Context, entry bus.Entry, at time.Time) (bus.Entry, error) {
	d, err := e.timeoutDecision(&entry.Record, at)
	if err != nil {
		return entry, err
	}
	due := func(w *schemas.Waiter) bool { return !w.Deadline.After(at) }
	ended, err := e.endSome(ctx, entry, d, due)
	if err != nil || ended.Record.Terminal() {
		return ended, err
	}
	if ended.Record.NextEvent.Kind == schemas.EventDeadline {
		return ended, e.step(ctx, ended, deadlineOf(&ended.Record))
	}
	return ended, e.rearm(ctx, ended)
}

// endOverdue ends those waiters of a pending question whose deadlines have passed at the given time of
// the broker. If this ends the question, endOverdue publishes the decision. It returns the newest
// record.
func (e *recordLife) endOverdue(ctx context.Context, entry bus.Entry, now time.Time) (bus.Entry, error) {
	overdue := func(w schemas.Waiter) bool { return w.Open() && !w.Deadline.After(now) }
	for !entry.Record.Terminal() && entry.Record.Joined == "" && slices.ContainsFunc(entry.Record.Waiters, overdue) {
		ended, err := e.expire(ctx, entry, now)
		if err == nil && ended.Record.Terminal() {
			e.publish(ended)
			return ended, nil
		}
		if err != nil && !errors.Is(err, errRearmed) && !errors.Is(err, bus.ErrMoved) {
			return entry, err
		}
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil {
			return entry, err
		}
	}
	return entry, nil
}

// setDetached stores whether the agent of a pending call has stopped waiting.
func (e *recordLife) setDetached(ctx context.Context, question bus.Entry, pendingID string, detached bool) (bus.Entry, error) {
	return e.update(ctx, question, func(rec *schemas.Record) bool {
		w := rec.Waiter(pendingID)
		if w == nil || !w.Open() || w.Detached == detached {
			return false
		}
		w.Detached = detached
		return true
	})
}

// detachLate handles a report that an agent stopped waiting for a call, if the call is already
// approved. The approval then counts for the agent's next identical call, because the reported call did
// not run.
func (e *recordLife) detachLate(ctx context.Context, question bus.Entry, pendingID string) (bus.Entry, error) {
	question, changed, err := e.change(ctx, question, func(next *bus.Entry) (write, error) {
		rec := &next.Record
		w, d := rec.Waiter(pendingID), rec.Verdict(pendingID)
		if w == nil || w.Detached || d == nil || !allowsOnce(d) || edited(rec, d) {
			return nil, nil
		}
		if late, err := e.clock.late(ctx, w.Deadline); late || err != nil {
			return nil, err
		}
		w.Detached = true
		stored := rec.Decision
		var err error
		if rec.Decision, err = withStandingAnswer(next, d); err != nil {
			return nil, err
		}
		rec.Decision.PendingID, rec.Decision.Digest = stored.PendingID, stored.Digest
		return e.amend(next), nil
	})
	if err != nil || !changed {
		return question, err
	}
	return question, e.holdings.applyEffects(ctx, question)
}

// remainingRetention returns how much longer a decided record is kept, at least a minute. A
// change of the record does not extend this time.
func (e *recordLife) remainingRetention(entry *bus.Entry) time.Duration {
	return max(bus.Retention-e.clock.now().Sub(entry.Record.Decision.DecidedAt), time.Minute)
}

func ownID(entry *bus.Entry) string {
	_, id := schemas.SplitKey(entry.Key)
	return id
}

// allowsOnce reports whether a person has allowed calls without a lasting rule or permission.
func allowsOnce(d *schemas.Decision) bool {
	return d.Outcome == schemas.Allowed && d.By.Kind == schemas.ByHuman && !d.Lasts()
}

// withStandingAnswer returns d. If d is a person's approval of calls whose agents have stopped waiting,
// it adds a standing answer, which allows each of these calls once if its agent asks again before the
// latest deadline of these calls.
func withStandingAnswer(entry *bus.Entry, d *schemas.Decision) (*schemas.Decision, error) {
	if !allowsOnce(d) || edited(&entry.Record, d) {
		return d, nil
	}
	var gone []schemas.Waiter
	for _, w := range entry.Record.Waiters {
		if isDetached(w) {
			gone = append(gone, w)
		}
	}
	if len(gone) == 0 {
		return d, nil
	}
	r, err := requestOf(&entry.Record)
	if err != nil {
		return nil, err
	}
	g, err := aboutCall(&r, entry.Record.Agent, d)
	if err != nil {
		return nil, err
	}
	g.Effect, g.Limited = schemas.EffectAllow, true
	if run := entry.Record.Run; run != nil {
		g.Call.Contained, g.Call.Container = true, &run.Container
	}
	for _, w := range gone {
		g.For = append(g.For, w.PendingID)
		if w.Deadline.After(g.ExpiresAt) {
			g.ExpiresAt = w.Deadline
		}
	}
	g.Uses = len(g.For)
	with := *d
	with.Grant = g
	return &with, nil
}
