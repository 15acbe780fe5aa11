package bus

import (
	"context"
	"errors"
	"time"
)

// Edit says what Change does with a value. The zero Edit leaves the stored value as it is.
type Edit struct {
	// Store writes the value. If Kept is not 0, the broker removes it after that time.
	Store bool
	Kept  time.Duration
	// Remove deletes the key.
	Remove bool
}

// Change changes the value of a key by compare-and-set. edit gets the stored value to change,
// or a zero value if found is false. If another write comes in between, Change reads the
// value and calls edit again, for as long as ctx allows. It returns the value as edit left it,
// with its revision. An error of edit ends Change and is returned.
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
