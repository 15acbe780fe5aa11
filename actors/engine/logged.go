package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// logPage is the number of log entries that are read for one page of the history.
	logPage = 1000
	// overlap is how much later than the end of a record's retention the log's history begins,
	// because the broker may remove a record a little early.
	overlap = 10 * time.Minute
)

// listLogged replies with a page of the requests of the log whose records are no longer kept. The
// log does not say to whom a request was routed, so carriers, which see only what was routed to
// their people, get nothing of it.
func (e *connectors) listLogged(ctx context.Context, c *caller, q *schemas.Query) (schemas.Page, error) {
	if !seesAll(c.name) {
		return schemas.Page{}, schemas.Errorf(schemas.CodeForbidden, "a connector that carries questions to people may not look into the log")
	}
	before, err := e.logCursor(ctx, q.After)
	if err != nil {
		return schemas.Page{}, err
	}
	past, err := e.store.Log.Before(ctx, before, q.SessionID, logPage)
	if err != nil {
		return schemas.Page{}, err
	}
	found := requestsIn(past.Entries, q.PendingID)
	if err := e.completeLogged(ctx, found, before); err != nil {
		return schemas.Page{}, err
	}
	page := schemas.Page{Type: schemas.TypePage, Prompts: []schemas.Prompt{}, Now: e.clock.now(), Log: &schemas.LogExtent{Begins: past.Begins, Reached: past.Stored}}
	if past.First > past.Oldest {
		page.Next = strconv.FormatUint(past.First, 10)
	}
	return page, fillLogged(&page, found, cmp.Or(q.Limit, pageSize))
}

// logCursor returns the sequence before which a page ends. The first page ends where the records
// begin.
func (e *connectors) logCursor(ctx context.Context, after string) (uint64, error) {
	if after == "" {
		return e.store.Log.FirstSince(ctx, e.clock.now().Add(overlap-cmp.Or(e.RecordsKept, bus.Retention)))
	}
	return afterCursor(after)
}

// fillLogged adds requests to a page, the newest first, as many as its limit and one message
// allow. The next page begins after the last one.
func fillLogged(page *schemas.Page, found []*loggedRequest, limit int) error {
	size := 0
	for _, r := range slices.Backward(found) {
		if r.gone {
			continue
		}
		if !json.Valid(r.Request) {
			r.Request = nil
		}
		data, err := schemas.Encode(&r.LoggedRequest)
		if err != nil {
			return fmt.Errorf("encode %s for the history: %w", r.Key(), err)
		}
		size += len(data) + 1
		if n := len(page.Logged); n > 0 && (n == limit || size > pageBytes) {
			page.Next = strconv.FormatUint(page.Logged[n-1].Sequence, 10)
			page.Log.Reached = r.stored
			return nil
		}
		page.Logged = append(page.Logged, r.LoggedRequest)
	}
	return nil
}
