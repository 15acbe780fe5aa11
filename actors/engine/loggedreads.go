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
	// logAhead bounds the newer entries that are read to find what happened to a page's requests later.
	logAhead = 2000
	// aheadSessions is the largest number of sessions by which the server filters the newer entries.
	// For more sessions, the entries of all sessions are read.
	aheadSessions = 64
	// askedNear bounds the entries of a session that one read searches for a question, and askedReads
	// bounds these reads for one page. A read begins askedEarly before the time of the question, which
	// is by the agent's clock.
	askedNear  = 256
	askedReads = 4
	askedEarly = time.Minute
	// questionSessions bounds the sessions in which the questions of a page are searched, because each
	// session costs the broker a consumer.
	questionSessions = 64
)

// completeLogged completes the requests of a page from other entries of the log, and marks the requests
// that belong on no page of the log.
func (e *connectors) completeLogged(ctx context.Context, found []*loggedRequest) error {
	errs := make([]error, len(found))
	each(len(found), func(i int) { errs[i] = e.checkRecord(ctx, found[i]) })
	errs = append(errs, e.findQuestions(ctx, found))
	for _, r := range found {
		r.QuestionNotFound = !r.asked
	}
	return errors.Join(errs...)
}

// newestOf returns up to limit of the newest requests that belong on a page, the oldest last. It
// returns fewer if the questions of more than questionSessions sessions would have to be searched. more
// means that further requests remain.
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

// readLater reads the entries after a page. It drops a request of the page that is decided in these
// entries, because a newer page or the records list that request.
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
		if !repeated { // later entries with this id are about another request
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

// checkRecord drops a request whose record is still kept, because the history lists it from the record.
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
		return nil // the record is of another request with the same id
	}
	d := ownDecision(&entry)
	r.gone = r.Decided == nil || d != nil && d.Outcome == r.Decided.Outcome && d.DecidedAt.Equal(r.Decided.At)
	return nil
}

// findQuestions adds the questions' content to the requests whose questions are not among the page's
// entries.
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

// findAsked does the work of findQuestions for one session. It reads the entries near the time of each
// question, at most askedReads times.
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
