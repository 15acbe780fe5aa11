package hook

import (
	"encoding/json"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// Host is an agent program that asks nod through its hooks.
type Host struct {
	Name    string // as in `nod hook NAME`
	Agent   string // display name
	Dialect Dialect
	Setup   Setup

	Program string   // its command
	Tested  []string // versions tested with nod, oldest first
}

// Hosts returns the hosts that nod supports.
func Hosts() []Host { return []Host{ClaudeCode(), Codex(), Gemini(), Copilot()} }

// Dialect is the input and output format of one host's hooks.
type Dialect interface {
	// Read parses the input that the host wrote to the hook. On an error the call
	// holds the fields parsed so far, at least its Event if the input named one, so
	// that Reply can refuse in the format of that event.
	Read(input []byte) (Call, error)
	// Reply encodes v for the host: one JSON object and an exit code. Only an Allow
	// may be encoded as an allow. An effect that the host has no format for becomes
	// a refusal.
	Reply(c Call, v Verdict) (output []byte, exit int)
}

// Call is one tool call that a host asks about.
type Call struct {
	Event string // the host's hook event; empty if the input was unreadable
	// Ignore says why nod does not decide this call; empty if nod does.
	Ignore string

	SessionID  string // the host's id
	ToolCallID string // the host's id; may be empty
	ToolName   string
	Action     schemas.ActionType
	Input      json.RawMessage // a JSON object, exactly as the host sent it
	Cwd        string

	// Transcript is the path of the session's log that the host keeps; may be empty.
	Transcript string

	// TaskID is the host's id of the calling sub-agent; empty for the main agent.
	TaskID string
	// HostAsks is true if the host asks its own user at the same time.
	HostAsks bool
	// Turn classifies the call's turn, and so tells whether the host would end its run
	// now and repeat the call later. The result may change. Turn is nil for a host that
	// never does that.
	Turn func() Turn
	// Stopped reports whether the user has stopped the agent since the call was made,
	// as the host's records say. It is nil for a host that then ends its hook itself.
	Stopped func() bool
	// Signal is true if the input is not a call but a report that the host has moved
	// on. HostResolved then describes the resolved requests, and there is nothing to
	// refuse. If it has no Reason, nothing is sent to nod: the hook runs only because
	// every run of a hook also looks for hooks that died.
	Signal       bool
	HostResolved schemas.HostResolved

	// Questions are the agent's questions to its user, if the call is AskUserQuestion.
	Questions []agents.Question

	// Rules are the permission rules that the host suggests; a person may choose one
	// instead of allowing the call once.
	Rules []Rule
}

// Rule is a lasting allow that the host itself stores. Once it is chosen, nod can
// neither see nor revoke it.
type Rule struct {
	Option schemas.Option
	Update json.RawMessage // the host's encoding; in a reply it makes the host store the rule
}

// Effect is the effect of a verdict on a call.
type Effect int

// The effects. The zero Effect refuses.
const (
	Deny    Effect = iota
	Allow          // run it
	AskHost        // nod cannot decide: the host must ask its own user, or refuse
	Leave          // nod does not decide this call: the host continues as without nod
	Defer          // no decision yet: the host, whose turn is Alone, ends its run and repeats the call later
)

// Verdict is nod's reply to a host.
type Verdict struct {
	Effect Effect
	Reason string // for the agent or its user; may be empty for Allow
	// Input, for Allow, is the tool input to run: the call's own bytes, or a
	// person's edit if Edited.
	Input  json.RawMessage
	Edited bool
	// Update, for Allow, is the host's rule that a person chose; nil if none.
	Update json.RawMessage
}

func deny(reason string) Verdict { return Verdict{Effect: Deny, Reason: reason} }

// Setup describes a host's settings file and the hook events that nod uses.
type Setup struct {
	DirEnv     string // environment variable that moves the user's directory
	Dir        string // the directory in the user's home
	ProjectDir string // the directory in a project; Dir if empty
	File       string // the settings file in that directory
	Events     []string
	Strict     []string // events that a strict installation adds
	// Blocks are the events at which the host runs the call if its hook is missing or
	// killed. At these events a hook command that exits with code 2 blocks the call.
	Blocks  []string
	Signals []string // events that only report that the host has moved on
	// Newer are signals that hosts older than the first of Tested may not know.
	// Some hosts ignore a whole settings file, with the user's own rules, if it
	// holds an unknown event.
	Newer   []string
	Matcher string // the matcher for all tools
	Off     string // a top-level setting that turns all hooks off
	// Flat is true if an event holds a list of hooks instead of groups of hooks,
	// with Copilot CLI's field names.
	Flat    bool
	Version int // the version to write into a file that has none; 0 if the host needs none
	// Timeout is how long the host waits for the hook; the file stores it as a
	// number of Units.
	Timeout time.Duration
	Unit    time.Duration
	// Note holds advice for the user of a new installation; may be empty.
	Note string
}
