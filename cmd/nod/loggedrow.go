package main

import (
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// loggedRow is the JSON form of a request from the log. It has the field names of a requestRow, but only the
// fields that the log can fill.
type loggedRow struct {
	*schemas.Request                     // nil if the log does not have the request itself
	PendingID        string              `json:"pending_id"`
	SessionID        string              `json:"session_id"`
	ToolName         string              `json:"tool_name,omitempty"`
	CreatedAt        time.Time           `json:"created_at,omitzero"`
	Agent            string              `json:"agent,omitempty"`
	Digest           string              `json:"digest,omitempty"`
	Redacted         int                 `json:"redacted,omitempty"`
	QuestionNotFound bool                `json:"question_not_found,omitempty"`
	Decision         *pastEnd            `json:"decision,omitempty"`
	ReadTo           time.Time           `json:"read_to,omitzero"`
	Aftermath        []schemas.Aftermath `json:"aftermath,omitempty"`
	Run              *pastRun            `json:"run,omitempty"`
	Logged           bool                `json:"logged"`
}

// pastEnd is the part of a schemas.Decision that the log has.
type pastEnd struct {
	Outcome   schemas.Outcome `json:"outcome"`
	By        schemas.By      `json:"by"`
	DecidedAt time.Time       `json:"decided_at"`
}

// pastRun is the part of a schemas.ContainedRun that the log has.
type pastRun struct {
	Report *schemas.RunReport `json:"report"`
}

func loggedRowOf(l *schemas.LoggedRequest) loggedRow {
	row := loggedRow{
		PendingID: l.PendingID, SessionID: l.SessionID, ToolName: l.ToolName, CreatedAt: l.AskedAt, Agent: l.Agent, Digest: l.Digest,
		Redacted: l.Redacted, QuestionNotFound: l.QuestionNotFound, ReadTo: l.ReadTo, Aftermath: l.Aftermath, Logged: true,
	}
	if p, known := people.FromLog(l); known {
		row.Request, row.ToolName = &p.Request, p.Request.ToolName
	}
	if d := l.Decided; d != nil {
		row.Decision = &pastEnd{d.Outcome, d.By, d.At}
	}
	if l.Run != nil {
		row.Run = &pastRun{l.Run}
	}
	return row
}

// historyRows returns the rows of the stored requests, followed by the rows of the log.
func historyRows(stored []schemas.Prompt, logged []schemas.LoggedRequest) []any {
	rows := make([]any, 0, len(stored)+len(logged))
	for _, p := range stored {
		rows = append(rows, rowOf(p))
	}
	for i := range logged {
		rows = append(rows, loggedRowOf(&logged[i]))
	}
	return rows
}
