package schemas

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
)

// Outcome is how a request ended, such as allowed or timed out.
type Outcome string

// The outcomes. Only Allowed lets an agent act.
const (
	Allowed   Outcome = "allowed"
	Denied    Outcome = "denied"
	Cancelled Outcome = "cancelled" // a person dismissed the question, or nobody could be asked
	TimedOut  Outcome = "timed_out"
	Withdrawn Outcome = "withdrawn" // the agent withdrew its request, or the user answered it in the host's own prompt
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

// NobodyReached is the name in the field By of a decision that cancels a request for permissions
// because no route could show the request.
const NobodyReached = "nobody reached"

// By is the party that decided. Name is the name of the approver, of the rule or of the agent.
type By struct {
	Kind      ByKind `json:"kind"`
	Name      string `json:"name,omitempty"`
	Connector string `json:"connector,omitempty"`
	Later     Later  `json:"-"`
}

// DescribeRule describes, for agents and people, what decided a request without a person, for example
// "the rule Bash(make)".
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
	DecisionID string     `json:"decision_id"` // a random id by which an engine recognises its own decision in the store
	Outcome    Outcome    `json:"outcome"`
	OptionID   string     `json:"option_id,omitempty"`
	OptionKind OptionKind `json:"option_kind,omitempty"`
	Scope      Scope      `json:"scope,omitempty"`
	// Grant is the standing answer that the decision makes, or nil. The standing answer is a lasting
	// allow, or an approval of the agent's next identical call.
	Grant *StandingAnswer `json:"grant,omitempty"`
	By    By              `json:"by"` // the party that decided; if several people decided, the last of them
	// Votes are the allows of all people, if several people had to allow the request.
	Votes   []Vote `json:"votes,omitempty"`
	Message string `json:"message,omitempty"`
	// UpdatedInput is the input that the agent must run instead of its own. Either a person has edited
	// the input, or nod has changed it to run the call contained or with git hardened.
	UpdatedInput json.RawMessage `json:"updated_input,omitempty"`
	Digest       string          `json:"digest"`
	// SettingsRevision is the revision of the settings that were in force at the decision.
	SettingsRevision uint64    `json:"settings_revision,omitempty"`
	DecidedAt        time.Time `json:"decided_at"` // the time of the decision, in broker time
	Later            Later     `json:"-"`
}

// Lasts reports whether d also allows later calls. It does if its grant has rules or permissions.
func (d *Decision) Lasts() bool { return d.Grant != nil && d.Grant.Call == nil }

// SameEffect reports whether two decisions have the same outcome, option, edited input and result of
// Lasts. An answer that comes too late still succeeds if it would have made a decision with the same
// effect as the stored decision.
func (d *Decision) SameEffect(other *Decision) bool {
	return d.Outcome == other.Outcome && d.OptionID == other.OptionID && d.Lasts() == other.Lasts() && compact(d.UpdatedInput) == compact(other.UpdatedInput)
}

func compact(data json.RawMessage) string {
	var buf bytes.Buffer
	if json.Compact(&buf, data) != nil {
		return string(data)
	}
	return buf.String()
}
