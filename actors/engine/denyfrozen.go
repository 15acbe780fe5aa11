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
	// denyWithin is how long the reply to a freeze waits for the denials of pending requests. It is
	// shorter than the caller's timeout. A goroutine then denies the remaining requests.
	denyWithin = 4 * time.Second
	// denyAllWithin bounds the denials that go on after the reply to a freeze. The next sweep denies
	// the requests that remain.
	denyAllWithin = 10 * time.Minute
)

// enforceFreeze denies the pending requests that a freeze covers, and waits until every engine obeys
// the freeze. Then it denies the requests that engines have stored in the meantime. If this takes
// longer than denyWithin, enforceFreeze returns with its progress in the parameter f, and a goroutine
// does the rest.
func (e *admin) enforceFreeze(ctx context.Context, f *schemas.FreezeState) {
	var denied atomic.Int64
	done := make(chan error, 1)
	heard := make(chan struct{})
	e.tasks.Go(func() {
		background, cancel := context.WithTimeout(e.background, denyAllWithin)
		defer cancel()
		err := e.effects.denyFrozen(background, &denied)
		<-heard
		if err == nil {
			err = e.effects.denyFrozen(background, &denied)
		}
		if err != nil {
			e.Log.Warn("engine: not every frozen request was denied; the sweep will deny the rest", "error", err)
		}
		done <- err
	})
	within := time.NewTimer(denyWithin)
	defer within.Stop()
	var err error
	if f.Laggards, err = e.laggards(ctx, "frozen_revision", f.Revision, obeyWithin); err != nil {
		e.Log.Warn("engine: cannot tell whether the other engines obey a freeze", "error", err)
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

// denyBeforeThaw denies the pending requests that any freeze covers, so that no thaw allows any of
// them. The error is UNAVAILABLE if time runs out.
func (e *admin) denyBeforeThaw(ctx context.Context) error {
	if err := e.readFrozen(ctx); err != nil {
		return err
	}
	var denied atomic.Int64
	err := e.effects.denyFrozen(ctx, &denied)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, bus.ErrUnknown) {
		return schemas.Errorf(schemas.CodeUnavailable, "not thawed: pending requests are still being denied, %d so far; try again", denied.Load())
	}
	return err
}

// denyFrozen denies every pending request that a freeze covers, and adds their number to the counter
// denied. It scans the records and needs no timers. A request that an engine stores without knowledge
// of the newest freeze cannot be allowed, and the next sweep denies it.
func (e *effects) denyFrozen(ctx context.Context, denied *atomic.Int64) error {
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

func (e *effects) denyIfFrozen(ctx context.Context, key string) (bool, error) {
	entry, err := e.store.Records.Get(ctx, key)
	if noRecord(err) || err == nil && entry.Record.Terminal() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r, err := requestOf(&entry.Record)
	if err != nil { // an unreadable request cannot be allowed, so it does not prevent a thaw
		e.Log.Error("engine: a frozen request cannot be read, and stays pending", "key", key, "error", err)
		return false, nil
	}
	z := e.freezes.now().Of(entry.Record.Agent, r.SessionID)
	if z == nil {
		return false, nil
	}
	question, decided, err := e.life.lookUp(ctx, entry)
	if err != nil || decided != nil {
		return false, err
	}
	_, r.PendingID = schemas.SplitKey(question.Key)
	d := e.freezeDenial(&r, question.Record.Digest, z)
	ended, err := e.life.decide(ctx, question, d, everyWaiter)
	if errors.Is(err, bus.ErrTooLarge) { // a record that is too full for a denial is also too full for an allow
		e.Log.Error("engine: a frozen request is too large to be decided, and stays pending", "key", key, "error", err)
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("deny a frozen request: %w", err)
	}
	e.life.publish(ended)
	return ended.Record.Decision != nil && ended.Record.Decision.DecisionID == d.DecisionID, nil
}
