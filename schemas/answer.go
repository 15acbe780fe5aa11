package schemas

import (
	"encoding/json"
	"time"
)

// From identifies a person on a channel, by ids that the channel vouches for, never by
// display names.
type From struct {
	UserID    string `json:"user_id"`
	Chat      string `json:"chat,omitempty"`
	MessageID string `json:"message_id,omitempty"`
}

// Answer is a person's answer to a Prompt. It repeats the digest of that prompt and is
// refused if the request has another one.
type Answer struct {
	Type         string          `json:"type"`
	SessionID    string          `json:"session_id"`
	PendingID    string          `json:"pending_id"`
	Digest       string          `json:"digest"`
	OptionID     string          `json:"option_id,omitempty"`
	Cancelled    bool            `json:"cancelled,omitempty"`
	Message      string          `json:"message,omitempty"`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty"`
	// Scope beyond ScopeOnce also allows later calls, those in Reach, for ForSeconds or,
	// if that is 0, until the grant is revoked.
	Scope      Scope `json:"scope,omitempty"`
	Reach      int   `json:"reach,omitempty"` // index in the prompt's Remember
	ForSeconds int   `json:"for_seconds,omitempty"`
	// Waiters repeats the prompt's Waiters: the answer decides about these calls, and a
	// call that joined later stays pending. 0 means 1, the call that asked first.
	Waiters int `json:"waiters,omitempty"`
	// CodeWord is the word that settings may demand. It is never stored.
	CodeWord string `json:"code_word,omitempty"`
	From     From   `json:"from"`
}

// Key is the key of the request's record.
func (a *Answer) Key() string { return Key(a.SessionID, a.PendingID) }

// Prompt is a request as one recipient is shown it through one connector. With an empty
// recipient it is the view that every viewer gets.
type Prompt struct {
	Type      string    `json:"type"`
	SessionID string    `json:"session_id"`
	PendingID string    `json:"pending_id"`
	Connector string    `json:"connector,omitempty"`
	Recipient string    `json:"recipient,omitempty"`
	Revision  uint64    `json:"revision"` // of the record; ignore a lower one than seen before
	Agent     string    `json:"agent"`
	Request   Request   `json:"request"`
	Digest    string    `json:"digest"`
	Risk      Risk      `json:"risk"`
	Reasons   []string  `json:"reasons,omitempty"` // why policy set this risk
	Tier      Tier      `json:"tier"`
	Deadline  time.Time `json:"deadline"`
	// Remember lists the reaches that an answer with a wider scope may choose from, the
	// narrowest first. It is empty if nod cannot bound one.
	Remember []Reach `json:"remember,omitempty"`
	// Takes lists the conditions of an allow, besides an approver's answer.
	Takes []string `json:"takes,omitempty"`
	// Foreground is the session that shows the request of a background session.
	Foreground string `json:"foreground,omitempty"`
	// Detached: no agent waits for the answer. An allow becomes a standing answer for the
	// agent's next identical call before the deadline.
	Detached bool `json:"detached,omitempty"`
	// Joined is the pending_id of the question that decides this request. It is empty in
	// the question itself, the only record that is shown and answered.
	Joined string `json:"joined,omitempty"`
	// Waiters counts the identical calls that have asked this question, including those
	// that no longer wait. An answer repeats it. Waiting counts those that still wait: as
	// many calls run if the question is allowed once.
	Waiters  int       `json:"waiters,omitempty"`
	Waiting  int       `json:"waiting,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
	// Aftermath lists the calls that ended otherwise than decided.
	Aftermath []Aftermath `json:"aftermath,omitempty"`
	// Repeat: an earlier attempt may already have shown this prompt.
	Repeat bool `json:"repeat,omitempty"`
}

// Key is the key of the prompt's record.
func (p *Prompt) Key() string { return Key(p.SessionID, p.PendingID) }

// Query asks for a page of stored requests, sessions, grants or settings.
type Query struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id,omitempty"`
	// PendingID is an id or a unique prefix of at least MinPrefix characters.
	PendingID string `json:"pending_id,omitempty"`
	// Recipient limits the page to the requests that this person may see, or the grants
	// that they may revoke, on the calling connector.
	Recipient string `json:"recipient,omitempty"`
	// After is the Next of the previous page, unchanged. It is empty for the first page.
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// MinPrefix is the shortest prefix of a pending_id that a Query accepts, if it is unique
// among all kept records.
const MinPrefix = 4

// Page answers a Query, oldest request first within a page. A request that changes
// between two pages may be in both; the later page has the newer version.
type Page struct {
	Type    string    `json:"type"`
	Prompts []Prompt  `json:"prompts"`
	Next    string    `json:"next,omitempty"`
	Now     time.Time `json:"now"` // broker time, for countdowns
}
