package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// sweepPause is the pause after each record, so that a sweep does not slow down calls.
const sweepPause = 2 * time.Millisecond

// sweep repairs pending records with a missed event, a lost timer or a prompt that was never shown.
// Events are missed if no engine runs for longer than the broker keeps fired timers. Timers and prompts
// are lost if the broker loses messages. The sweep also denies pending requests that a freeze covers.
func (e *effects) sweep(ctx context.Context) {
	var denied atomic.Int64
	err := e.denyFrozen(ctx, &denied)
	var keys []string
	if err == nil {
		err = e.store.Records.Scan(ctx, "", 0, func(r bus.ScannedRecord) bool {
			if !r.Decided {
				keys = append(keys, r.Key)
			}
			return true
		})
	}
	for _, key := range keys {
		if err == nil {
			err = e.sweepOne(ctx, key)
		}
	}
	if err != nil && ctx.Err() == nil {
		e.Log.Warn("engine: the sweep was cut short; the next one goes on", "error", err)
	}
}

// sweepOne restores lost timers and prompts of a pending record.
func (e *effects) sweepOne(ctx context.Context, key string) error {
	entry, err := e.store.Records.Get(ctx, key)
	if noRecord(err) || err == nil && entry.Record.Terminal() {
		return nil
	}
	if err != nil {
		return err
	}
	if entry.Record.Joined != "" { // the request has joined a question, which may have ended without deciding it
		_, _, err = e.life.lookUp(ctx, entry)
	} else {
		_, err = e.store.Records.Armed(ctx, &entry)
		switch {
		case errors.Is(err, bus.ErrNotFound):
			err = e.repair(ctx, entry)
		case err == nil:
			err = e.requeueUnshown(ctx, entry)
		}
	}
	if err != nil {
		return err
	}
	return sleep(ctx, sweepPause)
}

// repair sets the timer of a pending record again, or handles the record's next event if it is overdue.
// Two engines may handle the same event at the same time without harm.
func (e *effects) repair(ctx context.Context, entry bus.Entry) error {
	first := withEarliestEvent(entry)
	if e.clock.now().Before(first.Record.NextEvent.At) {
		err := e.store.Records.Arm(ctx, &first)
		if errors.Is(err, bus.ErrLockHeld) {
			_, err = e.life.retire(ctx, entry)
		}
		return err
	}
	held, err := e.store.Records.Holder(ctx, &entry)
	if err == nil && held.PendingID != "" && held.PendingID != ownID(&entry) { // the lock belongs to the question of an identical call
		entry, err = e.life.retire(ctx, entry)
	}
	if err != nil {
		return err
	}
	due := *withEarliestEvent(entry).Record.NextEvent
	err = e.handleEvent(ctx, entry, due)
	if errors.Is(err, errRearmed) {
		err = e.handleEvent(ctx, entry, due)
	}
	return err
}

// requeueUnshown queues the prompts of a pending record again if no worker has shown or claimed them,
// because a killed broker may lose the newest messages of the queue.
func (e *effects) requeueUnshown(ctx context.Context, entry bus.Entry) error {
	prompt, err := e.life.promptOf(entry)
	if err != nil {
		return err
	}
	unshown := entry.Record
	unshown.Routes = nil
	for _, r := range entry.Record.Routes {
		var s schemas.Shown
		_, err := e.store.Shown.Get(ctx, shownKey(r.Connector, r.Recipient, entry.Key), &s)
		if errors.Is(err, bus.ErrNotFound) || err == nil && isUnclaimed(&s, e.clock.now()) {
			unshown.Routes = append(unshown.Routes, r)
		}
	}
	return e.queuePrompts(ctx, &unshown, prompt)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
