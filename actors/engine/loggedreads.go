package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const (
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
	// questionSessions bounds the sessions in which the questions of a page are looked for: each
	// costs the broker a consumer.
	questionSessions = 64
)

// completeLogged adds to the requests of a page what other entries of the log say about them, and
// marks those that belong on no page of the log.
func (e *connectors) completeLogged(ctx context.Context, found []*loggedRequest) error {
	errs := make([]error, len(found))
	each(len(found), func(i int) { errs[i] = e.checkRecord(ctx, found[i]) })
	errs = append(errs, e.findQuestions(ctx, found))
	for _, r := range found {
		r.QuestionNotFound = !r.asked
	}
	return errors.Join(errs...)
}

// newestOf returns the newest requests that belong on a page, at most limit of them, and the oldest
// last. It ends before the questions of more than questionSessions sessions must be looked for. more
// reports that there are others.
func newestOf(found []*loggedRequest, limit int) (page []*loggedRequest, more bool) {
	sessions := map[string]bool{}
	for _, r := range slices.Backward(found) {
		if r.gone {
			continue
		}
		if len(page) == limit {
			return page, true
		}
		if r.lacksQuestion() {
			if !sessions[r.SessionID] && len(sessions) == questionSessions {
				return page, true
			}
			sessions[r.SessionID] = true
		}
		page = append(page, r)
	}
	return page, false
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
	byKey, passed := map[string][]*loggedRequest{}, map[string]bool{}
	for _, r := range found {
		byKey[r.Key()] = append(byKey[r.Key()], r)
	}
	for i := range later {
		entry := &later[i]
		key := schemas.Key(entry.SessionID, entry.PendingID)
		those := byKey[key]
		if len(those) == 0 {
			continue
		}
		if entry.Kind != schemas.LogDecided {
			if !passed[key] {
				addLater(those, entry)
			}
			continue
		}
		repeated := false
		for _, r := range matching(those, entry, entry.AskedAt) {
			repeated = repeated || r.decidedBy(entry)
			r.gone = r.gone || r.Decided == nil && entry.Decision == nil
		}
		if !repeated { // what happens from now on is about another request with this id
			passed[key] = true
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
	if err != nil || !request.CreatedAt.Equal(r.AskedAt) || entry.Record.Digest != r.Digest {
		return nil // the id was used again
	}
	d := ownDecision(&entry)
	r.gone = r.Decided == nil || d != nil && d.Outcome == r.Decided.Outcome && d.DecidedAt.Equal(r.Decided.At)
	return nil
}

// findQuestions adds the requests' bytes, if their questions are not among the page's entries.
func (e *connectors) findQuestions(ctx context.Context, found []*loggedRequest) error {
	missing := map[string][]*loggedRequest{}
	for _, r := range found {
		if !r.gone && r.lacksQuestion() {
			missing[r.SessionID] = append(missing[r.SessionID], r)
		}
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
			if entry.Kind != schemas.LogAsked {
				continue
			}
			for _, r := range matching(missing, entry, entry.At) {
				r.addQuestion(true, entry.Request, entry.Redacted)
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
