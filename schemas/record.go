package schemas

import (
	"encoding/json"
	"time"
)

// Risk is how dangerous a request is. The policy sets it, never the agent.
type Risk string

// The risks, from the lowest to the highest.
const (
	RiskLow    Risk = "low"
	RiskMedium Risk = "medium"
	RiskHigh   Risk = "high"
)

// EventKind is what the engine does when a pending record's timer fires.
type EventKind string

const (
	EventRelease  EventKind = "release"  // show the question on phones and chats if its turn has come
	EventEscalate EventKind = "escalate" // show the request on phones and chats, because no approver at the session has answered
	EventNext     EventKind = "next"     // show the request on those further routes whose time has come
	EventDeadline EventKind = "deadline" // end the calls whose deadline has passed
)

// Event is the engine's next action on a pending record. At is the time at which the record's timer
// fires.
type Event struct {
	At    time.Time `json:"at"`
	Kind  EventKind `json:"kind"`
	Later Later     `json:"-"`
}

// Route is one recipient on one connector. A record keeps its routes, so that the recipients of the
// prompt also get the outcome.
type Route struct {
	Connector string `json:"connector"`
	Recipient string `json:"recipient"`
	// AfterSeconds is how long after the request the recipient is asked. 0 means at once.
	AfterSeconds int `json:"after_seconds,omitempty"`
	// Failed means that the prompt could not be shown on this route. nod does not try to show it there
	// again.
	Failed bool  `json:"failed,omitempty"`
	Later  Later `json:"-"`
}

// Vote is one person's allow of a request that several people must allow. A single vote allows nothing.
type Vote struct {
	Name      string `json:"name"` // the approver's name
	Connector string `json:"connector"`
	UserID    string `json:"user_id,omitempty"` // the voter's identity on the connector; a vote without an identity does not count
	Login     *Login `json:"login,omitempty"`   // what the issuer of the voter's login said about the voter
	OptionID  string `json:"option_id"`
	// Waiters is the number of calls in the prompt that the person answered. 0 means 1.
	Waiters int       `json:"waiters,omitempty"`
	Message string    `json:"message,omitempty"` // the person's message to the agent, at most MaxVoteMessage bytes
	At      time.Time `json:"at"`
	Later   Later     `json:"-"`
}

// MaxVoteMessage is the greatest length of a vote's message, in bytes. It is small, because a record
// contains the messages of all its votes.
const MaxVoteMessage = 1024

// TeamRecord is the type of a pending Record with conditions about people. An engine without votes must
// not decide such a record, so it has a type that the Load of older versions refuses.
const TeamRecord = "nod.v2.record"

// Record is a request as nod stores it, under one key of the bucket pending_permissions. It has the
// bytes of the request, the request's routes and votes and, once it is decided, the decision. A
// single write of the key stores the decision.
type Record struct {
	// Type is TypeRecord or TeamRecord.
	Type     string          `json:"type"`
	Agent    string          `json:"agent"` // the agent's name, from the request's subject
	User     string          `json:"user,omitempty"`
	Request  json.RawMessage `json:"request"` // the bytes that the agent sent
	Digest   string          `json:"digest"`
	Tier     Tier            `json:"tier"`
	Risk     Risk            `json:"risk"`
	Reasons  []string        `json:"reasons,omitempty"`
	Targets  []Target        `json:"targets,omitempty"`
	Unseen   []string        `json:"unseen,omitempty"`
	OnDisk   *DiskFile       `json:"on_disk,omitempty"`
	Deadline time.Time       `json:"deadline"` // the latest deadline of the open waiters, in broker time
	// TimeoutSeconds is the full waiting time, which the message of a timeout states.
	TimeoutSeconds int     `json:"timeout_seconds,omitempty"`
	NextEvent      *Event  `json:"next_event,omitempty"`
	Routes         []Route `json:"routes"`
	Votes          []Vote  `json:"votes"`
	// Question is the token of the record's timer. Identical calls share this token, so that only one of
	// them at a time becomes the question that people see. If Question is empty, the request's
	// pending_id is the timer's token.
	Question string `json:"question,omitempty"`
	// Waiters are the calls that wait for this record's decision. The first waiter is the record's own
	// request. nod adds calls and never removes any.
	Waiters []Waiter `json:"waiters,omitempty"`
	// Joined is the pending_id of the question that has this request among its Waiters. The decision is
	// first stored in that question's record. Joined is empty in the record of a question.
	Joined     string    `json:"joined,omitempty"`
	Remember   []Reach   `json:"remember,omitempty"`   // the later calls that an answer may allow, as prompts offer them
	Holder     string    `json:"holder,omitempty"`     // the session that gets the granted permissions
	Foreground string    `json:"foreground,omitempty"` // the session that shows the request of a background session
	Decision   *Decision `json:"decision"`
	// Run is not nil if the call was allowed to run contained. In a pending record, it is not nil if an
	// allow will make the call run contained.
	Run *ContainedRun `json:"run,omitempty"`
	// Aftermath describes those calls that ended at the host differently from the decision. It is added
	// after the decision, which stays unchanged.
	Aftermath []Aftermath `json:"aftermath,omitempty"`
	// Trace is nil if the request is not traced.
	Trace *Trace `json:"trace,omitempty"`
	Later Later  `json:"-"`
}

// Trace is a request's place in an OpenTelemetry trace. The record keeps it, so that a span that begins
// in one engine can end hours later in another.
type Trace struct {
	// Traceparent and Tracestate name the request's own span in the format of W3C Trace Context.
	Traceparent string `json:"traceparent"`
	Tracestate  string `json:"tracestate,omitempty"`
	// Parent is the id of the agent's span in the same trace. It is empty if the trace begins with the
	// request.
	Parent string `json:"parent,omitempty"`
	// Links has the traceparent of the question that the request has joined. If the request does not
	// continue the trace that the agent gave, Links also has the agent's traceparent.
	Links []string  `json:"links,omitempty"`
	At    time.Time `json:"at"` // when the engine got the request, in broker time
	Later Later     `json:"-"`
}

// AftermathKind says in which way a call ended at its host differently from the decision.
type AftermathKind string

// The kinds of aftermath.
const (
	// AftermathRan means that the call ran although nod had not allowed it, because the user allowed it
	// at the agent's own terminal.
	AftermathRan AftermathKind = "ran"
	// AftermathNeverRan means that the call was allowed but never ran, because its agent no longer
	// waited.
	AftermathNeverRan AftermathKind = "never_ran"
	// AftermathUncontained means that the host ran the call without a container, although the call was
	// allowed only contained.
	AftermathUncontained AftermathKind = "uncontained"
)

// Aftermath describes how one call ended at its host, if this end differs from the decision.
type Aftermath struct {
	PendingID string        `json:"pending_id"`
	Kind      AftermathKind `json:"kind"`
	Reason    string        `json:"reason"` // a reason for people, such as "answered at the terminal"
	At        time.Time     `json:"at"`
	Later     Later         `json:"-"`
}

// Terminal reports whether the record has its decision.
func (r *Record) Terminal() bool { return r.Decision != nil }

// Waiter is one call that waits for a record's decision.
type Waiter struct {
	PendingID string `json:"pending_id"`
	Digest    string `json:"digest"`
	// Deadline is the deadline of this call alone. TimeoutSeconds is its full waiting time.
	Deadline       time.Time `json:"deadline"`
	TimeoutSeconds int       `json:"timeout_seconds,omitempty"`
	// Place is the call's position in the order in which calls joined the question, from 0. An answer to
	// a prompt that showed n calls covers the places below n. If a call's agent stops waiting and sends
	// the call again, the call keeps its place.
	Place int `json:"place,omitempty"`
	// Detached means that the call's agent no longer waits. If a person allows the call once, the
	// approval becomes a standing answer.
	Detached bool `json:"detached,omitempty"`
	// SplitOff means that the record's decision does not cover this call. The call becomes a question of
	// its own.
	SplitOff bool `json:"stays,omitempty"`
	// Decision is a decision about this call alone, made while the question is pending.
	Decision *Decision `json:"decision,omitempty"`
	Later    Later     `json:"-"`
}

// Open reports whether the record's decision will cover the waiter. It returns false if the waiter has a
// decision of its own or is split off.
func (w *Waiter) Open() bool { return w.Decision == nil && !w.SplitOff }

// Waiter returns the waiter with this pending_id. It returns nil if the record has no such waiter.
func (r *Record) Waiter(pendingID string) *Waiter {
	for i := range r.Waiters {
		if r.Waiters[i].PendingID == pendingID {
			return &r.Waiters[i]
		}
	}
	return nil
}

// Waits reports whether the record is pending and its decision will cover this call. The call may be
// detached.
func (r *Record) Waits(pendingID string) bool {
	w := r.Waiter(pendingID)
	return !r.Terminal() && w != nil && w.Open()
}

// Verdict returns the decision about the call with this pending_id. It returns nil if the call is
// undecided, unknown, or split off from the question.
func (r *Record) Verdict(pendingID string) *Decision {
	w := r.Waiter(pendingID)
	switch {
	case w == nil || w.SplitOff:
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

// Places returns the number of calls that have asked the question, including calls that no longer wait.
func (r *Record) Places() int {
	n := 0
	for i := range r.Waiters {
		n = max(n, r.Waiters[i].Place+1)
	}
	return n
}

// Waiting counts the open calls of the record. The result open is the number of all open calls, and
// waiting is the number of those that are not detached.
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

// Unattended reports whether the record has open calls and all of them are detached.
func (r *Record) Unattended() bool {
	waiting, open := r.Waiting()
	return open > 0 && waiting == 0
}

// LogKind is the kind of event that a log entry is about.
type LogKind string

// The kinds of log entry.
const (
	LogAsked LogKind = "asked"
	LogVoted LogKind = "voted" // a person has allowed a request that several people must allow
	// LogVouched means that a person with a login at an issuer acts. The entry has the person's Login,
	// and is stored before the person's answer, freeze, thaw or revocation counts.
	LogVouched LogKind = "vouched"
	// LogShown means that a phone or chat shows a question to a person. LogUndelivered means that it
	// cannot show the question. An inbox gets no such entries, because it shows every question.
	LogShown       LogKind = "shown"
	LogUndelivered LogKind = "undelivered"
	LogDecided     LogKind = "decided"
	LogClaim       LogKind = "claim" // reserves the request's id, because the decision is in the request's record and not in the log
	LogSettings    LogKind = "settings"
	LogSession     LogKind = "session"
	LogGranted     LogKind = "granted"
	LogRevoked     LogKind = "revoked"
	LogFrozen      LogKind = "frozen"
	LogThawed      LogKind = "thawed"
	// LogAftermath means that a call ended at its host differently from the decision.
	LogAftermath LogKind = "aftermath"
	// LogRan means that a command ran contained.
	LogRan LogKind = "ran"
	// LogRestored means that the stores were restored from a backup. The log has lost the entries from
	// the time between the backup and the restore.
	LogRestored LogKind = "restored"
	// LogCheckpoint means that an engine has signed the entries since the last checkpoint.
	LogCheckpoint LogKind = "checkpoint"
)

// LogEntry is one entry of permission_log. It contains the payload of a request only if the settings
// enable payloads. If a request has no record, the entry contains its whole decision, because no other
// store has that decision.
type LogEntry struct {
	Type             string     `json:"type"`
	At               time.Time  `json:"at"`
	Kind             LogKind    `json:"kind"`
	SessionID        string     `json:"session_id,omitempty"`
	PendingID        string     `json:"pending_id,omitempty"`
	Actor            string     `json:"actor,omitempty"`
	Agent            string     `json:"agent,omitempty"`   // the agent of a decided request, if Actor is not the agent
	AskedAt          time.Time  `json:"asked_at,omitzero"` // when the question was asked; in the entry of its decision
	ToolName         string     `json:"tool_name,omitempty"`
	Digest           string     `json:"digest,omitempty"`
	Rule             string     `json:"rule,omitempty"`
	Outcome          Outcome    `json:"outcome,omitempty"`
	SettingsRevision uint64     `json:"settings_revision,omitempty"`
	Decision         *Decision  `json:"decision,omitempty"`
	Aftermath        *Aftermath `json:"aftermath,omitempty"`
	// Run is the report about a contained command, without the names of changed files.
	Run        *RunReport  `json:"run,omitempty"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Login      *Login      `json:"login,omitempty"` // for LogVouched
	// Request is the request's bytes, if the settings enable payloads. Marks replace its secrets, so the
	// digest of Request may differ from the field Digest.
	Request json.RawMessage `json:"request,omitempty"`
	// Redacted is the number of secrets in the entry that nod has replaced by a mark. 0 means that nod
	// has not changed the entry, even if the entry contains such a mark.
	Redacted int `json:"redacted,omitempty"`
}
