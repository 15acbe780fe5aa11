package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// denyWithin is how long an approver waits to hear how many open requests
	// a freeze has denied. It ends before a caller's hop does; the rest is
	// denied in the background.
	denyWithin = 4 * time.Second
	// denyAllWithin bounds that background work. The sweep goes on with what
	// is left.
	denyAllWithin = 10 * time.Minute
)

// enforceFreeze denies the open requests that a freeze covers, waits until every engine
// obeys, and denies once more what an engine that had not heard has stored
// meanwhile. It tells in f what has happened within denyWithin, and goes on after
// that.
func (e *Engine) enforceFreeze(ctx context.Context, f *schemas.FreezeState) {
	var denied atomic.Int64
	done := make(chan error, 1)
	heard := make(chan struct{})
	e.tasks.Go(func() {
		background, cancel := context.WithTimeout(e.background, denyAllWithin)
		defer cancel()
		err := e.denyFrozen(background, &denied)
		<-heard
		if err == nil {
			err = e.denyFrozen(background, &denied)
		}
		if err != nil {
			e.Log.Warn("engine: not every open request that is frozen was denied; the sweep goes on", "error", err)
		}
		done <- err
	})
	within := time.NewTimer(denyWithin)
	defer within.Stop()
	var err error
	if f.Laggards, err = e.laggards(ctx, f.Revision); err != nil {
		e.Log.Warn("engine: whether others obey a freeze was not heard", "error", err)
		f.Laggards = []string{"any other"}
	}
	close(heard)
	select {
	case err := <-done:
		f.Unfinished = err != nil
	case <-within.C:
		f.Unfinished = true
	}
	f.Denied = int(denied.Load())
}

// denyBeforeThaw denies whatever is frozen and still open, before a thaw: it was asked
// before the freeze or against it, and must not be allowed afterwards.
func (e *Engine) denyBeforeThaw(ctx context.Context) error {
	if err := e.readFrozen(ctx); err != nil {
		return err
	}
	var denied atomic.Int64
	err := e.denyFrozen(ctx, &denied)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, bus.ErrUnknown) {
		return schemas.Errorf(schemas.CodeUnavailable, "not thawed: the open requests are still being denied, %d just now; try again", denied.Load())
	}
	return err
}

// denyFrozen denies every open request that is frozen, and counts in denied how
// many those were. It goes by the records, so that it misses none whose timer has
// fired or is lost. A request that another engine stores later, without having
// heard of the freeze, cannot be allowed, and the next sweep denies it.
func (e *Engine) denyFrozen(ctx context.Context, denied *atomic.Int64) error {
	if len(e.freezes.now().Freezes) == 0 {
		return nil
	}
	return e.eachUndecided(ctx, "", func(key string) error {
		ended, err := e.denyIfFrozen(ctx, key)
		if ended {
			denied.Add(1)
		}
		return err
	})
}

func (e *Engine) denyIfFrozen(ctx context.Context, key string) (bool, error) {
	entry, err := e.store.Records.Get(ctx, key)
	if noRecord(err) || err == nil && entry.Record.Terminal() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r, err := requestOf(&entry.Record)
	if err != nil { // nobody can allow it either, and it must not stand in the way of a thaw
		e.Log.Error("engine: a request that is frozen cannot be read and stays open", "key", key, "error", err)
		return false, nil
	}
	z := e.freezes.now().Of(entry.Record.Agent, r.SessionID)
	if z == nil {
		return false, nil
	}
	question, decided, err := e.lookUp(ctx, entry)
	if err != nil || decided != nil {
		return false, err
	}
	_, r.PendingID = schemas.SplitKey(question.Key)
	d := e.freezeDenial(&r, question.Record.Digest, z)
	ended, err := e.decide(ctx, question, d, everyWaiter)
	if errors.Is(err, bus.ErrTooLarge) { // no answer can be stored either
		e.Log.Error("engine: a frozen request is too large to be decided, and stays open", "key", key, "error", err)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("deny a frozen request: %w", err)
	}
	e.publish(ended)
	return ended.Record.Decision != nil && ended.Record.Decision.DecisionID == d.DecisionID, nil
}
