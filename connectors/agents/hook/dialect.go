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
	Agent   string // as people know it
	Dialect Dialect
	Setup   Setup

	Program string   // its command
	Tested  []string // the versions that nod was run with, the oldest first
}

// Hosts are the hosts that nod speaks to.
func Hosts() []Host { return []Host{ClaudeCode(), Codex(), Gemini(), Copilot()} }

// Dialect is how one host speaks to its hooks.
type Dialect interface {
	// Read understands what the host wrote on the hook's standard input. On an
	// error the call holds what was understood before it, its Event at least
	// where that was there, so that Reply can refuse in the right shape.
	Read(input []byte) (Call, error)
	// Reply says v in the host's words: one JSON object, and the exit code that
	// goes with it. Only an Allow may become something that the host takes as
	// one, and what the host has no word for becomes a refusal.
	Reply(c Call, v Verdict) (output []byte, exit int)
}

// Call is one tool call that a host asks about.
type Call struct {
	Event string // the host's hook event; empty where the input was unreadable
	// Ignore says why nod has no say in this call; empty where it has.
	Ignore string

	SessionID  string // the host's
	ToolCallID string // the host's, where it has one
	ToolName   string
	Action     schemas.ActionType
	Input      json.RawMessage // an object, byte for byte the host's
	Cwd        string

	// Transcript is the file that the host keeps of the session; may be empty.
	Transcript string

	// TaskID is the host's id of the sub-agent that calls; empty for the session's
	// own.
	TaskID string
	// HostAsks says that the host asks its own user at the same time.
	HostAsks bool
	// Turn tells of a host that can end its run and take the call up again later
	// whether it would; nil where it never does. The answer may change.
	Turn func() Turn
	// Stopped reports whether the host's records say that its user has stopped the
	// agent since the call was made; nil of a host that ends its hook then.
	Stopped func() bool
	// Signal says that this is no call at all: the host tells that it has gone on,
	// which is HostResolved, and cannot be refused anything. A HostResolved without a Reason
	// is not told: the hook runs so that it may see which others have died.
	Signal       bool
	HostResolved schemas.HostResolved

	// Questions are what the agent asks its user, where the call is nothing else.
	Questions []agents.Question

	// Rules are rules of the host's own that a person may choose instead of
	// allowing once.
	Rules []Rule
}

// Rule is an "always" that the host remembers by itself, so that nod can
// neither see nor revoke it.
type Rule struct {
	Option schemas.Option
	Update json.RawMessage // what tells the host to remember it
}

// Effect is what a verdict does with a call.
type Effect int

// The effects. The zero Effect refuses.
const (
	Deny    Effect = iota
	Allow          // run it
	AskHost        // nod cannot ask: the host must ask its own user, or refuse
	Leave          // not nod's to decide: the host goes on as without nod
	Defer          // nobody has answered yet: the host, whose turn is Alone, ends and asks again later
)

// Verdict is what a host is told.
type Verdict struct {
	Effect Effect
	Reason string // for the agent or its user; may be empty for Allow
	// Input, for Allow, is what to run: the call's own bytes, or Edited ones.
	Input  json.RawMessage
	Edited bool
	// Update, for Allow, is the host's own rule that a person chose, or nil.
	Update json.RawMessage
}

func deny(reason string) Verdict { return Verdict{Effect: Deny, Reason: reason} }

// Setup is where a host keeps its hooks, and which of them nod uses.
type Setup struct {
	DirEnv     string // environment variable that moves the user's directory
	Dir        string // the directory in the user's home
	ProjectDir string // the directory in a project; Dir where empty
	File       string // the settings file in it
	Events     []string
	Strict     []string // events added by a strict installation
	// Blocks are the events at which the host runs the call if its hook is gone or
	// was killed, and refuses it if the hook's command exits with code 2.
	Blocks  []string
	Signals []string // events that only tell how the host went on
	// Newer are signals that hosts older than the first Tested may not know: some
	// pass over a whole file, the user's own rules too, for an event that they do
	// not know.
	Newer   []string
	Matcher string // matches every tool
	Off     string // a top-level switch that turns all hooks off
	// Flat is a file whose events hold hooks rather than groups of them, in
	// Copilot CLI's words.
	Flat    bool
	Version int // what a file says that has no version; 0 where none is needed
	// Timeout is what the hook is given; the file holds it in Units.
	Timeout time.Duration
	Unit    time.Duration
	// Note is what the user has to know of a new installation; may be empty.
	Note string
}
