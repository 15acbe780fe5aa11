package hook

import (
	"encoding/json"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// Host is a program that runs an agent, and that asks nod through its hooks.
type Host struct {
	Name    string // the host's name, as in `nod hook NAME`
	Agent   string // the host's name for people
	Dialect Dialect
	Setup   Setup

	// ChangesInput is true if a hook of the host can replace the input of a call.
	ChangesInput bool
	// ChangesSince is the oldest version whose hooks are known to replace the input. Older versions ignore
	// the changed input and run the agent's own. ChangesSince is empty if there are no such older versions.
	ChangesSince string

	Program string   // the host's program, as a name in PATH
	Traces  []string // the directories in the user's home that show that the host is installed; if nil, only Setup.Dir
	Tested  []string // the versions that were tested with nod, oldest first; empty if nod only follows the host's documents
}

// Hosts returns the hosts that nod supports.
func Hosts() []Host {
	return []Host{ClaudeCode(), Codex(), Gemini(), Copilot(), Qwen(), Cursor(), VSCode(), Droid(), Pi(), OpenClaw()}
}

// Dialect is the input and output format of one host's hooks.
type Dialect interface {
	// Read parses the input that the host wrote to the hook. After an error, the Call still contains
	// the fields that were parsed before. They include the Event if the input names one, so that Reply
	// can refuse in the format of the event.
	Read(input []byte) (Call, error)
	// Reply encodes v for the host as one JSON object, and returns the hook's exit code. Only the
	// effect Allow becomes an allow. If the host has no format for an effect, the reply is a refusal.
	Reply(c Call, v Verdict) (output []byte, exit int)
}

// Call is the content of one input of a hook. If Signal is true, the input only reports something.
// Otherwise it is a call to decide.
type Call struct {
	Event string // the host's hook event; empty if the input was unreadable
	// Ignore is the reason why nod does not decide this call; empty if nod decides it.
	Ignore string

	SessionID  string // the host's id of the session
	ToolCallID string // the host's id of the tool call; may be empty
	ToolName   string
	Action     schemas.ActionType
	Input      json.RawMessage // a JSON object, exactly as the host sent it
	Cwd        string          // the directory in which the call runs; empty if unknown
	Project    string          // the directory of the session; empty if it is unknown or the same as Cwd

	// Transcript is the path of the host's own log of the session. It may be empty.
	Transcript string

	// TaskID is the host's id of the sub-agent that makes the call. It is empty for the main agent.
	TaskID string
	// ChangesInput is true if the host is known to run an edited input; see Host.
	ChangesInput bool
	// HostAsks is true if the host also asks its own user while the hook runs.
	HostAsks bool
	// Turn reads the host's transcript, and returns the kind of turn to which the call belongs. From
	// it, the hook learns whether the host can end its run now and repeat the call later. The result
	// may be another one after the host has written more to the transcript. Turn is nil if the host can
	// never repeat the call.
	Turn func() Turn
	// Stopped reads the host's transcript, and reports whether the user has stopped the agent since the
	// call. At the end of a turn, it reports whether the user has written the next prompt. Stopped is
	// nil if there is no transcript, or if the host itself ends its hook in these cases.
	Stopped func() bool
	// Signal is true if the input only reports that the host has continued without nod's decision.
	// HostResolved then describes the requests that the host no longer waits for. If HostResolved has no
	// Reason, the hook does not tell nod. Even then, the run of the hook leads to the withdrawal of the
	// requests of hooks that died.
	Signal       bool
	HostResolved schemas.HostResolved

	// TurnOver describes the end of a turn of the main agent, about which the hook tells people (see
	// Options.Turns). It may read the host's transcript, and returns nil if people are not told. TurnOver
	// itself is nil if the input reports no such end.
	TurnOver func() *agents.Turn

	// Denied is true if the host has denied the call by itself, and if its agent may try again after nod
	// allows the call. Reason is the host's reason for the denial, which may be empty.
	Denied bool
	Reason string

	// Questions are the questions of the agent to its user. Only a call of the tool AskUserQuestion has
	// them.
	Questions []agents.Question
	// Plan is true if the call asks the user to approve a plan; see agents.PlanRequest.
	Plan bool

	// Rules are the permission rules that the host suggests. A person can choose one of them instead of
	// an allow of this call alone.
	Rules []Rule
}

// Rule is a permanent allow that the host stores if a person chooses its option. nod can neither see
// nor revoke it afterwards.
type Rule struct {
	Option schemas.Option
	Update json.RawMessage // the rule in the host's format, for Verdict.Update
}

// Effect tells the host how to continue with a call.
type Effect int

// The effects. The zero Effect refuses the call.
const (
	Deny    Effect = iota
	Allow          // the host runs the call
	AskHost        // nod cannot be reached, so that the host asks its own user, or else refuses the call
	Leave          // nod does not decide this call, so that the host continues as if it had no hook
	Prompt         // the agent's turn is over (see Call.TurnOver), and Reason is the agent's next prompt
	Defer          // there is no decision yet, and the turn is Alone (see Turn), so that the host ends its run and repeats the call later
)

// Verdict is nod's reply to a host.
type Verdict struct {
	Effect Effect
	Reason string // the reason for the agent or its user; may be empty for Allow
	// Input is the input with which the tool runs, if Effect is Allow. If Edited is true, a person has
	// edited it, or it contains answers. Otherwise it is the call's own input, unchanged.
	Input  json.RawMessage
	Edited bool
	// Update is the field Update of the Rule that a person chose. It is nil if Effect is not Allow, or
	// if the person chose no rule.
	Update json.RawMessage
	// Notices are lines for the host's main agent. They are set only at the events of Setup.Notices.
	Notices []string
}

func deny(reason string) Verdict { return Verdict{Effect: Deny, Reason: reason} }

// Setup describes the settings file of a host, and the hook events that nod uses.
type Setup struct {
	DirEnv     string   // an environment variable that replaces Dir; may be empty
	HomeEnv    string   // an environment variable that replaces the user's home; may be empty
	Dir        string   // the host's settings directory, relative to the user's home
	ProjectDir string   // the host's settings directory, relative to a project; if empty, Dir
	File       string   // the settings file, relative to the settings directory
	Events     []string // the events at which every installation lets nod decide a call
	Strict     []string // the events that a strict installation adds
	// Blocks are the events at which the host would run a call whose hook is missing or killed. At
	// these events, exit code 2 of a hook blocks the call.
	Blocks  []string
	Signals []string // events by which the host only reports that it has continued
	// Newer are signals that hosts older than Host.Tested[0] may not know. An older host does not get
	// them, because some hosts ignore a whole settings file with an unknown event, including the user's
	// own rules in it.
	Newer []string
	// Turns are the signals by which the host reports the end of a turn. nod tells people about it with the
	// flag --turns. If the host is older than TurnSince, its user cannot end a hook that waits for a reply.
	Turns     []string
	TurnSince string
	// Terminal is an environment variable in the form NAME=VALUE. The host sets it for its hooks if its
	// user started it in a terminal. If Terminal is empty, Call.TurnOver returns nil unless the user did
	// so.
	Terminal string
	// Notices are the events at which a hook that decides nothing can give the host's model a text. A
	// denial can also contain notices, because it reaches the model of every host.
	Notices []string
	// Ignored are the signals at which a failure of the hook would stop the host. At these events, the
	// shell hides the failure.
	Ignored []string
	// Denied is the event after the host has denied a call by itself. It is empty if there is none.
	// Hosts older than Host.Tested[0] may not know it. An installation with this event also adds a hook
	// with ApprovedFlag at the Strict events, because that hook lets an approved call run.
	Denied  string
	Matcher string // the matcher of a hook that runs for all tools
	Off     string // the setting that turns all hooks off if it is true; at the top level of the file or, if Bare is true, beside the events
	// Bare is true if the members of the file File are the events themselves, without an object "hooks"
	// around them.
	Bare bool
	// Others are other files with hooks, relative to the settings directory. At each event, the host
	// runs the hooks of only one file: the first among File and Others that has hooks for the event.
	Others []string
	// Flat is true if the list of an event contains hooks. If it is false, the list contains groups of
	// hooks.
	Flat bool
	// CommandField and TimeoutField are names of fields of a hook. If they are empty, they are
	// "command" and "timeout".
	CommandField, TimeoutField string
	// ClosedField is the name of a field of a hook, and may be empty. If the field is true, the host
	// blocks the call when the hook fails. Install sets the field at the events in Blocks.
	ClosedField string
	// Comments is true if the host accepts comments in its settings file.
	Comments bool
	Version  int // the version that Install writes into a file without one; 0 if the host needs none
	// Timeout is how long the host waits for the hook. The settings file contains it as a number of Units.
	Timeout time.Duration
	Unit    time.Duration
	// Script is for a host without a settings file for hooks that runs programs instead. It is the
	// source of such a program, and contains nod's settings between scriptBegin and scriptEnd. In Script
	// itself, these settings are an empty object.
	Script string
	// Note holds advice for the user after an installation; may be empty.
	Note string
}
