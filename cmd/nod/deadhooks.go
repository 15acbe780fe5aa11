package main

import (
	"context"
	"time"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/cmd/nod/internal/hookwait"
	"github.com/nodbus/nod/schemas"
)

// sweepEvery is the interval at which nod up looks for hooks that died while they waited, and for
// contained commands whose nod was killed.
const sweepEvery = 2 * time.Second

const sweepWithin = 5 * time.Second

// sweepHooks withdraws each request of this machine whose hook or sidecar died while it waited. If client is nil,
// it opens a connection for each such request. After an error, the next sweep withdraws the requests
// that remain.
func (e *env) sweepHooks(ctx context.Context, dataDir string, client *nod.Client) error {
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	return hookwait.Sweep(dataDir, func(w hookwait.Wait) error {
		if client == nil {
			own, err := nod.Connect(ctx, nod.Options{Place: e.place, Log: e.log})
			if err != nil {
				return err
			}
			defer own.Close()
			client = own
			defer func() { client = nil }()
		}
		if w.Resumable { // an aftermath would be wrong, because a sidecar that is started again may still reply with the decision
			_, err := client.Withdraw(ctx, w.SessionID, w.PendingID, "nod's program beside the agent was killed")
			return err
		}
		_, err := client.HostResolved(ctx, schemas.HostResolved{SessionID: w.SessionID, PendingID: w.PendingID, Reason: "the agent's hook was stopped"})
		return err
	})
}

// waits returns a function that records that this process waits for a request; see hookwait.Wait. It
// returns nil if the data directory is unknown.
func (e *env) waits(resumable bool) func(sessionID, pendingID string) (func(), error) {
	dir, err := e.dataDir()
	if err != nil {
		return nil
	}
	return func(sessionID, pendingID string) (func(), error) {
		return hookwait.Hold(dir, hookwait.Wait{SessionID: sessionID, PendingID: pendingID, Resumable: resumable})
	}
}

func (e *env) runSweeps(ctx context.Context, dataDir string) {
	ticks := time.NewTicker(sweepEvery)
	defer ticks.Stop()
	for {
		if err := e.sweepHooks(ctx, dataDir, nil); err != nil && ctx.Err() == nil {
			e.log.Warn("the request of a dead hook was not withdrawn; nod tries again", "error", err)
		}
		e.reviewKilled(dataDir)
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}
