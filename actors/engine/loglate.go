package engine

import (
	"context"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// lateNear bounds the entries of a session that are searched for an earlier copy of a late entry.
const lateNear = 1000

// appendOnce adds an entry about an event. The parameter since is the broker's time of the event.
// Each later version of a record brings the entry again, and the log drops a repetition only for an
// hour. So if the event is older, appendOnce first searches the log for the entry. If the session has
// more than lateNear entries since the event, the log may get the entry twice. The result first
// reports whether the log has a new entry.
func (e *effects) appendOnce(ctx context.Context, id string, line schemas.LogEntry, since time.Time) (first bool, err error) {
	if e.clock.now().Sub(since) > replacedWithin {
		near, err := e.store.Log.Since(ctx, since.Add(-askedEarly), line.SessionID, lateNear)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(near, func(old bus.PastEntry) bool { return sameLine(&old.LogEntry, &line) }) {
			return false, nil
		}
	}
	_, first, err = e.store.Log.Append(ctx, id, line)
	return first, err
}

// sameLine reports whether two entries of a session log the same event.
func sameLine(a, b *schemas.LogEntry) bool {
	sameEnd := (a.Aftermath == nil) == (b.Aftermath == nil) && (a.Aftermath == nil || a.Aftermath.Kind == b.Aftermath.Kind)
	return a.Kind == b.Kind && a.PendingID == b.PendingID && a.Actor == b.Actor && a.Digest == b.Digest && a.Outcome == b.Outcome && a.At.Equal(b.At) && sameEnd
}
