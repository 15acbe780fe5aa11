package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
	// logPage is the number of log entries that are read for one page of the history.
	logPage = 1000
	// logAhead bounds the newer entries that are read for what happened to a page's requests
	// after its entries.
	logAhead = 2000
	// aheadSessions is the largest number of sessions whose newer entries the server picks out.
	// With more, it sends the entries of all sessions.
	aheadSessions = 64
	// askedNear bounds the entries of a session among which the question of a decision is looked
	// for, askedReads times for one page. They begin askedEarly before the question's time, which
	// is by the agent's clock.
	askedNear  = 256
	askedReads = 4
	askedEarly = time.Minute
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

// loggedRequest is a request of the log while its page is made.
type loggedRequest struct {
	schemas.LoggedRequest
	stored time.Time
	asked  bool // the page's entries have the question
	gone   bool // the request belongs on no page of the log
}

// requestsIn returns the requests that were asked or decided in some entries, the oldest first.
// Requests that were decided at once, without a record, are left out. If prefix is not empty, it
// begins the ids of all.
func requestsIn(entries []bus.PastEntry, prefix string) []*loggedRequest {
	var found []*loggedRequest
	for i := range entries {
		entry := &entries[i]
		if !strings.HasPrefix(entry.PendingID, prefix) || entry.PendingID == "" {
			continue
		}
		switch entry.Kind {
		case schemas.LogAsked:
			r := &loggedRequest{stored: entry.Stored, asked: true, LoggedRequest: schemas.LoggedRequest{
				Sequence: entry.Sequence, SessionID: entry.SessionID, PendingID: entry.PendingID, Agent: entry.Actor,
				ToolName: entry.ToolName, Digest: entry.Digest, AskedAt: entry.At, Request: entry.Request, Redacted: entry.Redacted,
			}}
			if matching(found, entry, r.AskedAt) == nil { // an entry may be there twice
				found = append(found, r)
			}
		case schemas.LogDecided:
			if entry.Decision == nil {
				found = addDecided(found, entry)
			}
		default:
			addLater(found, entry)
		}
	}
	slices.SortStableFunc(found, func(a, b *loggedRequest) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return found
}

// addDecided adds a decision to its request, which it moves to the place of the decision.
func addDecided(found []*loggedRequest, entry *bus.PastEntry) []*loggedRequest {
	r := matching(found, entry, entry.AskedAt)
	if r == nil {
		r = &loggedRequest{LoggedRequest: schemas.LoggedRequest{
			SessionID: entry.SessionID, PendingID: entry.PendingID, Agent: cmp.Or(entry.Agent, entry.Actor),
			ToolName: entry.ToolName, Digest: entry.Digest, AskedAt: entry.AskedAt,
		}}
		found = append(found, r)
	}
	if r.Decided == nil { // else the entry is there twice
		r.Sequence, r.stored = entry.Sequence, entry.Stored
		r.Decided = &schemas.LoggedDecision{Outcome: entry.Outcome, By: decider(entry), At: entry.At}
	}
	return found
}

// decider returns who decided, by the texts of actorOf.
func decider(entry *bus.PastEntry) schemas.By {
	kind := schemas.ByKind(entry.Actor)
	switch kind {
	case schemas.ByPolicy:
		return schemas.By{Kind: kind, Name: entry.Rule}
	case schemas.ByClock, schemas.ByAgent:
		return schemas.By{Kind: kind}
	}
	by := schemas.By{Kind: schemas.ByHuman, Name: entry.Actor}
	if at := strings.LastIndex(entry.Actor, "@"); at >= 0 {
		by.Name, by.Connector = entry.Actor[:at], entry.Actor[at+1:]
	}
	return by
}

// addLater adds what happened after a decision: the end of the call at its host, or of its command.
func addLater(found []*loggedRequest, entry *bus.PastEntry) {
	r := matching(found, entry, time.Time{})
	if r == nil || r.Decided == nil || entry.At.Before(r.Decided.At) {
		return
	}
	switch {
	case entry.Kind == schemas.LogRan && entry.Run != nil:
		r.Run = entry.Run
	case entry.Kind == schemas.LogAftermath && entry.Aftermath != nil:
		same := func(a schemas.Aftermath) bool { return a.Kind == entry.Aftermath.Kind }
		if !slices.ContainsFunc(r.Aftermath, same) {
			r.Aftermath = append(r.Aftermath, *entry.Aftermath)
		}
	}
}

// matching returns the request of an entry, or nil. An id may be used again, so the time of the
// question counts too. Without that time, it is the newest request with the id.
func matching(found []*loggedRequest, entry *bus.PastEntry, asked time.Time) *loggedRequest {
	for _, r := range slices.Backward(found) {
		if r.PendingID == entry.PendingID && r.SessionID == entry.SessionID && (asked.IsZero() || r.AskedAt.Equal(asked)) {
			return r
		}
	}
	return nil
}

// completeLogged adds to the requests of a page what other entries of the log say about them, and
// marks those that belong on no page of the log.
func (e *connectors) completeLogged(ctx context.Context, found []*loggedRequest, before uint64) error {
	if err := e.readLater(ctx, found, before); err != nil {
		return err
	}
	errs := make([]error, len(found))
	each(len(found), func(i int) {
		if !found[i].gone {
			errs[i] = e.checkRecord(ctx, found[i])
		}
	})
	return errors.Join(append(errs, e.findQuestions(ctx, found))...)
}

// readLater reads the entries after a page. A request of the page that is decided there is on a
// newer page, or has a record.
func (e *connectors) readLater(ctx context.Context, found []*loggedRequest, before uint64) error {
	var sessions []string
	for _, r := range found {
		if !slices.Contains(sessions, r.SessionID) {
			sessions = append(sessions, r.SessionID)
		}
	}
	if len(sessions) == 0 {
		return nil
	}
	if len(sessions) > aheadSessions {
		sessions = nil
	}
	later, whole, err := e.store.Log.From(ctx, before, sessions, logAhead)
	if err != nil {
		return err
	}
	byKey := map[string][]*loggedRequest{}
	for _, r := range found {
		byKey[r.Key()] = append(byKey[r.Key()], r)
	}
	for i := range later {
		entry := &later[i]
		those := byKey[schemas.Key(entry.SessionID, entry.PendingID)]
		if len(those) == 0 {
			continue
		}
		if entry.Kind != schemas.LogDecided {
			addLater(those, entry)
		} else if r := matching(those, entry, entry.AskedAt); r != nil && r.Decided == nil {
			r.gone = true
		}
	}
	if whole || len(later) == 0 {
		return nil
	}
	for _, r := range found {
		if r.Decided == nil {
			r.ReadTo = later[len(later)-1].Stored
		}
	}
	return nil
}

// checkRecord marks a request as gone if its record is still kept: the list of the records has it.
func (e *connectors) checkRecord(ctx context.Context, r *loggedRequest) error {
	if r.Decided != nil && e.clock.now().Sub(r.Decided.At) > bus.Retention+overlap {
		return nil
	}
	entry, err := e.store.Records.Get(ctx, r.Key())
	if noRecord(err) {
		return nil
	}
	if err != nil {
		return err
	}
	request, err := requestOf(&entry.Record)
	r.gone = err == nil && request.CreatedAt.Equal(r.AskedAt)
	return nil
}

// findQuestions adds the requests' bytes, if their questions are not among the page's entries.
func (e *connectors) findQuestions(ctx context.Context, found []*loggedRequest) error {
	missing := map[string][]*loggedRequest{}
	for _, r := range found {
		if r.gone || r.asked || r.AskedAt.IsZero() || r.Decided.By.Kind == schemas.ByPolicy && r.Decided.At.Sub(r.AskedAt) < askedEarly {
			continue // the rest of these were decided at once, so they were no questions
		}
		missing[r.SessionID] = append(missing[r.SessionID], r)
	}
	sessions := slices.Collect(maps.Keys(missing))
	errs := make([]error, len(sessions))
	each(len(sessions), func(i int) { errs[i] = e.findAsked(ctx, sessions[i], missing[sessions[i]]) })
	return errors.Join(errs...)
}

// findAsked is findQuestions for one session. It reads the entries near the time of each question,
// askedReads times at most.
func (e *connectors) findAsked(ctx context.Context, session string, missing []*loggedRequest) error {
	slices.SortFunc(missing, func(a, b *loggedRequest) int { return a.AskedAt.Compare(b.AskedAt) })
	for read := 0; read < askedReads && len(missing) > 0; read++ {
		near, err := e.store.Log.Since(ctx, missing[0].AskedAt.Add(-askedEarly), session, askedNear)
		if err != nil {
			return err
		}
		for i := range near {
			entry := &near[i]
			if r := matching(missing, entry, entry.At); r != nil && entry.Kind == schemas.LogAsked {
				r.Request, r.Redacted, r.asked = entry.Request, entry.Redacted, true
			}
		}
		first := true
		missing = slices.DeleteFunc(missing, func(r *loggedRequest) bool {
			passed := first || r.asked || len(near) == 0 || r.AskedAt.Before(near[len(near)-1].Stored)
			first = false
			return passed
		})
	}
	return nil
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
