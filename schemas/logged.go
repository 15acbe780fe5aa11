package schemas

import (
	"encoding/json"
	"time"
)

// LoggedRequest is what the log has about a request whose record is no longer kept. It is no
// Prompt: nobody can answer it, and it has no grant that could end.
type LoggedRequest struct {
	// Sequence is the place of the request's decision in the log, or of its question if the log
	// has no decision.
	Sequence  uint64    `json:"sequence"`
	SessionID string    `json:"session_id"`
	PendingID string    `json:"pending_id"`
	Agent     string    `json:"agent"`
	ToolName  string    `json:"tool_name,omitempty"`
	Digest    string    `json:"digest,omitempty"`
	AskedAt   time.Time `json:"asked_at,omitzero"`
	// Request is the request's bytes as the log has them, with Redacted marks in place of
	// secrets. It is empty unless the settings had payloads logged.
	Request  json.RawMessage `json:"request,omitempty"`
	Redacted int             `json:"redacted,omitempty"`
	// QuestionNotFound means that the engine did not find the request's question. It reads a
	// bounded number of entries for it, so the log may have the question, and Request with it.
	QuestionNotFound bool `json:"question_not_found,omitempty"`
	// Decided is nil if the log has no decision about the request.
	Decided *LoggedDecision `json:"decided,omitempty"`
	// ReadTo is set if Decided is nil and the log was not read to its end: the time of the newest
	// entry among which the decision was looked for.
	ReadTo    time.Time   `json:"read_to,omitzero"`
	Aftermath []Aftermath `json:"aftermath,omitempty"`
	Run       *RunReport  `json:"run,omitempty"` // the report of a contained command, without the names of changed files
}

// Key returns the key of the record that the request had.
func (l *LoggedRequest) Key() string { return Key(l.SessionID, l.PendingID) }

// LoggedDecision is what the log has about a decision. It has no message, no option and no edited
// input.
type LoggedDecision struct {
	Outcome Outcome   `json:"outcome"`
	By      By        `json:"by"`
	At      time.Time `json:"at"`
}

// LogExtent says how far a Page of the log reaches, by the times at which entries were stored.
type LogExtent struct {
	Begins  time.Time `json:"begins,omitzero"`  // the oldest entry of the log; zero if the log is empty
	Reached time.Time `json:"reached,omitzero"` // the oldest entry that was read so far
}
