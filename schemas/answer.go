package schemas

import (
	"encoding/json"
	"time"
)

// From is who answered, in the words of the channel: identities that the
// channel vouches for, never display names.
type From struct {
	UserID    string `json:"user_id"`
	Chat      string `json:"chat,omitempty"`
	MessageID string `json:"message_id,omitempty"`
}

// Answer is what a person said to a Prompt. It names the digest it was shown
// and is refused if that differs.
type Answer struct {
	Type         string          `json:"type"`
	SessionID    string          `json:"session_id"`
	PendingID    string          `json:"pending_id"`
	Digest       string          `json:"digest"`
	OptionID     string          `json:"option_id,omitempty"`
	Cancelled    bool            `json:"cancelled,omitempty"`
	Message      string          `json:"message,omitempty"`
	UpdatedInput json.RawMessage `json:"updated_input,omitempty"`
	// Scope beyond once allows from then on what Reach says, for ForSeconds or,
	// where that is 0, until it is revoked.
	Scope      Scope `json:"scope,omitempty"`
	Reach      int   `json:"reach,omitempty"` // which of the prompt's, from 0
	ForSeconds int   `json:"for_seconds,omitempty"`
	// Waiters is the prompt's Waiters: the answer is about these calls. A call that
	// asked later stays open. 0 is 1, the call that asked first.
	Waiters int `json:"waiters,omitempty"`
	// CodeWord is the word that settings may want to hear; it is stored nowhere.
	CodeWord string `json:"code_word,omitempty"`
	From     From   `json:"from"`
}

// Prompt is a request as one person is shown it through one connector; with an
// empty recipient it is what every viewer sees.
type Prompt struct {
	Type      string    `json:"type"`
	SessionID string    `json:"session_id"`
	PendingID string    `json:"pending_id"`
	Connector string    `json:"connector,omitempty"`
	Recipient string    `json:"recipient,omitempty"`
	Revision  uint64    `json:"revision"` // of the record; ignore lower ones than seen
	Agent     string    `json:"agent"`
	Request   Request   `json:"request"`
	Digest    string    `json:"digest"`
	Risk      Risk      `json:"risk"`
	Reasons   []string  `json:"reasons,omitempty"` // why the risk is what it is
	Tier      Tier      `json:"tier"`
	Deadline  time.Time `json:"deadline"`
	// Remember are the reaches that an answer in a wider scope may have, the
	// narrowest first; none where nod cannot bound one.
	Remember []Reach `json:"remember,omitempty"`
	// Takes says what it takes to allow this, besides an approver's word.
	Takes []string `json:"takes,omitempty"`
	// Foreground is the session in whose place a background one asks.
	Foreground string `json:"foreground,omitempty"`
	// Detached: nobody waits for the answer; allowed, it is used where the agent
	// asks the same again before the deadline.
	Detached bool `json:"detached,omitempty"`
	// Joined is the pending_id of the question that decides this request; empty in a
	// question, which alone is shown and answered.
	Joined string `json:"joined,omitempty"`
	// Waiters is how many identical calls have asked this question, those included
	// that wait no longer. An answer repeats it. Waiting is how many of them still
	// wait: as many calls run if the question is allowed once.
	Waiters  int       `json:"waiters,omitempty"`
	Waiting  int       `json:"waiting,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
	// Aftermath tells of calls that ended otherwise than decided.
	Aftermath []Aftermath `json:"aftermath,omitempty"`
	// Repeat: an earlier try may have shown this already.
	Repeat bool `json:"repeat,omitempty"`
}

// Key is the prompt's record key.
func (p *Prompt) Key() string { return Key(p.SessionID, p.PendingID) }

// Query asks for a page of what nod holds.
type Query struct {
	Type      string `json:"type"`
	SessionID string `json:"session_id,omitempty"`
	// PendingID is an id or a unique prefix of at least MinPrefix characters.
	PendingID string `json:"pending_id,omitempty"`
	// Recipient limits what is listed to what this person may be shown, or undo, on the
	// connector that asks.
	Recipient string `json:"recipient,omitempty"`
	// After is the Next of the page before, as it is; empty for the first page.
	After string `json:"after,omitempty"`
	Limit int    `json:"limit,omitempty"`
}

// MinPrefix is how many characters of an id suffice where they are unique
// among all records that are kept.
const MinPrefix = 4

// Page answers a Query, oldest request first within a page. A request that changes
// between two pages may be in both: the later one is newer.
type Page struct {
	Type    string    `json:"type"`
	Prompts []Prompt  `json:"prompts"`
	Next    string    `json:"next,omitempty"`
	Now     time.Time `json:"now"` // broker time, for countdowns
}
