package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// A write stores a new version of an entry's record, if the store still has the revision of the
// entry. It returns the new revision, or bus.ErrMoved if the record has changed.
type write func(context.Context, bus.Entry) (uint64, error)

// change changes a record by compare-and-set. The function edit changes a copy of the record,
// and returns the write for that copy, or nil to leave the record unchanged. After a conflict,
// change reads the record and calls edit again. It returns the newest version, and whether it
// has stored that version itself.
func (e *recordLife) change(ctx context.Context, entry bus.Entry, edit func(next *bus.Entry) (write, error)) (_ bus.Entry, changed bool, err error) {
	for {
		next := entry
		next.Record.Waiters = slices.Clone(entry.Record.Waiters)
		write, err := edit(&next)
		if write == nil || err != nil {
			return entry, false, err
		}
		next.Revision, err = write(ctx, next)
		if err == nil {
			return next, true, nil
		}
		if !errors.Is(err, bus.ErrMoved) {
			return entry, false, fmt.Errorf("change %s: %w", entry.Key, err)
		}
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil {
			return entry, false, fmt.Errorf("change %s: %w", entry.Key, err)
		}
	}
}

// update changes an undecided record by edit, which may be called more than once. It does
// nothing if the record is decided or edit returns false.
func (e *recordLife) update(ctx context.Context, entry bus.Entry, edit func(*schemas.Record) bool) (bus.Entry, error) {
	entry, _, err := e.change(ctx, entry, func(next *bus.Entry) (write, error) {
		if next.Record.Terminal() || !edit(&next.Record) {
			return nil, nil
		}
		return e.store.Records.Update, nil
	})
	return entry, err
}

// amend returns the write for a pending or decided record to which something was added, for example
// an aftermath. The write does not extend the time for which a decided record is kept.
func (e *recordLife) amend(entry *bus.Entry) write {
	if !entry.Record.Terminal() {
		return e.store.Records.Update
	}
	kept := e.remainingRetention(entry)
	return func(ctx context.Context, entry bus.Entry) (uint64, error) {
		return e.store.Records.Amend(ctx, entry, kept)
	}
}
