package engine

import (
	"context"
	"errors"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// sweepPause paces the sweep: it must not stand in the way of people.
const sweepPause = 2 * time.Millisecond

// sweep finds what timers and queues may have lost while all engines were away
// for longer than fired timers are kept: pending records past their event,
// pending records without a timer, and prompts that were never shown.
func (e *Engine) sweep(ctx context.Context) {
	if err := e.clock.set(ctx, e.store); err != nil {
		e.Log.Info("engine: the broker's clock was not read; the last reading stands", "error", err)
	}
	_, err := e.denyFrozen(ctx)
	var armed []string
	if err == nil {
		armed, err = e.store.Records.Pending(ctx, "")
	}
	if err == nil {
		err = e.sweepUnarmed(ctx, armed)
	}
	if err == nil {
		err = e.sweepUnshown(ctx, armed)
	}
	if err != nil && ctx.Err() == nil {
		e.Log.Warn("engine: the sweep was cut short; the next one goes on", "error", err)
	}
}

func (e *Engine) sweepUnarmed(ctx context.Context, armed []string) error {
	keys, err := e.store.Records.Keys(ctx, "")
	if err != nil {
		return err
	}
	has := make(map[string]bool, len(armed))
	for _, key := range armed {
		has[key] = true
	}
	for _, key := range keys {
		if has[key] {
			continue
		}
		if err := e.mend(ctx, key); err != nil {
			return err
		}
		if err := wait(ctx, sweepPause); err != nil {
			return err
		}
	}
	return nil
}

// mend gives a pending record its timer, or its end where that is past. A
// timer that fired and is being handled is among the latter, and harmless.
func (e *Engine) mend(ctx context.Context, key string) error {
	entry, err := e.store.Records.Get(ctx, key)
	if noRecord(err) || err == nil && entry.Record.Terminal() {
		return nil
	}
	if err != nil {
		return err
	}
	if e.clock.now().Before(entry.Record.NextEvent.At) {
		return e.store.Records.Arm(ctx, key, *entry.Record.NextEvent)
	}
	err = e.happen(ctx, entry, entry.Record.NextEvent.Kind)
	if errors.Is(err, errRearmed) {
		err = e.happen(ctx, entry, entry.Record.NextEvent.Kind)
	}
	return err
}

// sweepUnshown queues the prompts of pending records again that no worker has
// shown: the queue's tail may be lost to a hard kill.
func (e *Engine) sweepUnshown(ctx context.Context, pending []string) error {
	for _, key := range pending {
		entry, err := e.store.Records.Get(ctx, key)
		if noRecord(err) || err == nil && entry.Record.Terminal() {
			continue
		}
		if err != nil {
			return err
		}
		if entry.Record.Joined != "" {
			if err := e.mendJoined(ctx, entry); err != nil {
				return err
			}
			continue
		}
		prompt, err := e.promptOf(entry)
		if err != nil {
			return err
		}
		unshown := entry.Record
		unshown.Routes = nil
		for _, r := range entry.Record.Routes {
			var s schemas.Shown
			_, err := e.store.Shown.Get(ctx, shownKey(r.Connector, r.Recipient, key), &s)
			if errors.Is(err, bus.ErrNotFound) || err == nil && abandoned(&s, e.clock.now()) {
				unshown.Routes = append(unshown.Routes, r)
			}
		}
		if err := e.carry(ctx, &unshown, prompt); err != nil {
			return err
		}
		if err := wait(ctx, sweepPause); err != nil {
			return err
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
