package schemas

import (
	"encoding/json"
	"fmt"
	"time"
)

// LoggedRequest is what the log has about a request whose record is no longer kept. Unlike a Prompt, it
// cannot be answered, and it has no grant that could be ended.
type LoggedRequest struct {
	// Sequence is the sequence number of the log entry with the request's decision or, without a
	// decision in the log, of the entry with its question.
	Sequence  uint64    `json:"sequence"`
	SessionID string    `json:"session_id"`
	PendingID string    `json:"pending_id"`
	Agent     string    `json:"agent"`
	ToolName  string    `json:"tool_name,omitempty"`
	Digest    string    `json:"digest,omitempty"`
	AskedAt   time.Time `json:"asked_at,omitzero"`
	// Request is the request's bytes as the log has them. Redacted is the number of marks in it that
	// replace secrets. Request is empty if the settings did not have payloads logged.
	Request  json.RawMessage `json:"request,omitempty"`
	Redacted int             `json:"redacted,omitempty"`
	// QuestionNotFound means that the engine did not find the log entry of the question, which has the
	// Request. The log may still have it, because the engine searches a limited number of entries.
	QuestionNotFound bool `json:"question_not_found,omitempty"`
	// Decided is nil if no decision about the request was found in the log.
	Decided *LoggedDecision `json:"decided,omitempty"`
	// ReadTo is set if no decision was found and the search ended before the end of the log. It is the
	// time of the newest entry that was searched.
	ReadTo    time.Time   `json:"read_to,omitzero"`
	Aftermath []Aftermath `json:"aftermath,omitempty"`
	Run       *RunReport  `json:"run,omitempty"` // the report of a contained command, without the names of changed files
}

// Key returns the key that the request's record had.
func (l *LoggedRequest) Key() string { return Key(l.SessionID, l.PendingID) }

// Question returns a text that is equal for two entries of the log if, and only if, both are about one request.
// The Key is not enough for that, because an agent may use an id and a time again.
func (l *LoggedRequest) Question() string {
	return fmt.Sprint(l.Key(), " ", l.AskedAt.UnixNano(), " ", l.Digest)
}

// LoggedDecision is what the log has about a decision. It lacks the message, the option and the edited
// input.
type LoggedDecision struct {
	Outcome Outcome   `json:"outcome"`
	By      By        `json:"by"`
	At      time.Time `json:"at"`
}

// LogExtent says how far back a page of the log reaches, by the times at which entries were stored.
type LogExtent struct {
	Begins  time.Time `json:"begins,omitzero"`  // when the oldest entry in the log was stored; zero if the log is empty
	Reached time.Time `json:"reached,omitzero"` // when the oldest entry that was read for the pages so far was stored
}
