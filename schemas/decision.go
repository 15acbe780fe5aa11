package schemas

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// Outcome is how a request ended.
type Outcome string

// The outcomes. Only Allowed lets an agent act.
const (
	Allowed   Outcome = "allowed"
	Denied    Outcome = "denied"
	Cancelled Outcome = "cancelled" // a person dismissed the question, or no person could be asked
	TimedOut  Outcome = "timed_out"
	Withdrawn Outcome = "withdrawn" // the agent ended its request
)

// ByKind is the kind of party that decided.
type ByKind string

// The kinds of party that decide.
const (
	ByHuman  ByKind = "human"
	ByPolicy ByKind = "policy"
	ByClock  ByKind = "clock"
	ByAgent  ByKind = "agent"
)

// NobodyReached is the By.Name of a decision that cancels a permission request because no route
// could show it.
const NobodyReached = "nobody reached"

// By is the party that decided. Name is the name of the approver, the rule or the agent.
type By struct {
	Kind      ByKind `json:"kind"`
	Name      string `json:"name,omitempty"`
	Connector string `json:"connector,omitempty"`
	Later     Later  `json:"-"`
}

// DescribeRule describes for agents and people the cause of a decision without a person, such
// as "the rule Bash(make)".
func (b By) DescribeRule() string {
	if by, frozen := strings.CutPrefix(b.Name, "frozen by "); frozen {
		return "the freeze by " + by
	}
	switch b.Name {
	case "", "default":
		return "the built-in rules"
	case "default contained":
		return "the preset contained"
	}
	return "the rule " + b.Name
}

// Decision is the one final outcome of a request.
type Decision struct {
	Type       string     `json:"type"`
	SessionID  string     `json:"session_id"`
	PendingID  string     `json:"pending_id"`
	DecisionID string     `json:"decision_id"` // a unique id, by which an engine recognises its own decision in the store
	Outcome    Outcome    `json:"outcome"`
	OptionID   string     `json:"option_id,omitempty"`
	OptionKind OptionKind `json:"option_kind,omitempty"`
	Scope      Scope      `json:"scope,omitempty"`
	// Grant is the standing answer that the decision makes, or nil: a lasting allow, or a
	// single approval for the agent's next identical call.
	Grant *StandingAnswer `json:"grant,omitempty"`
	By    By              `json:"by"` // of several people, the last one
	// Votes are the allows of all people, if several had to allow the request.
	Votes   []Vote `json:"votes,omitempty"`
	Message string `json:"message,omitempty"`
	// UpdatedInput is the input to run instead of the agent's. A person has edited the input,
	// or nod has changed it to run the call contained or with git hardened.
	UpdatedInput json.RawMessage `json:"updated_input,omitempty"`
	Digest       string          `json:"digest"`
	// SettingsRevision is the revision of the settings in force at the decision.
	SettingsRevision uint64    `json:"settings_revision,omitempty"`
	DecidedAt        time.Time `json:"decided_at"` // the time of the decision, in broker time
	Later            Later     `json:"-"`
}

// Lasts reports whether d also allows later calls: its grant has rules or permissions.
func (d *Decision) Lasts() bool { return d.Grant != nil && d.Grant.Call == nil }

// SameEffect reports whether two decisions have the same outcome, option and edited input, and
// the same result of Lasts. An answer that comes after a decision with the same effect
// succeeds.
func (d *Decision) SameEffect(other *Decision) bool {
	return d.Outcome == other.Outcome && d.OptionID == other.OptionID && d.Lasts() == other.Lasts() && compact(d.UpdatedInput) == compact(other.UpdatedInput)
}

// compact returns data without white space.
func compact(data json.RawMessage) string {
	var buf bytes.Buffer
	if json.Compact(&buf, data) != nil {
		return string(data)
	}
	return buf.String()
}
