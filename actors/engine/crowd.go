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

// releaseEvery is how often a question that was held back is looked at again,
// where nothing has ended before it.
const releaseEvery = 15 * time.Second

// carried reports whether a request goes to phones and chats.
func carried(rec *schemas.Record) bool {
	return slices.ContainsFunc(rec.Routes, func(r schemas.Route) bool { return !schemas.Inbox(r.Connector) })
}

// created is when a record was made, in the broker's time.
func created(rec *schemas.Record) time.Time {
	return rec.Deadline.Add(-time.Duration(rec.TimeoutSeconds) * time.Second)
}

// releaseAt is the event of a question that has to wait for its turn.
func releaseAt(rec *schemas.Record, now time.Time) schemas.Event {
	if at := now.Add(releaseEvery).Truncate(time.Millisecond); at.Before(rec.Deadline) {
		return schemas.Event{At: at, Kind: schemas.EventRelease}
	}
	return deadlineOf(rec)
}

// queue are a session's open requests that go to phones and chats, the oldest
// first.
func (e *Engine) queue(ctx context.Context, session string) ([]bus.Entry, error) {
	keys, err := e.store.Records.Pending(ctx, session)
	if err != nil {
		return nil, err
	}
	found := make([]*bus.Entry, len(keys))
	errs := make([]error, len(keys))
	each(len(keys), func(i int) {
		entry, err := e.store.Records.Get(ctx, keys[i])
		if errors.Is(err, bus.ErrNotFound) {
			return
		}
		if errs[i] = err; err == nil && !entry.Record.Terminal() && entry.Record.Joined == "" && carried(&entry.Record) {
			found[i] = &entry
		}
	})
	var all []bus.Entry
	for _, entry := range found {
		if entry != nil {
			all = append(all, *entry)
		}
	}
	slices.SortFunc(all, func(a, b bus.Entry) int {
		return cmp.Or(created(&a.Record).Compare(created(&b.Record)), cmp.Compare(a.Key, b.Key))
	})
	return all, errors.Join(errs...)
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
	i := slices.IndexFunc(queue, func(q bus.Entry) bool { return q.Key == entry.Key })
	return i < limit, nil
}

// releaseNext has those shown whose turn has come because one of their session
// has ended. What is cut short here is made up for by their own timers.
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
	for _, entry := range queue[:min(limit, len(queue))] {
		if next := entry.Record.NextEvent; next == nil || next.Kind != schemas.EventRelease {
			continue
		}
		err := e.step(ctx, entry, deadlineOf(&entry.Record))
		if errors.Is(err, errRearmed) { // no timer of it is being fired that could take this one along
			err = e.step(ctx, entry, deadlineOf(&entry.Record))
		}
		if err != nil && !errors.Is(err, bus.ErrMoved) {
			return err
		}
	}
	return nil
}
