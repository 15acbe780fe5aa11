package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// A question that was held back is looked at again after releaseFirst, where nothing
// has ended before it, and then when it has waited twice as long, but at least every
// releaseLast.
const (
	releaseFirst = 15 * time.Second
	releaseLast  = 10 * time.Minute
)

// maxOpen bounds how many requests of one session are open, where nod counts them:
// to join identical ones or to hold back more than a few.
const maxOpen = 4096

// crowded refuses one more request of a session that has too many open.
func crowded(a *asked) error {
	if a.held.open < maxOpen {
		return nil
	}
	return schemas.Errorf(schemas.CodeForbidden, "session %s has %d requests open, which is the most: answer or withdraw some first", a.request.SessionID, a.held.open)
}

// carried reports whether a request goes to phones and chats, as far as they can be
// reached.
func carried(rec *schemas.Record) bool {
	return slices.ContainsFunc(rec.Routes, func(r schemas.Route) bool { return !schemas.Inbox(r.Connector) && !r.Failed })
}

// created is when a record was made, in the broker's time.
func created(rec *schemas.Record) time.Time {
	at, wait := rec.Deadline, rec.TimeoutSeconds
	if len(rec.Waiters) > 0 {
		at, wait = rec.Waiters[0].Deadline, rec.Waiters[0].TimeoutSeconds
	}
	return at.Add(-time.Duration(wait) * time.Second)
}

// releaseAt is the event of a question that has to wait for its turn.
func releaseAt(rec *schemas.Record, now time.Time) schemas.Event {
	wait := min(max(now.Sub(created(rec)), releaseFirst), releaseLast)
	if at := now.Add(wait).Truncate(time.Millisecond); at.Before(rec.Deadline) {
		return schemas.Event{At: at, Kind: schemas.EventRelease}
	}
	return deadlineOf(rec)
}

// noRecord reports that there is no record that could be acted on. What cannot be read
// is told once, by the outbox: it keeps nobody else's request from being handled,
// and cannot be allowed.
func noRecord(err error) bool {
	return errors.Is(err, bus.ErrNotFound) || errors.Is(err, bus.ErrUnreadable)
}

// queue are the keys of a session's open requests that go to phones and chats, the
// oldest first.
func (e *Engine) queue(ctx context.Context, session string) ([]string, error) {
	keys, err := e.store.Records.Pending(ctx, session)
	if err != nil {
		return nil, err
	}
	since := make([]time.Time, len(keys)) // zero of those that are not in it
	errs := make([]error, len(keys))
	each(len(keys), func(i int) {
		entry, err := e.store.Records.Get(ctx, keys[i])
		if noRecord(err) {
			return
		}
		if errs[i] = err; err == nil && !entry.Record.Terminal() && entry.Record.Joined == "" && carried(&entry.Record) {
			since[i] = created(&entry.Record)
		}
	})
	at := make(map[string]time.Time, len(keys))
	for i, key := range keys {
		at[key] = since[i]
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return at[key].IsZero() })
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(at[a].Compare(at[b]), cmp.Compare(a, b)) })
	return keys, errors.Join(errs...)
}

// itsTurn reports whether a question is among those that may be shown at a time:
// the oldest of its session.
func (e *Engine) itsTurn(ctx context.Context, entry bus.Entry) (bool, error) {
	limit := e.settings.now().settings.OpenPrompts()
	if limit == 0 || !carried(&entry.Record) {
		return true, nil
	}
	session, _ := schemas.SplitKey(entry.Key)
	queue, err := e.queue(ctx, session)
	if err != nil {
		return false, err
	}
	return slices.Index(queue, entry.Key) < limit, nil
}

// releaseNext has those shown whose turn has come because one of their session
// has ended. It may be called again.
func (e *Engine) releaseNext(ctx context.Context, ended bus.Entry) error {
	limit := e.settings.now().settings.OpenPrompts()
	if limit == 0 || !carried(&ended.Record) {
		return nil
	}
	session, _ := schemas.SplitKey(ended.Key)
	queue, err := e.queue(ctx, session)
	if err != nil {
		return err
	}
	for _, key := range queue[:min(limit, len(queue))] {
		if err := e.release(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// release has a question that was held back shown, whatever else is noted of it
// meanwhile: its timer is armed for its deadline by then and does not come again for
// this.
func (e *Engine) release(ctx context.Context, key string) error {
	for {
		entry, err := e.store.Records.Get(ctx, key)
		if errors.Is(err, bus.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if next := entry.Record.NextEvent; next == nil || next.Kind != schemas.EventRelease {
			return nil
		}
		err = e.step(ctx, entry, deadlineOf(&entry.Record))
		if !errors.Is(err, bus.ErrMoved) && !errors.Is(err, errRearmed) {
			return err
		}
	}
}
