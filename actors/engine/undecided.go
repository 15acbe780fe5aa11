package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/nodbus/nod/bus"
)

// eachUndecided calls f with the key of every undecided record of a session, or of all
// sessions if session is empty. Up to readAtOnce calls run at the same time; an error does not
// stop the other calls. It scans the records, and so finds requests with and without timers. A
// record may be decided before f gets its key, and f may get a key twice if the record is
// written meanwhile.
func (e *base) eachUndecided(ctx context.Context, session string, f func(key string) error) error {
	keys := make(chan string)
	var work sync.WaitGroup
	errs := make([]error, readAtOnce)
	for i := range errs {
		work.Go(func() {
			for key := range keys {
				if err := f(key); err != nil && errs[i] == nil { // the first error of each goroutine is enough
					errs[i] = err
				}
			}
		})
	}
	err := e.store.Records.Scan(ctx, session, 0, func(r bus.ScannedRecord) bool {
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
