package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// A question that was held back is shown when one before it ends. In case nobody sees
// to that, it is looked at again after releaseFirst, and then when it has waited twice
// as long, but at least about every releaseLast.
const (
	releaseFirst = time.Minute
	releaseLast  = 10 * time.Minute
)

// maxOpen bounds how many requests of one session are open. It may be passed by as many
// as other engines add while a count is remembered.
const maxOpen = 4096

// goesToCarriers reports whether a request goes to phones and chats, as far as they can be
// reached.
func goesToCarriers(rec *schemas.Record) bool {
	return slices.ContainsFunc(rec.Routes, func(r schemas.Route) bool { return !schemas.Inbox(r.Connector) && !r.Failed })
}

// createdAt is when a record was made, in the broker's time.
func createdAt(rec *schemas.Record) time.Time {
	at, wait := rec.Deadline, rec.TimeoutSeconds
	if len(rec.Waiters) > 0 {
		at, wait = rec.Waiters[0].Deadline, rec.Waiters[0].TimeoutSeconds
	}
	return at.Add(-time.Duration(wait) * time.Second)
}

// releaseAt is the event of a question that has to wait for its turn: it was looked at
// at an instant, and is again when it has waited twice as long or a little more. Those
// that were held back at once so come back one after another.
func releaseAt(rec *schemas.Record, looked time.Time) schemas.Event {
	wait := min(max(looked.Sub(createdAt(rec)), releaseFirst), releaseLast)
	if share, err := strconv.ParseUint(rec.Digest[:min(4, len(rec.Digest))], 16, 16); err == nil {
		wait += wait / 2 * time.Duration(share) / (1 << 16)
	}
	if at := looked.Add(wait).Truncate(time.Millisecond); at.Before(rec.Deadline) {
		return schemas.Event{At: at, Kind: schemas.EventRelease}
	}
	return deadlineOf(rec)
}

// unreachedEvent is what a request had still waited for when it was decided, or nil: phones
// and chats that had not been told of it are not told how it ended either.
func unreachedEvent(rec *schemas.Record) *schemas.Event {
	if next := rec.NextEvent; next != nil && next.Kind != schemas.EventDeadline {
		return next
	}
	return nil
}

// noRecord reports that there is no record that could be acted on. What cannot be read
// is told once, by the outbox: it keeps nobody else's request from being handled,
// and cannot be allowed.
func noRecord(err error) bool {
	return errors.Is(err, bus.ErrNotFound) || errors.Is(err, bus.ErrUnreadable)
}

// itsTurn reports whether a question is among those that may be shown at a time:
// the oldest of its session.
func (e *Engine) itsTurn(ctx context.Context, entry bus.Entry) (bool, error) {
	limit := e.settings.now().settings.OpenPrompts()
	if limit == 0 || !goesToCarriers(&entry.Record) {
		return true, nil
	}
	session, _ := schemas.SplitKey(entry.Key)
	return e.lines.of(session).among(ctx, e, entry, limit)
}

// releaseNext has the question shown whose turn has come because one of its session
// has ended. It may be called again.
func (e *Engine) releaseNext(ctx context.Context, ended bus.Entry) error {
	if !goesToCarriers(&ended.Record) {
		return nil
	}
	return e.freePlace(ctx, ended.Key, heldBack(&ended.Record))
}

// freePlace has the next question of a session shown in the place of one that goes to
// phones and chats no more.
func (e *Engine) freePlace(ctx context.Context, key string, held bool) error {
	limit := e.settings.now().settings.OpenPrompts()
	if limit == 0 {
		return nil
	}
	session, _ := schemas.SplitKey(key)
	return e.lines.of(session).leave(ctx, e, key, held, limit)
}

// countOpen has the counts of open questions taken from the store. A session that is
// found to be small has its first questions shown: they may have been held back
// because of others that have ended.
func (e *Engine) countOpen() {
	e.counts.count = e.store.Records.CountPending
	e.counts.limit = func() int { return e.settings.now().settings.OpenPrompts() }
	e.counts.start = func(f func(context.Context)) { e.tasks.Go(func() { f(e.background) }) }
	e.counts.dispersed = func(ctx context.Context, session string) {
		limit := e.counts.limit()
		if limit == 0 {
			return
		}
		if err := e.lines.of(session).showFirst(ctx, e, limit); err != nil && ctx.Err() == nil {
			e.Log.Warn("engine: a session's first questions were not shown; their timers will see to it", "session", session, "error", err)
		}
	}
}

// releaseResult is what came of releasing a question.
type releaseResult int

const (
	notInLine  releaseResult = iota // it has ended, or goes to no phone
	wasShown                        // it was not held back
	isReleased                      // it was, until now
)

// release has a question that was held back shown, whatever else is noted of it
// meanwhile: its timer is armed for its deadline by then and does not come again for
// this.
func (e *Engine) release(ctx context.Context, key string) (releaseResult, error) {
	for {
		entry, err := e.store.Records.Get(ctx, key)
		if noRecord(err) || err == nil && !inLine(&entry.Record) {
			return notInLine, nil
		}
		if err != nil {
			return notInLine, err
		}
		if !heldBack(&entry.Record) {
			return wasShown, nil
		}
		err = e.step(ctx, entry, deadlineOf(&entry.Record))
		if !errors.Is(err, bus.ErrMoved) && !errors.Is(err, errRearmed) {
			return isReleased, err
		}
	}
}

// inLine reports whether a request takes a place among those that are shown.
func inLine(rec *schemas.Record) bool {
	return !rec.Terminal() && rec.Joined == "" && goesToCarriers(rec)
}

func heldBack(rec *schemas.Record) bool {
	return rec.NextEvent != nil && rec.NextEvent.Kind == schemas.EventRelease
}
