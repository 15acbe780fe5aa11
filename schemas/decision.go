package schemas

import (
	"bytes"
	"encoding/json"
	"time"
)

// Outcome is how a request ended.
type Outcome string

// The outcomes. Only Allowed lets an agent go on.
const (
	Allowed   Outcome = "allowed"
	Denied    Outcome = "denied"
	Cancelled Outcome = "cancelled" // a person dismissed the question
	TimedOut  Outcome = "timed_out"
	Withdrawn Outcome = "withdrawn" // the agent stopped waiting
)

// ByKind is the sort of party that decided.
type ByKind string

// Who decides.
const (
	ByHuman  ByKind = "human"
	ByPolicy ByKind = "policy"
	ByClock  ByKind = "clock"
	ByAgent  ByKind = "agent"
)

// NobodyReached is the name of what ends a request for permissions that could
// be shown to nobody.
const NobodyReached = "nobody reached"

// By says who decided. Name is the approver's name or the rule.
type By struct {
	Kind      ByKind `json:"kind"`
	Name      string `json:"name,omitempty"`
	Connector string `json:"connector,omitempty"`
}

// Decision is the one final outcome of a request.
type Decision struct {
	Type       string     `json:"type"`
	SessionID  string     `json:"session_id"`
	PendingID  string     `json:"pending_id"`
	DecisionID string     `json:"decision_id"` // unique: tells whose write won
	Outcome    Outcome    `json:"outcome"`
	OptionID   string     `json:"option_id,omitempty"`
	OptionKind OptionKind `json:"option_kind,omitempty"`
	Scope      Scope      `json:"scope,omitempty"`
	// Grant is the standing answer that the decision makes: what is allowed from now
	// on, or a call that is let through if it is asked again.
	Grant   *StandingAnswer `json:"grant,omitempty"`
	By      By              `json:"by"`
	Message string          `json:"message,omitempty"`
	// UpdatedInput replaces the tool's input, where a person edited it.
	UpdatedInput json.RawMessage `json:"updated_input,omitempty"`
	Digest       string          `json:"digest"`
	// SettingsRevision names the settings the decision was made under.
	SettingsRevision uint64    `json:"settings_revision,omitempty"`
	DecidedAt        time.Time `json:"decided_at"` // broker time
}

// Lasts reports whether d allows more than one call: what is allowed from now on.
func (d *Decision) Lasts() bool { return d.Grant != nil && d.Grant.Call == nil }

// Same reports whether d says what another decision would have said: the same
// outcome and option, the same edit of the input, and as lasting. The loser of a race who
// said the same has succeeded.
func (d *Decision) Same(other *Decision) bool {
	return d.Outcome == other.Outcome && d.OptionID == other.OptionID && d.Lasts() == other.Lasts() && compact(d.UpdatedInput) == compact(other.UpdatedInput)
}

// compact is JSON without its white space.
func compact(data json.RawMessage) string {
	var buf bytes.Buffer
	if json.Compact(&buf, data) != nil {
		return string(data)
	}
	return buf.String()
}
