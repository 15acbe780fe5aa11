package bus

import (
	"encoding/json"
	"errors"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/schemas/redact"
)

// errSecretDecision means that a log entry has a decision with a secret. Such a decision needs a
// record. The log would store it without the secret, but an agent that sends its request again must
// get the decision unchanged.
var errSecretDecision = errors.New("a decision with a secret belongs in a record, not in the log")

// HasSecret reports whether a decision's texts have a secret. The log refuses a decision with a secret.
func (l *Log) HasSecret(d *schemas.Decision) bool {
	_, message := l.Redact.Text(d.Message)
	_, rule := l.Redact.Text(d.By.Name)
	return message+rule > 0
}

// redacted returns the entry with a mark in place of each secret.
func (l *Log) redacted(e schemas.LogEntry) (schemas.LogEntry, error) {
	if e.Decision != nil && (l.HasSecret(e.Decision) || e.Decision.UpdatedInput != nil) {
		return e, errSecretDecision
	}
	clean := func(s string) string {
		s, n := l.Redact.Text(s)
		e.Redacted += n
		return s
	}
	e.Rule, e.ToolName, e.Actor = clean(e.Rule), clean(e.ToolName), clean(e.Actor)
	if e.Aftermath != nil {
		a := *e.Aftermath
		a.Reason = clean(a.Reason)
		e.Aftermath = &a
	}
	if e.Run != nil {
		run := *e.Run
		run.Refused = make([]string, len(e.Run.Refused))
		for i, host := range e.Run.Refused {
			run.Refused[i] = clean(host)
		}
		e.Run = &run
	}
	if e.Request != nil {
		request, n, err := l.Redact.JSON(e.Request)
		if err != nil { // a request that cannot be parsed may have a secret anywhere
			request, n = json.RawMessage(`{"unreadable":"`+redact.Mark+`"}`), 1
		}
		e.Request = request
		e.Redacted += n
	}
	return e, nil
}
