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
	TimeoutSeconds int       `json:"timeout_seconds,omitempty"`
	NextEvent      *Event    `json:"next_event,omitempty"`
	Routes         []Route   `json:"routes"`
	Votes          []Vote    `json:"votes"`
	Joined         string    `json:"joined,omitempty"`     // the identical request that decides this one
	Joiners        []string  `json:"joiners"`              // the requests that this one decides, the oldest first
	Remember       []Reach   `json:"remember,omitempty"`   // as every prompt shows it
	Holder         string    `json:"holder,omitempty"`     // the session that gets what is granted
	Foreground     string    `json:"foreground,omitempty"` // the session in whose place a background one asks
	Detached       bool      `json:"detached,omitempty"`   // nobody waits for it
	Decision       *Decision `json:"decision"`
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
