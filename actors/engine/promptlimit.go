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

// Phones and chats show a limited number of a session's questions at a time. When one of these
// questions ends, they show the next one. As a fallback, a timer checks whether a waiting
// question has its turn: first after releaseFirst, then whenever the waiting time has about
// doubled, at least about every releaseLast.
const (
	releaseFirst = time.Minute
	releaseLast  = 10 * time.Minute
)

// maxOpen bounds the pending questions of a session. Several engines together may exceed it
// slightly, because each may use a cached count.
const maxOpen = 4096

// goesToCarriers reports whether a request has a route to a phone or chat that has not failed.
func goesToCarriers(rec *schemas.Record) bool {
	return slices.ContainsFunc(rec.Routes, func(r schemas.Route) bool { return !schemas.IsViewer(r.Connector) && !r.Failed })
}

func createdAt(rec *schemas.Record) time.Time {
	at, wait := rec.Deadline, rec.TimeoutSeconds
	if len(rec.Waiters) > 0 {
		at, wait = rec.Waiters[0].Deadline, rec.Waiters[0].TimeoutSeconds
	}
	return at.Add(-time.Duration(wait) * time.Second)
}

// releaseAt returns the next event of a question that phones and chats do not show yet: the next
// check of the question's turn, or the deadline if that is earlier. The parameter looked is the time
// of the last check. The next check is due when the question has waited about twice as long as at the
// last check. A further delay of up to half of that time, different for each question, spreads the
// checks of many questions.
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

// unreachedEvent returns the next event of a request if phones and chats show the request only after
// that event, else nil. If the request is decided before the event, phones and chats get no outcome.
func unreachedEvent(rec *schemas.Record) *schemas.Event {
	if next := rec.NextEvent; next != nil && next.Kind != schemas.EventDeadline {
		return next
	}
	return nil
}

// noRecord reports whether err means that a record is missing or unreadable. An unreadable record
// counts as missing, because it cannot allow its request.
func noRecord(err error) bool {
	return errors.Is(err, bus.ErrNotFound) || errors.Is(err, bus.ErrUnreadable)
}

// itsTurn reports whether phones and chats may show a question now. They show a limited number
// of a session's questions at a time, the oldest first.
func (e *effects) itsTurn(ctx context.Context, entry bus.Entry) (bool, error) {
	limit := e.settings.now().settings.OpenPrompts()
	if limit == 0 || !goesToCarriers(&entry.Record) {
		return true, nil
	}
	session, _ := schemas.SplitKey(entry.Key)
	return e.lines.of(session).among(ctx, e, entry, limit)
}

// releaseNext shows the next question of a session after another question has ended. A repeated call
// changes nothing.
func (e *effects) releaseNext(ctx context.Context, ended bus.Entry) error {
	if !goesToCarriers(&ended.Record) {
		return nil
	}
	return e.freePlace(ctx, ended.Key, heldBack(&ended.Record))
}

// freePlace shows the next question of a session after the question under key has ended or lost its
// routes. The parameter held is true if phones and chats had not shown that question.
func (e *effects) freePlace(ctx context.Context, key string, held bool) error {
	limit := e.settings.now().settings.OpenPrompts()
	if limit == 0 {
		return nil
	}
	session, _ := schemas.SplitKey(key)
	return e.lines.of(session).leave(ctx, e, key, held, limit)
}

// countOpen sets up the counts of pending questions. Once a session has few pending questions
// again, its first questions are shown, because an old count may have held them back.
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

type releaseResult int

const (
	notInLine  releaseResult = iota // the question has ended, or has no route to a phone or chat
	wasShown                        // phones and chats already show the question
	isReleased                      // phones and chats show the question from now on
)

// release shows a question on phones and chats. It tries again if the record changes during the call,
// because the timer is already set to a later event and causes no other try.
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
		err = e.life.step(ctx, entry, nextEvent(&entry.Record, e.clock.now()))
		if !errors.Is(err, bus.ErrMoved) && !errors.Is(err, errRearmed) {
			return isReleased, err
		}
	}
}

// inLine reports whether a request is to be shown on phones and chats, now or later.
func inLine(rec *schemas.Record) bool {
	return !rec.Terminal() && rec.Joined == "" && goesToCarriers(rec)
}

func heldBack(rec *schemas.Record) bool {
	return rec.NextEvent != nil && rec.NextEvent.Kind == schemas.EventRelease
}
