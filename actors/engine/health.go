package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// Ready returns nil, or the reason why the engine cannot serve requests now: the stores cannot be
// reached or have no room, or the settings are so old that nothing is allowed without a person.
func (e *Engine) Ready(ctx context.Context) error {
	if _, err := e.store.ReadClock(ctx); err != nil {
		return err
	}
	if err := e.store.Room(); err != nil {
		return err
	}
	if age := e.staleness(); age > 0 {
		return fmt.Errorf("settings and freezes were last read %s ago, so no rule allows anything", age.Round(time.Second))
	}
	return nil
}

// staleness returns the age of the settings and freezes if they are so old that this engine may allow
// nothing by them, and otherwise 0.
func (e *Engine) staleness() time.Duration {
	read := e.settings.now().read
	if frozen := e.freezes.now().read; frozen.Before(read) {
		read = frozen
	}
	if age := time.Since(read); age >= staleAfter {
		return age
	}
	return 0
}

// Pending returns the number of pending questions. The server lists them to count them, so many
// questions take longer.
func (e *Engine) Pending(ctx context.Context) (int, error) {
	return e.store.Records.CountPending(ctx, "")
}

// Calls returns the statistics of the calls that this engine has served.
func (e *Engine) Calls() []bus.CallStats { return e.service.Calls() }

// stats returns the engine's part of the NATS service's statistics: the revisions of settings, freezes
// and sessions that this engine has read. The entry "votes" is the version of votes that this engine
// knows, and "stale_seconds" the age of settings and freezes by which it may allow nothing. All entries
// are whole numbers, because engines of other versions read them as such.
func (e *Engine) stats() any {
	return map[string]any{
		"votes": schemas.TeamsLogins, "settings_revision": e.settings.now().revision, "frozen_revision": e.freezes.obeyed(), "sessions_revision": e.sessionCache.newest(),
		"stale_seconds": int(e.staleness().Seconds()),
	}
}
