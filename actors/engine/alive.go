package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// aliveFor is how long an engine counts as running after its last sign of life. A freeze waits only
// for running engines. aliveFor is longer than staleAfter, so every engine that no longer counts as
// running has already stopped allowing requests without a person.
const aliveFor = 20 * time.Second

// A sign of life is a key in the store that expires unless the engine renews it. leaveWithin bounds
// how long a stopping engine tries to remove its sign of life.
const leaveWithin = 2 * time.Second

func aliveKey(id string) string { return "engine." + id }

// announceAlive stores this engine's sign of life, which expires after aliveFor.
func (e *base) announceAlive(ctx context.Context) error {
	var was schemas.Registered
	revision, err := e.store.Presence.Get(ctx, aliveKey(e.service.ID()), &was)
	if err == nil || errors.Is(err, bus.ErrNotFound) {
		now := schemas.Registered{Type: schemas.TypeRegistered, LeaseUntil: e.clock.now().Add(aliveFor)}
		_, err = e.store.Presence.Put(ctx, aliveKey(e.service.ID()), now, revision, aliveFor)
	}
	if err != nil {
		return fmt.Errorf("store this engine's sign of life: %w", err)
	}
	return nil
}

func (e *base) renewAlive(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, settingsEvery)
	defer cancel()
	if err := e.announceAlive(within); err != nil && ctx.Err() == nil {
		e.Log.Warn("engine: this engine's sign of life was not stored, so a freeze may not wait for it; it tries again", "error", err)
	}
}

// announceStop removes this engine's sign of life. After a failure the sign of life expires by
// itself.
func (e *base) announceStop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	var was schemas.Registered
	revision, err := e.store.Presence.Get(ctx, aliveKey(e.service.ID()), &was)
	if err == nil {
		err = e.store.Presence.Remove(ctx, aliveKey(e.service.ID()), revision)
	}
	if err != nil {
		e.Log.Info("engine: this engine's sign of life was not removed; it expires by itself", "error", err)
	}
}

// laggards waits until every running engine has reported in its statistics that it has read a
// revision, but no longer than the duration within. It returns the ids of the engines that have not
// reported it.
func (e *base) laggards(ctx context.Context, name string, revision uint64, within time.Duration) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	late, err := e.Edge.Follow(ctx, "nod-engine", name, revision, func(ctx context.Context) ([]string, error) {
		keys, err := e.store.Presence.LiveKeys(ctx, aliveKey("*"))
		for i := range keys {
			keys[i] = strings.TrimPrefix(keys[i], aliveKey(""))
		}
		return keys, err
	})
	slices.Sort(late)
	return late, err
}
