package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/nodbus/nod/bus"
)

// decideAtOnce is the number of records that eachUndecided handles at a time. Each record waits for the
// disk, but one sync of the disk serves all that wait.
const decideAtOnce = 128

// eachUndecided calls f with the key of every undecided record of a session, or of all sessions if
// session is empty. It makes up to decideAtOnce calls at a time, and goes on after errors. f may get
// the key of a record that has just been decided. If a record changes, f may get its key twice.
func (e *base) eachUndecided(ctx context.Context, session string, f func(key string) error) error {
	keys := make(chan string)
	var work sync.WaitGroup
	errs := make([]error, decideAtOnce)
	for i := range errs {
		work.Go(func() {
			for key := range keys {
				if err := f(key); err != nil && errs[i] == nil {
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
