package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/nodbus/nod/bus"
)

// eachUndecided calls f, for a few at a time, with the key of every record that
// has no decision, of one session if that is named, and returns what went wrong.
// It goes by the records themselves: a request that waits counts whether or not it
// has a timer. A record may have been decided by the time f gets its key, and may
// come twice if it is written meanwhile.
func (e *Engine) eachUndecided(ctx context.Context, session string, f func(key string) error) error {
	keys := make(chan string)
	var work sync.WaitGroup
	errs := make([]error, readAtOnce)
	for i := range errs {
		work.Go(func() {
			for key := range keys {
				if err := f(key); err != nil && errs[i] == nil { // the first is enough to tell
					errs[i] = err
				}
			}
		})
	}
	err := e.store.Records.Scan(ctx, session, 0, func(r bus.Found) bool {
		if r.Decided {
			return true
		}
		select {
		case keys <- r.Key:
			return true
		case <-ctx.Done():
			return false
		}
	})
	close(keys)
	work.Wait()
	return errors.Join(append(errs, err, ctx.Err())...)
}
