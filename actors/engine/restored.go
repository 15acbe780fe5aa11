package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// loadRestored reads the time of the last restore, for the cache; it is zero if the stores were
// never restored.
func (e *base) loadRestored(ctx context.Context, key string, _ *reading[schemas.Restored]) (schemas.Restored, uint64, error) {
	var r schemas.Restored
	data, revision, err := e.store.Settings.Document(ctx, key)
	if errors.Is(err, bus.ErrNotFound) {
		return r, revision, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && r.At.IsZero() {
		err = errors.New("it names no time")
	}
	if err != nil {
		err = fmt.Errorf("read the time of the last restore: %w", err)
	}
	return r, revision, err
}

// readRestored reads the time of the last restore. If the time has changed, the standing answers in the
// cache are read again.
func (e *base) readRestored(ctx context.Context) error {
	before := e.restored.last(schemas.RestoredKey)
	now, err := e.restored.renew(ctx, schemas.RestoredKey)
	if err == nil && before != nil && !before.value.At.Equal(now.value.At) {
		e.standing.missed()
	}
	return err
}

// lastRestore returns the time of the last restore that this engine has read.
func (e *base) lastRestore() schemas.Restored { return e.restored.last(schemas.RestoredKey).value }

// restoredBy is the name under which a restore ends earlier standing answers.
const restoredBy = "nod restore"

// endRestored ends an allow from before the last restore, because it may have been revoked or used up
// after the backup. Denials stay in force.
func (e *holdings) endRestored(g *schemas.StandingAnswer) {
	at := e.lastRestore().At
	if at.IsZero() || g.Denies() || !g.RevokedAt.IsZero() || g.CreatedAt.After(at) {
		return
	}
	g.RevokedAt, g.RevokedBy = at, restoredBy
}
