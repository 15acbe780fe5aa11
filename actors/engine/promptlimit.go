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

// Phones and chats show only a limited number of a session's questions at a time; the others
// are held back. When a question ends, the next one is shown. As a fallback, a timer checks
// the turn of a question after releaseFirst, then whenever its waiting time has about doubled,
// and at least about every releaseLast.
const (
	releaseFirst = time.Minute
	releaseLast  = 10 * time.Minute
)

// maxOpen bounds the pending questions of a session. It may be exceeded by the questions
// that other engines add while this engine uses a cached count.
const maxOpen = 4096

// goesToCarriers reports whether a request has a route to a phone or chat that has not
// failed.
func goesToCarriers(rec *schemas.Record) bool {
	return slices.ContainsFunc(rec.Routes, func(r schemas.Route) bool { return !schemas.IsViewer(r.Connector) && !r.Failed })
}

// createdAt returns the time at which a record was created, in broker time.
func createdAt(rec *schemas.Record) time.Time {
	at, wait := rec.Deadline, rec.TimeoutSeconds
	if len(rec.Waiters) > 0 {
		at, wait = rec.Waiters[0].Deadline, rec.Waiters[0].TimeoutSeconds
	}
	return at.Add(-time.Duration(wait) * time.Second)
}

// releaseAt returns the next event of a question that stays held back; looked is the time at
// which its turn was checked. The event is another check when the question's waiting time has
// doubled, or its deadline if that comes first. releaseAt adds a delay of up to half of the
// wait, which differs for each question, so that the checks of many questions do not
// coincide.
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

// unreachedEvent returns the next event of a request, if that event is a release or an
// escalation; otherwise nil. Phones and chats show such a request only after the event. So
// if the request is decided before the event, its outcome is not sent to them.
func unreachedEvent(rec *schemas.Record) *schemas.Event {
	if next := rec.NextEvent; next != nil && next.Kind != schemas.EventDeadline {
		return next
	}
	return nil
}

// noRecord reports whether err means that a record is missing or unreadable. The outbox logs
// an unreadable record. Its request cannot be allowed, and must not stop the handling of other
// records.
func noRecord(err error) bool {
	return errors.Is(err, bus.ErrNotFound) || errors.Is(err, bus.ErrUnreadable)
}

// itsTurn reports whether phones and chats may show a question now: they show only a limited
// number of a session's questions at a time, the oldest first.
func (e *effects) itsTurn(ctx context.Context, entry bus.Entry) (bool, error) {
	limit := e.settings.now().settings.OpenPrompts()
	if limit == 0 || !goesToCarriers(&entry.Record) {
		return true, nil
	}
	session, _ := schemas.SplitKey(entry.Key)
	return e.lines.of(session).among(ctx, e, entry, limit)
}

// releaseNext shows the next question of a session after one has ended. Repeating the call
// does no harm.
func (e *effects) releaseNext(ctx context.Context, ended bus.Entry) error {
	if !goesToCarriers(&ended.Record) {
		return nil
	}
	return e.freePlace(ctx, ended.Key, heldBack(&ended.Record))
}

// freePlace shows the next question of a session when phones and chats no longer show the
// question under key. held reports whether that question was still held back.
func (e *effects) freePlace(ctx context.Context, key string, held bool) error {
	limit := e.settings.now().settings.OpenPrompts()
	if limit == 0 {
		return nil
	}
	session, _ := schemas.SplitKey(key)
	return e.lines.of(session).leave(ctx, e, key, held, limit)
}

// countOpen sets up the counts of pending questions. If a session is no longer crowded, its
// first questions are shown, because an outdated count may have held them back.
func (e *effects) countOpen() {
	e.counts.count = e.store.Records.CountPending
	e.counts.limit = func() int { return e.settings.now().settings.OpenPrompts() }
	e.counts.start = func(f func(context.Context)) { e.tasks.Go(func() { f(e.background) }) }
	e.counts.shrank = func(ctx context.Context, session string) {
		limit := e.counts.limit()
		if limit == 0 {
			return
		}
		if err := e.lines.of(session).showFirst(ctx, e, limit); err != nil && ctx.Err() == nil {
			e.Log.Warn("engine: a session's first questions were not shown; their timers will show them", "session", session, "error", err)
		}
	}
}

// releaseResult is the result of releasing a question.
type releaseResult int

const (
	notInLine  releaseResult = iota // the question has ended, or has no route to a phone or chat
	wasShown                        // the question was not held back
	isReleased                      // the question was held back until now
)

// release shows a question that was held back. If the record changes meanwhile, release tries
// again itself: it has already armed the timer for the deadline, so no timer would repeat the
// release.
func (e *effects) release(ctx context.Context, key string) (releaseResult, error) {
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
		err = e.life.step(ctx, entry, deadlineOf(&entry.Record))
		if !errors.Is(err, bus.ErrMoved) && !errors.Is(err, errRearmed) {
			return isReleased, err
		}
	}
}

// inLine reports whether a request belongs in its session's prompt line.
func inLine(rec *schemas.Record) bool {
	return !rec.Terminal() && rec.Joined == "" && goesToCarriers(rec)
}

func heldBack(rec *schemas.Record) bool {
	return rec.NextEvent != nil && rec.NextEvent.Kind == schemas.EventRelease
}
