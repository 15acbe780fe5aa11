package engine

import (
	"context"
	"errors"
	"time"

	"github.com/nodbus/nod/bus"
)

type retention struct {
	age   time.Duration
	bytes int64
}

// retainLog applies the settings' limits to the log if they have changed. After a failure, the next
// call tries again. Only one goroutine may call it at a time.
func (e *base) retainLog(ctx context.Context) {
	now := e.settings.now().settings
	want := retention{now.LogAge(), now.LogBytes()}
	if want == e.retained {
		return
	}
	within, cancel := context.WithTimeout(ctx, settingsEvery)
	defer cancel()
	err := e.store.Log.Retain(within, want.age, want.bytes)
	switch {
	case errors.Is(err, bus.ErrNoRoom):
		e.Log.Warn("engine: the log is kept by age alone: no server has as much room as log.max_bytes; set less in settings.json", "max_bytes", want.bytes)
	case err != nil:
		if ctx.Err() == nil {
			e.Log.Warn("engine: the limits of the log were not set; it tries again", "error", err)
		}
		return
	}
	e.retained = want
}

// checkpointEvery is the interval of checkpoints. Younger log entries may have no checkpoint yet. If a
// try fails, the next checkpoint covers its entries.
const checkpointEvery = time.Minute

func (e *base) checkpointLog(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, checkpointEvery)
	defer cancel()
	if err := e.store.WriteCheckpoints(within); err != nil && ctx.Err() == nil {
		e.Log.Warn("engine: the newest entries of the log have no checkpoint yet; it tries again", "error", err)
	}
}
