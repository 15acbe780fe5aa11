package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// write writes a version of a record, if the record is still at the version's revision.
// It returns the new revision, or ErrMoved.
type write func(context.Context, bus.Entry) (uint64, error)

// change changes a record by compare-and-set. edit gets a copy to change, and returns how
// to write it; nil means that there is nothing to change. If the record has moved, change
// reads it and calls edit again. It returns the newest version, and whether it wrote that.
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

// update changes a pending record, as long as edit returns true.
func (e *recordLife) update(ctx context.Context, entry bus.Entry, edit func(*schemas.Record) bool) (bus.Entry, error) {
	entry, _, err := e.change(ctx, entry, func(next *bus.Entry) (write, error) {
		if next.Record.Terminal() || !edit(&next.Record) {
			return nil, nil
		}
		return e.store.Records.Update, nil
	})
	return entry, err
}

// amend returns the write of an addition to a record that may be decided. A decided record
// is not kept longer for that.
func (e *recordLife) amend(entry *bus.Entry) write {
	if !entry.Record.Terminal() {
		return e.store.Records.Update
	}
	kept := e.remainingRetention(entry)
	return func(ctx context.Context, entry bus.Entry) (uint64, error) {
		return e.store.Records.Amend(ctx, entry, kept)
	}
}
