package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// maxEndMessage bounds, in bytes, what a question keeps of why one of its calls ended
// by itself.
const maxEndMessage = 256

// everyWaiter is every open waiter of a question.
func everyWaiter(*schemas.Waiter) bool { return true }

// waiterOfID is the waiter of one request.
func waiterOfID(pendingID string) func(*schemas.Waiter) bool {
	return func(w *schemas.Waiter) bool { return w.PendingID == pendingID }
}

// countedWaiters are the waiters that a prompt counted, as far as their deadlines have not
// come.
func countedWaiters(places int, now time.Time) func(*schemas.Waiter) bool {
	return func(w *schemas.Waiter) bool { return w.Place < max(places, 1) && now.Before(w.Deadline) }
}

// update changes an open record by compare-and-set, for as long as change says that
// there is something to change.
func (e *Engine) update(ctx context.Context, entry bus.Entry, change func(*schemas.Record) bool) (bus.Entry, error) {
	for !entry.Record.Terminal() {
		next := entry
		next.Record.Waiters = slices.Clone(entry.Record.Waiters)
		if !change(&next.Record) {
			return entry, nil
		}
		revision, err := e.store.Records.Update(ctx, next)
		if err == nil {
			next.Revision = revision
			return next, nil
		}
		if !errors.Is(err, bus.ErrMoved) {
			return entry, fmt.Errorf("change %s: %w", entry.Key, err)
		}
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil {
			return entry, err
		}
	}
	return entry, nil
}

// decide ends a question with d for the open waiters that it is about, or finds
// that it has ended. Any other open waiter stays, as a question of its own. Of an
// answer, a deadline, a withdrawal and a verdict one wins, and all are given the
// entry with the one decision that is stored, whose effects are there then. Nothing
// is written if d is about no open waiter.
func (e *Engine) decide(ctx context.Context, entry bus.Entry, d *schemas.Decision, about func(*schemas.Waiter) bool) (bus.Entry, error) {
	for !entry.Record.Terminal() {
		next := entry
		rec := &next.Record
		rec.Waiters = slices.Clone(rec.Waiters)
		ended, detached := 0, 0
		for i := range rec.Waiters {
			switch w := &rec.Waiters[i]; {
			case !w.Open():
			case !about(w) && w.PendingID == ownID(&entry): // its record has no other place
				return entry, nil
			case !about(w):
				w.Stays = true
			default:
				if ended++; w.Detached {
					detached++
				}
			}
		}
		if ended == 0 {
			return entry, nil
		}
		if d.UpdatedInput != nil && ended > 0 && ended == detached {
			return entry, schemas.Errorf(schemas.CodeValidation, "updated_input: the agent does not wait for this call any more, so it can only be allowed as it was asked")
		}
		var err error
		if rec.Decision, err = withStandingAnswer(&next, d); err != nil {
			return entry, err
		}
		rec.NextEvent = unreachedEvent(&entry.Record)
		revision, err := e.store.Records.Decide(ctx, next)
		if err == nil {
			next.Revision = revision
			return next, e.applyEffects(ctx, next)
		}
		if !errors.Is(err, bus.ErrMoved) {
			return entry, fmt.Errorf("decide %s: %w", entry.Key, err)
		}
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil {
			return entry, fmt.Errorf("decide %s: %w", entry.Key, err)
		}
	}
	return entry, e.applyEffects(ctx, entry)
}

// endSome ends the open waiters that d is about, while the others stay in the
// question. The last ones end it. d is about the question's own request.
func (e *Engine) endSome(ctx context.Context, entry bus.Entry, d *schemas.Decision, about func(*schemas.Waiter) bool) (bus.Entry, error) {
	for !entry.Record.Terminal() {
		next := entry
		rec := &next.Record
		rec.Waiters = slices.Clone(rec.Waiters)
		changed := false
		for i := range rec.Waiters {
			if w := &rec.Waiters[i]; w.Open() && about(w) {
				own := *d
				own.PendingID, own.Digest, own.Message = w.PendingID, w.Digest, cutBytes(d.Message, maxEndMessage)
				w.Decision, changed = &own, true
			}
		}
		if _, open := rec.Waiting(); open == 0 {
			return e.decide(ctx, entry, d, about)
		}
		if !changed {
			return entry, nil
		}
		extendDeadline(rec)
		revision, err := e.store.Records.Update(ctx, next)
		if err == nil {
			next.Revision = revision
			return next, nil
		}
		if !errors.Is(err, bus.ErrMoved) {
			return entry, fmt.Errorf("end a call of %s: %w", entry.Key, err)
		}
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil {
			return entry, err
		}
	}
	return entry, e.applyEffects(ctx, entry)
}

// expire ends the calls whose deadline has come, at an instant of the broker's time.
func (e *Engine) expire(ctx context.Context, entry bus.Entry, at time.Time) (bus.Entry, error) {
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
	return ended, e.rearm(ctx, withEarliestEvent(ended))
}

// endOverdue ends the calls of an open question whose deadline has come, at an instant
// of the broker's time, and returns the record as it then is.
func (e *Engine) endOverdue(ctx context.Context, entry bus.Entry, now time.Time) (bus.Entry, error) {
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

// setDetached notes in an open record whether the agent waits for a call.
func (e *Engine) setDetached(ctx context.Context, question bus.Entry, pendingID string, detached bool) (bus.Entry, error) {
	return e.update(ctx, question, func(rec *schemas.Record) bool {
		w := rec.Waiter(pendingID)
		if w == nil || !w.Open() || w.Detached == detached {
			return false
		}
		w.Detached = detached
		return true
	})
}

// detachLate makes a standing answer of an approval that a person gave at the very
// moment at which the agent, which says so only now, had stopped waiting: its host
// was told no, and the same call may be asked once more.
func (e *Engine) detachLate(ctx context.Context, question bus.Entry, pendingID string) (bus.Entry, error) {
	for {
		w := question.Record.Waiter(pendingID)
		d := question.Record.Verdict(pendingID)
		if w == nil || w.Detached || d == nil || !allowsOnce(d) || d.UpdatedInput != nil {
			return question, nil
		}
		if late, err := e.clock.late(ctx, w.Deadline); late || err != nil {
			return question, err
		}
		next := question
		next.Record.Waiters = slices.Clone(question.Record.Waiters)
		next.Record.Waiter(pendingID).Detached = true
		var err error
		if next.Record.Decision, err = withStandingAnswer(&next, d); err != nil {
			return question, err
		}
		next.Record.Decision.PendingID, next.Record.Decision.Digest = question.Record.Decision.PendingID, question.Record.Decision.Digest
		revision, err := e.store.Records.Amend(ctx, next, e.remainingRetention(&next))
		if err == nil {
			next.Revision = revision
			return next, e.applyEffects(ctx, next)
		}
		if !errors.Is(err, bus.ErrMoved) {
			return question, fmt.Errorf("note that the agent did not wait for %s: %w", question.Key, err)
		}
		if question, err = e.store.Records.Get(ctx, question.Key); err != nil {
			return question, err
		}
	}
}

// remainingRetention is for how much longer a decided record is kept: adding to it does not
// keep it longer.
func (e *Engine) remainingRetention(entry *bus.Entry) time.Duration {
	return max(bus.Retention-e.clock.now().Sub(entry.Record.Decision.DecidedAt), time.Minute)
}

// ownID is the pending_id of the entry's own request.
func ownID(entry *bus.Entry) string {
	_, id := schemas.SplitKey(entry.Key)
	return id
}

// allowsOnce reports whether a person has allowed the very calls that were asked
// about, and no more.
func allowsOnce(d *schemas.Decision) bool {
	return d.Outcome == schemas.Allowed && d.By.Kind == schemas.ByHuman && !d.Lasts()
}

// withStandingAnswer is d as it ends this version of a question. If a person allows
// calls that no agent waits for, each leaves behind that the same may be asked once
// more, until its deadline.
func withStandingAnswer(entry *bus.Entry, d *schemas.Decision) (*schemas.Decision, error) {
	if !allowsOnce(d) || d.UpdatedInput != nil {
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
