package schemas

import (
	"encoding/json"
	"time"
)

// Risk is set by policy, never by the agent.
type Risk string

// The risks.
const (
	RiskLow    Risk = "low"
	RiskMedium Risk = "medium"
	RiskHigh   Risk = "high"
)

// EventKind is what a record's next event does.
type EventKind string

// The kinds of event.
const (
	EventRelease  EventKind = "release"  // show a prompt that was held back
	EventEscalate EventKind = "escalate" // tell the next people
	EventDeadline EventKind = "deadline" // end the request
)

// Event is the one thing that a record's timer is armed for.
type Event struct {
	At   time.Time `json:"at"`
	Kind EventKind `json:"kind"`
}

// Route is one recipient on one connector. Settles go where prompts went, so
// routes are stored in the record.
type Route struct {
	Connector string `json:"connector"`
	Recipient string `json:"recipient"`
	// Failed: the prompt could not be shown there, for good.
	Failed bool `json:"failed,omitempty"`
}

// Vote is one approver's answer to a request that needs several.
type Vote struct {
	Name      string    `json:"name"`
	Connector string    `json:"connector"`
	OptionID  string    `json:"option_id"`
	At        time.Time `json:"at"`
}

// Record is a request's one key in pending_permissions: its bytes, routes,
// votes, and its decision or none. It is the only write that an answer makes.
type Record struct {
	Type     string          `json:"type"`
	Agent    string          `json:"agent"` // from the subject
	User     string          `json:"user,omitempty"`
	Request  json.RawMessage `json:"request"` // the bytes as asked
	Digest   string          `json:"digest"`
	Tier     Tier            `json:"tier"`
	Risk     Risk            `json:"risk"`
	Reasons  []string        `json:"reasons,omitempty"`
	Deadline time.Time       `json:"deadline"` // fixed when the request is made
	// TimeoutSeconds is how long the request could wait, to be told when it has.
	TimeoutSeconds int     `json:"timeout_seconds,omitempty"`
	NextEvent      *Event  `json:"next_event,omitempty"`
	Routes         []Route `json:"routes"`
	Votes          []Vote  `json:"votes"`
	// Question is the token of the record's timer. Identical calls have the same one,
	// so that one of them at a time is the question that people are asked. Empty: the
	// record's own pending_id.
	Question string `json:"question,omitempty"`
	// Waiters are the calls that wait for this record's decision, the record's own
	// request first. They are only added to.
	Waiters []Waiter `json:"waiters,omitempty"`
	// Joined is the pending_id of the question among whose Waiters this request is:
	// that record decides it. Empty in a question.
	Joined     string    `json:"joined,omitempty"`
	Remember   []Reach   `json:"remember,omitempty"`   // as every prompt shows it
	Holder     string    `json:"holder,omitempty"`     // the session that gets what is granted
	Foreground string    `json:"foreground,omitempty"` // the session in whose place a background one asks
	Decision   *Decision `json:"decision"`
	// Aftermath tells of calls that ended otherwise than decided. It is added to a
	// record that has its decision, and changes nothing of that.
	Aftermath []Aftermath `json:"aftermath,omitempty"`
}

// AftermathKind is how a call ended otherwise than decided.
type AftermathKind string

// The kinds of aftermath.
const (
	// AftermathRan: the call ran although nod had not allowed it: its user allowed it
	// at the agent's own terminal.
	AftermathRan AftermathKind = "ran"
	// AftermathNeverRan: the call was allowed and did not run: the agent had gone on.
	AftermathNeverRan AftermathKind = "never_ran"
)

// Aftermath is how one call of a record ended otherwise than decided.
type Aftermath struct {
	PendingID string        `json:"pending_id"`
	Kind      AftermathKind `json:"kind"`
	Reason    string        `json:"reason"` // "answered at the terminal"
	At        time.Time     `json:"at"`
}

// Terminal reports whether the record has its decision.
func (r *Record) Terminal() bool { return r.Decision != nil }

// Waiter is one call that waits for a record's decision.
type Waiter struct {
	PendingID string `json:"pending_id"`
	Digest    string `json:"digest"`
	// Deadline is the call's own; TimeoutSeconds is how long it could wait.
	Deadline       time.Time `json:"deadline"`
	TimeoutSeconds int       `json:"timeout_seconds,omitempty"`
	// Place is its place in the count that prompts show and answers repeat, from 0. A
	// call that is asked again after its agent stopped waiting keeps its place.
	Place int `json:"place,omitempty"`
	// Detached: the agent waits for it no longer. If the call is allowed once, that
	// becomes a standing answer.
	Detached bool `json:"detached,omitempty"`
	// Stays: the record's decision is not about it. It becomes a question of its own.
	Stays bool `json:"stays,omitempty"`
	// Decision is how it ended by itself while the question stayed open.
	Decision *Decision `json:"decision,omitempty"`
}

// Open reports whether the waiter has no decision of its own.
func (w *Waiter) Open() bool { return w.Decision == nil && !w.Stays }

// Waiter is the waiter of a pending_id, or nil.
func (r *Record) Waiter(pendingID string) *Waiter {
	for i := range r.Waiters {
		if r.Waiters[i].PendingID == pendingID {
			return &r.Waiters[i]
		}
	}
	return nil
}

// Waits reports whether the record is open and a call of this id waits for its
// decision, attended or not.
func (r *Record) Waits(pendingID string) bool {
	w := r.Waiter(pendingID)
	return !r.Terminal() && w != nil && w.Open()
}

// Verdict is the decision about one of the record's waiters, or nil if it has none
// here.
func (r *Record) Verdict(pendingID string) *Decision {
	w := r.Waiter(pendingID)
	switch {
	case w == nil || w.Stays:
		return nil
	case w.Decision != nil:
		return w.Decision
	case r.Decision == nil || r.Decision.PendingID == pendingID:
		return r.Decision
	}
	own := *r.Decision
	own.PendingID, own.Digest = pendingID, w.Digest
	return &own
}

// Places is how many calls have asked, those included that wait no longer.
func (r *Record) Places() int {
	n := 0
	for i := range r.Waiters {
		n = max(n, r.Waiters[i].Place+1)
	}
	return n
}

// Waiting is how many calls wait for the decision. Open are those that it would be
// about: they wait, or would be let through if they were asked again.
func (r *Record) Waiting() (waiting, open int) {
	for i := range r.Waiters {
		if !r.Waiters[i].Open() {
			continue
		}
		if open++; !r.Waiters[i].Detached {
			waiting++
		}
	}
	return waiting, open
}

// Unattended reports whether no agent waits for the decision any more.
func (r *Record) Unattended() bool {
	waiting, open := r.Waiting()
	return open > 0 && waiting == 0
}

// LogKind is what a log entry tells of.
type LogKind string

// The kinds of log entry.
const (
	LogAsked    LogKind = "asked"
	LogDecided  LogKind = "decided"
	LogClaim    LogKind = "claim" // this id is decided through its record
	LogSettings LogKind = "settings"
	LogSession  LogKind = "session"
	LogGranted  LogKind = "granted"
	LogRevoked  LogKind = "revoked"
	LogFrozen   LogKind = "frozen"
	LogThawed   LogKind = "thawed"
	// LogAftermath: a call ended otherwise than decided.
	LogAftermath LogKind = "aftermath"
)

// LogEntry is one line of permission_log. It carries no payloads. An automatic
// decision is held whole: the log is the only place it is stored.
type LogEntry struct {
	Type             string    `json:"type"`
	At               time.Time `json:"at"`
	Kind             LogKind   `json:"kind"`
	SessionID        string    `json:"session_id,omitempty"`
	PendingID        string    `json:"pending_id,omitempty"`
	Actor            string    `json:"actor,omitempty"`
	ToolName         string    `json:"tool_name,omitempty"`
	Digest           string    `json:"digest,omitempty"`
	Rule             string    `json:"rule,omitempty"`
	Outcome          Outcome   `json:"outcome,omitempty"`
	SettingsRevision uint64    `json:"settings_revision,omitempty"`
	Decision         *Decision `json:"decision,omitempty"`
	// Aftermath is what an entry of LogAftermath tells.
	Aftermath *Aftermath `json:"aftermath,omitempty"`
	// Request is what was asked, where the settings have payloads logged.
	Request json.RawMessage `json:"request,omitempty"`
}
