package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// logPage is the number of log entries that are read for one page of the history.
	logPage = 1000
	// overlap is the time by which the log's history and the records overlap, because the broker may
	// remove a record a little early.
	overlap = 10 * time.Minute
)

// listLogged replies with a page of the logged requests whose records are no longer kept. Carriers may
// not read the log, because the log does not say to whom a request was routed.
func (e *connectors) listLogged(ctx context.Context, c *caller, q *schemas.Query) (schemas.Page, error) {
	if !seesAll(c.name) {
		return schemas.Page{}, schemas.Errorf(schemas.CodeForbidden, "a connector that carries questions to people may not look into the log")
	}
	select {
	case e.readingLog <- struct{}{}:
		defer func() { <-e.readingLog }()
	case <-ctx.Done():
		return schemas.Page{}, fmt.Errorf("wait to read the log, which others read: %w", ctx.Err())
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
	if err := e.readLater(ctx, found, before); err != nil {
		return schemas.Page{}, err
	}
	listed, more := newestOf(found, cmp.Or(q.Limit, pageSize))
	if err := e.completeLogged(ctx, listed); err != nil {
		return schemas.Page{}, err
	}
	page := schemas.Page{Type: schemas.TypePage, Prompts: []schemas.Prompt{}, Now: e.clock.now(), Log: &schemas.LogExtent{Begins: past.Begins, Reached: past.Stored}}
	if past.First > past.Oldest {
		page.Next = strconv.FormatUint(past.First, 10)
	}
	if more {
		goOnAfter(&page, listed[len(listed)-1])
	}
	return page, fillLogged(&page, listed)
}

// logCursor returns the sequence number of the log entry before which a page ends. The first page
// ends where the kept records begin, because they are listed without the log.
func (e *connectors) logCursor(ctx context.Context, after string) (uint64, error) {
	if after == "" {
		return e.store.Log.FirstSince(ctx, e.clock.now().Add(overlap-cmp.Or(e.RecordsKept, bus.Retention)))
	}
	return afterCursor(after)
}

// fillLogged adds the given requests to a page until no further request fits into one message.
func fillLogged(page *schemas.Page, listed []*loggedRequest) error {
	size, last := 0, (*loggedRequest)(nil)
	for _, r := range listed {
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
		if size += len(data) + 1; last != nil && size > pageBytes {
			goOnAfter(page, last)
			return nil
		}
		page.Logged, last = append(page.Logged, r.LoggedRequest), r
	}
	return nil
}

// goOnAfter marks a request as the last of a page, so that the next page begins with the next older
// request.
func goOnAfter(page *schemas.Page, last *loggedRequest) {
	page.Next, page.Log.Reached = strconv.FormatUint(last.Sequence, 10), last.stored
}
