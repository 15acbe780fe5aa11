package main

import (
	"context"
	"time"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/cmd/nod/internal/hookwait"
	"github.com/nodbus/nod/schemas"
)

// sweepEvery is how soon nod up notices that a hook of this machine has died.
const sweepEvery = 2 * time.Second

// sweepWithin bounds one sweep.
const sweepWithin = 5 * time.Second

// sweepHooks tells nod of the hooks of this machine that have died while they waited,
// through client, or a client of its own where that is nil. What it cannot tell, the
// next sweep does.
func (e *env) sweepHooks(ctx context.Context, dataDir string, client *nod.Client) error {
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	return hookwait.Sweep(dataDir, func(sessionID, pendingID string) error {
		if client == nil {
			own, err := nod.Connect(ctx, nod.Options{Place: e.place, Log: e.log})
			if err != nil {
				return err
			}
			defer own.Close()
			client = own
			defer func() { client = nil }()
		}
		_, err := client.HostResolved(ctx, schemas.HostResolved{SessionID: sessionID, PendingID: pendingID, Reason: "the agent's hook was stopped"})
		return err
	})
}

// sweepsHooks does so for as long as ctx lasts.
func (e *env) sweepsHooks(ctx context.Context, dataDir string) {
	ticks := time.NewTicker(sweepEvery)
	defer ticks.Stop()
	for {
		if err := e.sweepHooks(ctx, dataDir, nil); err != nil && ctx.Err() == nil {
			e.log.Warn("that a hook has died was not told", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}
