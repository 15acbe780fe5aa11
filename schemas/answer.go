package schemas

import (
	"encoding/json"
	"time"
)

// From identifies a person on a channel by ids that the channel guarantees, never by display
// names.
type From struct {
	UserID    string `json:"user_id"`
	Chat      string `json:"chat,omitempty"`
	MessageID string `json:"message_id,omitempty"`
	// Login is what the issuer of the person's login says; nil if the person has not logged in at
	// an issuer.
	Login *Login `json:"login,omitempty"`
}

// NotApprover returns FORBIDDEN for a person who is no approver on a connector, with the remedy.
func (f *From) NotApprover(connector string) error {
	if f.Login != nil {
		return Errorf(CodeForbidden, "%q is in no group that may answer (its groups that the settings name: %d): ask for one of approvers.groups, or add the identity under approvers.people in settings.json and run `nod settings apply`", f.UserID, len(f.Login.Groups))
	}
	return Errorf(CodeForbidden, "%q on %s is not an approver: add the identity under approvers.people in settings.json and run `nod settings apply`", f.UserID, connector)
}

// Answer is a person's answer to a Prompt. It repeats the prompt's digest. The engine refuses
// an answer whose digest differs from the request's digest.
type Answer struct {
	Type         string          `json:"type"`
	SessionID    string          `json:"session_id"`
	PendingID    string          `json:"pending_id"`
	Digest       string          `json:"digest"`
	OptionID     string          `json:"option_id,omitempty"`
	Cancelled    bool            `json:"cancelled,omitempty"`
	Message      string          `json:"message,omitempty"`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty"`
	// Scope, if it is wider than ScopeOnce, also allows later calls: those that Reach selects,
	// for ForSeconds. If ForSeconds is 0, they are allowed until the grant is revoked.
	Scope      Scope `json:"scope,omitempty"`
	Reach      int   `json:"reach,omitempty"` // the index of the chosen element of the prompt's Remember
	ForSeconds int   `json:"for_seconds,omitempty"`
	// Waiters repeats the prompt's Waiters. The answer decides that many calls, in the order in
	// which they were asked; calls that joined later stay pending. 0 means 1, the first call.
	Waiters int `json:"waiters,omitempty"`
	// CodeWord is the code word, if the settings demand one for the request's risk. nod never
	// stores it.
	CodeWord string `json:"code_word,omitempty"`
	From     From   `json:"from"`
}

// Key returns the key of the request's record.
func (a *Answer) Key() string { return Key(a.SessionID, a.PendingID) }

// Prompt is a request in the form for one recipient on one connector. A Prompt without a
// Recipient is the form for all viewers.
type Prompt struct {
	Type      string   `json:"type"`
	SessionID string   `json:"session_id"`
	PendingID string   `json:"pending_id"`
	Connector string   `json:"connector,omitempty"`
	Recipient string   `json:"recipient,omitempty"`
	Revision  uint64   `json:"revision"` // the record's revision; receivers ignore a prompt with a lower revision than an earlier prompt
	Agent     string   `json:"agent"`
	Request   Request  `json:"request"`
	Digest    string   `json:"digest"`
	Risk      Risk     `json:"risk"`
	Reasons   []string `json:"reasons,omitempty"` // the reasons for the risk
	Targets   []Target `json:"targets,omitempty"` // the objects of the reasons, if nod knows them
	// Unseen describes code that the call runs and does not contain, such as a downloaded script.
	Unseen []string `json:"unseen,omitempty"`
	// OnDisk describes the file that the call writes; nil if no engine has looked at it.
	OnDisk   *DiskFile `json:"on_disk,omitempty"`
	Tier     Tier      `json:"tier"`
	Deadline time.Time `json:"deadline"`
	// Remember lists sets of later calls, the narrowest first; an answer with a wider scope
	// chooses one set. Remember is empty if nod cannot tell which calls a lasting allow would
	// cover.
	Remember []Reach `json:"remember,omitempty"`
	// Conditions lists the conditions for an allow besides an approver's answer: one text, from
	// Confirm.String, for each confirmation rule that covers the request's risk.
	Conditions []string `json:"takes,omitempty"`
	// Foreground is the foreground session that shows the request of a background session.
	Foreground string `json:"foreground,omitempty"`
	// Detached means that no agent waits for the answer. An allow becomes a standing
	// answer for the agent's next identical call before the deadline.
	Detached bool `json:"detached,omitempty"`
	// Joined is the pending_id of the question that decides this request; empty if the request
	// is that question. People see and answer only questions.
	Joined string `json:"joined,omitempty"`
	// Waiters is the number of identical calls that have asked this question, including calls
	// that no longer wait. An answer repeats this number. Waiting is the number of calls that
	// still wait; they run if the question is allowed once.
	Waiters int `json:"waiters,omitempty"`
	Waiting int `json:"waiting,omitempty"`
	// VotesNeeded is the number of people who must allow the request; 0 means one. Votes are
	// the allows so far that count by the settings in force. Waiters and Waiting then count
	// only calls that every vote covers.
	VotesNeeded int    `json:"votes_needed,omitempty"`
	Votes       []Vote `json:"votes,omitempty"`
	// Next tells when further people are asked; nil means that all have been asked. Zone is the
	// recipient's time zone, if the settings name one.
	Next     *NextStep `json:"next,omitempty"`
	Zone     string    `json:"zone,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
	// Aftermath lists the calls whose end at the host differs from the decision.
	Aftermath []Aftermath `json:"aftermath,omitempty"`
	// Run is not nil if the call was allowed to run contained.
	Run *ContainedRun `json:"run,omitempty"`
	// Repeat means that an earlier attempt may have shown this prompt already.
	Repeat bool `json:"repeat,omitempty"`
}

// NextStep is the time at which a pending request is asked of further people.
type NextStep struct {
	At time.Time `json:"at"`
	To []string  `json:"to"` // the names of these people
}

// Key returns the key of the prompt's record.
func (p *Prompt) Key() string { return Key(p.SessionID, p.PendingID) }

// Query asks for a page of stored requests, sessions, grants or settings.
type Query struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id,omitempty"`
	// PendingID is an id, or a unique prefix of at least MinPrefix characters.
	PendingID string `json:"pending_id,omitempty"`
	// Recipient limits the page to the requests that a person may see on the calling connector,
	// or to the grants that the person may revoke.
	Recipient string `json:"recipient,omitempty"`
	// After is the Next of the previous page, or empty for the first page.
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"`
	// Log asks for the history before the records: what the log has about requests whose records
	// are no longer kept, the newest first. If PendingID is set, the page has only requests whose
	// id begins with it.
	Log bool `json:"log,omitempty"`
}

// MinPrefix is the length of the shortest prefix of a pending_id that a Query accepts. The
// prefix must be unique among all kept records.
const MinPrefix = 4

// Page is the reply to a Query: requests, the oldest first within a page. A request that
// changes between the reading of two pages may be on both; the later page has the newer
// version.
type Page struct {
	Type    string    `json:"type"`
	Prompts []Prompt  `json:"prompts"`
	Next    string    `json:"next,omitempty"`
	Now     time.Time `json:"now"` // the broker's time, for countdowns
	// Logged and Log are the reply to a Query with Log set: the requests, the newest first, and
	// how far the page reaches. The number of log entries that are read for a page is bounded, so
	// a page may have few requests, or none, and a Next. Engines that cannot read the log leave
	// Log empty.
	Logged []LoggedRequest `json:"logged,omitempty"`
	Log    *LogExtent      `json:"log,omitempty"`
}
