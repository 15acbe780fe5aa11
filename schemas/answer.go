package schemas

import (
	"encoding/json"
	"time"
)

// From identifies a person on a channel. Its fields have the ids that the channel guarantees for the
// person, and no display names.
type From struct {
	UserID    string `json:"user_id"`
	Chat      string `json:"chat,omitempty"`
	MessageID string `json:"message_id,omitempty"`
	// Login is what the person's issuer says about the person. It is nil if the person has not logged in
	// at an issuer.
	Login *Login `json:"login,omitempty"`
}

// NotApprover returns FORBIDDEN, with the remedy, for a person who is no approver on this connector.
func (f *From) NotApprover(connector string) error {
	if f.Login != nil {
		return Errorf(CodeForbidden, "%q is in no group that may answer (its groups that the settings name: %d): ask for one of approvers.groups, or add the identity under approvers.people in settings.json and run `nod settings apply`", f.UserID, len(f.Login.Groups))
	}
	return Errorf(CodeForbidden, "%q on %s is not an approver: add the identity under approvers.people in settings.json and run `nod settings apply`", f.UserID, connector)
}

// Answer is a person's answer to a Prompt. It repeats the prompt's digest, because the engine refuses
// an answer whose digest is not that of the request.
type Answer struct {
	Type         string          `json:"type"`
	SessionID    string          `json:"session_id"`
	PendingID    string          `json:"pending_id"`
	Digest       string          `json:"digest"`
	OptionID     string          `json:"option_id,omitempty"`
	Cancelled    bool            `json:"cancelled,omitempty"`
	Message      string          `json:"message,omitempty"`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty"`
	// A Scope wider than ScopeOnce also allows the later calls that Reach selects, for ForSeconds
	// seconds. If ForSeconds is 0, they are allowed until the grant is revoked.
	Scope      Scope `json:"scope,omitempty"`
	Reach      int   `json:"reach,omitempty"` // the index of the chosen element in the prompt's list Remember
	ForSeconds int   `json:"for_seconds,omitempty"`
	// Waiters repeats the prompt's Waiters. The answer decides that many calls, in the order in which
	// they were asked. Calls that joined later stay pending. 0 means 1: only the first call.
	Waiters int `json:"waiters,omitempty"`
	// CodeWord is the code word, if the settings demand one for the request's risk. nod never stores a
	// code word.
	CodeWord string `json:"code_word,omitempty"`
	From     From   `json:"from"`
}

// Key returns the key of the request's record.
func (a *Answer) Key() string { return Key(a.SessionID, a.PendingID) }

// Prompt is a request as one recipient on one connector is shown it. A Prompt without a Recipient is
// for all viewers.
type Prompt struct {
	Type      string   `json:"type"`
	SessionID string   `json:"session_id"`
	PendingID string   `json:"pending_id"`
	Connector string   `json:"connector,omitempty"`
	Recipient string   `json:"recipient,omitempty"`
	Revision  uint64   `json:"revision"` // the record's revision; a receiver ignores a prompt with a lower revision than one that it has already received
	Agent     string   `json:"agent"`
	Request   Request  `json:"request"`
	Digest    string   `json:"digest"`
	Risk      Risk     `json:"risk"`
	Reasons   []string `json:"reasons,omitempty"` // the reasons for the risk
	Targets   []Target `json:"targets,omitempty"` // the files or other targets that these reasons are about, if nod knows them
	// Unseen describes code that the call runs but that its input does not show, such as a downloaded
	// script.
	Unseen []string `json:"unseen,omitempty"`
	// OnDisk describes the file that the call writes. It is nil if no engine has read the file.
	OnDisk   *DiskFile `json:"on_disk,omitempty"`
	Tier     Tier      `json:"tier"`
	Deadline time.Time `json:"deadline"`
	// Remember lists sets of later calls, the narrowest set first. An answer with a scope wider than
	// ScopeOnce chooses one set. Remember is empty if nod cannot tell which calls a lasting allow would
	// cover.
	Remember []Reach `json:"remember,omitempty"`
	// Conditions lists the conditions for an allow besides an approver's answer. It has one text, made by
	// Confirm.String, for each confirmation rule that covers the request.
	Conditions []string `json:"takes,omitempty"`
	// Foreground is the foreground session that shows this request, if the request's own session is a
	// background session.
	Foreground string `json:"foreground,omitempty"`
	// Detached means that no agent waits for the answer. An allow then becomes a standing answer for the
	// agent's next identical call before the deadline.
	Detached bool `json:"detached,omitempty"`
	// Joined is the pending_id of the question that decides this request. It is empty if the request
	// itself is the question. People see and answer only questions.
	Joined string `json:"joined,omitempty"`
	// Waiters is the number of identical calls that have asked this question, including calls that no
	// longer wait. An answer repeats this number. Waiting is the number of those calls that still wait
	// and would run if the question were allowed once.
	Waiters int `json:"waiters,omitempty"`
	Waiting int `json:"waiting,omitempty"`
	// VotesNeeded is the number of people who must allow the request; 0 means one. Votes are the allows
	// so far that count under the settings in force. If VotesNeeded is set, Waiters and Waiting count
	// only calls that every vote covers.
	VotesNeeded int    `json:"votes_needed,omitempty"`
	Votes       []Vote `json:"votes,omitempty"`
	// Next says when further people are asked and who they are. It is nil if all people have been asked.
	// Zone is the recipient's time zone, if the settings name one.
	Next     *NextStep `json:"next,omitempty"`
	Zone     string    `json:"zone,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
	// Aftermath describes those calls that ended at the host differently from the decision.
	Aftermath []Aftermath `json:"aftermath,omitempty"`
	// Run is not nil if the call was allowed to run contained.
	Run *ContainedRun `json:"run,omitempty"`
	// Repeat means that an earlier attempt may already have shown this prompt.
	Repeat bool `json:"repeat,omitempty"`
}

// NextStep says when a pending request is asked of further people.
type NextStep struct {
	At time.Time `json:"at"`
	To []string  `json:"to"` // the names of the people who are asked in the next step
}

// Key returns the key of the prompt's record.
func (p *Prompt) Key() string { return Key(p.SessionID, p.PendingID) }

// Query asks for a page of stored requests, sessions, grants or settings.
type Query struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id,omitempty"`
	// PendingID is a whole id, or a unique prefix of an id with at least MinPrefix characters.
	PendingID string `json:"pending_id,omitempty"`
	// Recipient limits the page to the requests that a person may see on the calling connector, or to the
	// grants that this person may revoke.
	Recipient string `json:"recipient,omitempty"`
	// After is the field Next of the previous page. It is empty for the first page.
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"`
	// Log asks for older history, which is what the log has about requests whose records are no longer
	// kept. The newest request is first. If PendingID is set, the page has only requests whose ids begin
	// with PendingID.
	Log bool `json:"log,omitempty"`
}

// MinPrefix is the shortest length of an id's prefix that a Query accepts. The prefix must be unique
// among all kept records.
const MinPrefix = 4

// Page is the reply to a Query. Within a page, the oldest request is first. A request that changes
// between the reading of two pages may be on both pages. The later page has the newer version of the
// request.
type Page struct {
	Type    string    `json:"type"`
	Prompts []Prompt  `json:"prompts"`
	Next    string    `json:"next,omitempty"`
	Now     time.Time `json:"now"` // the broker's time, for countdowns
	// Logged and Log are the reply to a Query with Log set: the requests, the newest first, and how far
	// the page reaches into the log. Because the engine reads only a limited number of log entries for a
	// page, a page may have few requests, or none, even if more pages follow. Engines that cannot read
	// the log leave Log empty.
	Logged []LoggedRequest `json:"logged,omitempty"`
	Log    *LogExtent      `json:"log,omitempty"`
}
