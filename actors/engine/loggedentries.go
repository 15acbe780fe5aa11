package engine

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// loggedRequest is a request from the log while a page of the history is made.
type loggedRequest struct {
	schemas.LoggedRequest
	stored time.Time
	asked  bool // the request's question is among the entries that were read
	gone   bool // the request belongs on no page of the log
}

// requestsIn returns the requests that were asked or decided in the given entries, the oldest first. It
// leaves out requests that were decided at once, without a record. If prefix is not empty, only
// requests whose ids begin with it are returned.
func requestsIn(entries []bus.PastEntry, prefix string) []*loggedRequest {
	var found []*loggedRequest
	for i := range entries {
		entry := &entries[i]
		if !strings.HasPrefix(entry.PendingID, prefix) || entry.PendingID == "" {
			continue
		}
		switch entry.Kind {
		case schemas.LogAsked:
			if len(matching(found, entry, entry.At)) == 0 { // the log may have an entry twice
				found = append(found, &loggedRequest{stored: entry.Stored, asked: true, LoggedRequest: schemas.LoggedRequest{
					Sequence: entry.Sequence, SessionID: entry.SessionID, PendingID: entry.PendingID, Agent: entry.Actor,
					ToolName: entry.ToolName, Digest: entry.Digest, AskedAt: entry.At, Request: entry.Request, Redacted: entry.Redacted,
				}})
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

// addDecided adds a decision to its request, and moves the request to the place of the decision in
// the log's order. A request has only one decision, so another decision under the same id makes
// another request.
func addDecided(found []*loggedRequest, entry *bus.PastEntry) []*loggedRequest {
	var r *loggedRequest
	same := matching(found, entry, entry.AskedAt)
	for _, other := range same {
		switch {
		case other.Decided == nil:
			r = other
		case other.decidedBy(entry):
			return found // the log has the entry twice
		}
	}
	if r == nil {
		r = &loggedRequest{LoggedRequest: schemas.LoggedRequest{
			SessionID: entry.SessionID, PendingID: entry.PendingID, Agent: cmp.Or(entry.Agent, entry.Actor),
			ToolName: entry.ToolName, Digest: entry.Digest, AskedAt: entry.AskedAt,
		}}
		if len(same) > 0 {
			r.addQuestion(same[0].asked, same[0].Request, same[0].Redacted)
		}
		found = append(found, r)
	}
	r.Sequence, r.stored = entry.Sequence, entry.Stored
	r.Decided = &schemas.LoggedDecision{Outcome: entry.Outcome, By: decider(entry), At: entry.At}
	return found
}

// decidedBy reports whether the request has the decision of an entry: the same outcome at the same time
// of the engine's clock.
func (r *loggedRequest) decidedBy(entry *bus.PastEntry) bool {
	return r.Decided != nil && r.Decided.Outcome == entry.Outcome && r.Decided.At.Equal(entry.At)
}

// lacksQuestion reports whether the request was asked as a question that is not among the entries that
// were read. It reports false for a request that was decided at once.
func (r *loggedRequest) lacksQuestion() bool {
	atOnce := r.Decided != nil && r.Decided.By.Kind == schemas.ByPolicy && r.Decided.At.Sub(r.AskedAt) < askedEarly
	return !r.asked && !r.AskedAt.IsZero() && !atOnce
}

func (r *loggedRequest) addQuestion(asked bool, request json.RawMessage, redacted int) {
	r.asked, r.Request, r.Redacted = asked, request, redacted
}

// decider returns who decided, from the text that actorOf has logged.
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

// addLater adds an event after the decision to the newest decided request with the entry's id. The
// event is the end of the call at its host, or the end of its contained command.
func addLater(found []*loggedRequest, entry *bus.PastEntry) {
	var r *loggedRequest
	for _, other := range found {
		if sameKey(other, entry) && other.Decided != nil && (r == nil || other.Sequence > r.Sequence) {
			r = other
		}
	}
	if r == nil || entry.At.Before(r.Decided.At) {
		return
	}
	switch {
	case entry.Kind == schemas.LogRan && entry.Run != nil && entry.Digest == r.Digest:
		r.Run = entry.Run
	case entry.Kind == schemas.LogAftermath && entry.Aftermath != nil: // the entry may have the digest of the question that the request had joined
		same := func(a schemas.Aftermath) bool { return a.Kind == entry.Aftermath.Kind }
		if !slices.ContainsFunc(r.Aftermath, same) {
			r.Aftermath = append(r.Aftermath, *entry.Aftermath)
		}
	}
}

// matching returns the requests that an entry is about. It also compares the digests, because an agent
// chooses the id and the time of a question, and may use the same id and time twice.
func matching(found []*loggedRequest, entry *bus.PastEntry, asked time.Time) (those []*loggedRequest) {
	for _, r := range found {
		if sameKey(r, entry) && r.Digest == entry.Digest && (asked.IsZero() || r.AskedAt.Equal(asked)) {
			those = append(those, r)
		}
	}
	return those
}

func sameKey(r *loggedRequest, entry *bus.PastEntry) bool {
	return r.PendingID == entry.PendingID && r.SessionID == entry.SessionID
}
