package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// loggedRequest is a request of the log while its page is made.
type loggedRequest struct {
	schemas.LoggedRequest
	stored time.Time
	asked  bool // the question is among the entries that were read
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
