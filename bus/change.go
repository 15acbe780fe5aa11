package bus

import (
	"context"
	"errors"
	"time"
)

// Edit tells Change what to do with a key. The zero Edit does nothing.
type Edit struct {
	// Store makes Change write the value. The broker removes the value after Kept, or keeps it if Kept is
	// 0.
	Store bool
	Kept  time.Duration
	// Remove makes Change delete the key.
	Remove bool
}

// Change changes the value of a key by compare-and-set. The function edit gets the stored value. If
// there is none, edit gets a zero value, and its argument found is false. After a conflict, Change
// reads the value and calls edit again, until ctx ends. Change returns the value as edit has left it,
// with its revision, or the error of edit.
func Change[T any](ctx context.Context, b *Bucket, key string, edit func(v *T, found bool) (Edit, error)) (T, uint64, error) {
	for {
		var v T
		revision, err := b.Get(ctx, key, &v)
		found := !errors.Is(err, ErrNotFound)
		if err != nil && found {
			return v, revision, err
		}
		e, err := edit(&v, found)
		switch {
		case err != nil:
			return v, revision, err
		case e.Store:
			revision, err = b.Put(ctx, key, v, revision, e.Kept)
		case e.Remove && found:
			err = b.Remove(ctx, key, revision)
		}
		if !errors.Is(err, ErrMoved) {
			return v, revision, err
		}
	}
}
