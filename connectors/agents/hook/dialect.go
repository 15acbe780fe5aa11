package hook

import (
	"encoding/json"
	"time"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// Host is an agent program that asks nod through its hooks.
type Host struct {
	Name    string // the host's name, as in `nod hook NAME`
	Agent   string // the host's name for people
	Dialect Dialect
	Setup   Setup

	// ChangesInput is true if a hook of the host can replace the input of a call.
	ChangesInput bool
	// ChangesSince is the oldest version whose hooks are known to replace the input. An older
	// version ignores the change and runs the agent's input. ChangesSince is empty if all versions
	// behave alike.
	ChangesSince string

	Program string   // the host's program, as a name in PATH
	Traces  []string // directories in the user's home that show that the host is installed; Setup.Dir if nil
	Tested  []string // versions tested with nod, oldest first; empty if nod only follows the host's documents
}

// Hosts returns the hosts that nod supports.
func Hosts() []Host {
	return []Host{ClaudeCode(), Codex(), Gemini(), Copilot(), Qwen(), Cursor(), VSCode(), Droid(), Pi(), OpenClaw()}
}

// Dialect is the input and output format of one host's hooks.
type Dialect interface {
	// Read parses the input that the host wrote to the hook. After an error, the Call contains the
	// fields parsed so far. It contains the Event if the input names one, so that Reply can refuse in
	// that event's format.
	Read(input []byte) (Call, error)
	// Reply encodes v for the host as one JSON object, and returns the hook's exit code. Only the
	// effect Allow becomes an allow. If the host has no format for an effect, Reply refuses.
	Reply(c Call, v Verdict) (output []byte, exit int)
}

// Call is one input of a hook. It is a report if Signal is true, and otherwise a call to decide about.
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
	Project    string          // the session's directory; empty if it is unknown or equals Cwd

	// Transcript is the path of the host's own log of the session; may be empty.
	Transcript string

	// TaskID is the host's id of the calling sub-agent; empty for the main agent.
	TaskID string
	// ChangesInput is true if the host is known to run an edited input; see Host.
	ChangesInput bool
	// HostAsks is true if the host asks its own user while the hook runs.
	HostAsks bool
	// Turn reads the host's transcript and classifies the turn of the call. From the turn, the hook
	// learns whether the host can end its run and repeat the call later. The result may change
	// while the host writes more to the transcript. Turn is nil if the host can never repeat the
	// call.
	Turn func() Turn
	// Stopped reports whether, according to the host's transcript, the user has stopped the agent after the
	// call. At the end of a turn, Stopped reports whether the user has written the next prompt. Stopped is
	// nil if there is no transcript, or if the host ends its hook when the user stops the agent.
	Stopped func() bool
	// Signal is true if the input is a report: the host has continued without nod's decision. HostResolved
	// then describes the requests that the host no longer waits for. If HostResolved has no Reason, the hook
	// sends nothing to nod, but its run still withdraws the requests of hooks that died.
	Signal       bool
	HostResolved schemas.HostResolved

	// TakesNotices is true if the host gives its main agent texts in the reply to this input; see
	// Setup.Notices.
	TakesNotices bool

	// TurnOver describes the end of the main agent's turn, if the input reports one about which people are
	// told (see Options.Turns). TurnOver is nil for every other input.
	TurnOver *agents.Turn

	// Denied is true if the host has denied the call by itself, and its agent may try again if nod allows
	// the call. Reason is the host's reason for the denial; may be empty.
	Denied bool
	Reason string

	// Questions are the agent's questions to its user. They are set if the tool is AskUserQuestion.
	Questions []agents.Question
	// Plan is true if the call asks the user to approve the plan in its input; see agents.PlanRequest.
	Plan bool

	// Rules are the permission rules that the host suggests. A person may choose one of them instead
	// of allowing the call once.
	Rules []Rule
}

// Rule is a lasting allow that the host stores if a person chooses its option. nod can neither see nor
// revoke rules that the host has stored.
type Rule struct {
	Option schemas.Option
	Update json.RawMessage // the rule in the host's format; the host stores the rule if a reply contains Update
}

// Effect tells the host how to continue with a call.
type Effect int

// The effects. The zero Effect refuses the call.
const (
	Deny    Effect = iota
	Allow          // the host runs the call
	AskHost        // nod cannot be reached, so the host asks its own user or refuses the call
	Leave          // nod does not decide this call, so the host continues as if it had no hook
	Prompt         // the agent's turn is over (see Call.TurnOver), and Reason is its next prompt
	Defer          // nod has not decided yet, and the turn is Alone (see Turn), so the host ends its run and repeats the call later
)

// Verdict is nod's reply to a host.
type Verdict struct {
	Effect Effect
	Reason string // the reason for the agent or its user; may be empty for Allow
	// Input is the tool input to run, if Effect is Allow. If Edited is true, it contains an edit or
	// a person's answers. Otherwise it is the call's own input, unchanged.
	Input  json.RawMessage
	Edited bool
	// Update is the Update of the Rule that a person chose, if Effect is Allow. It is nil if the
	// person chose no rule.
	Update json.RawMessage
	// Notices are lines for the agent. They are set only if Call.TakesNotices is true.
	Notices []string
}

func deny(reason string) Verdict { return Verdict{Effect: Deny, Reason: reason} }

// Setup describes a host's settings file and the hook events that nod uses.
type Setup struct {
	DirEnv     string   // an environment variable whose value replaces Dir; may be empty
	HomeEnv    string   // an environment variable whose value replaces the user's home; may be empty
	Dir        string   // the host's settings directory, relative to the user's home
	ProjectDir string   // the host's settings directory, relative to a project; Dir if empty
	File       string   // the settings file, relative to the settings directory
	Events     []string // events at which nod decides a call, in every installation
	Strict     []string // events that a strict installation adds
	// Blocks are the events at which the host runs the call if its hook is missing or killed. At these
	// events, a hook that exits with code 2 blocks the call.
	Blocks  []string
	Signals []string // events by which the host only reports that it has continued
	// Newer are signals that hosts older than Host.Tested[0] may not know. nod does not install them for an
	// older host. Some hosts ignore a settings file with an unknown event, including the user's own rules in
	// the file.
	Newer []string
	// Turns are the signals with which the host reports the end of a turn, if nod tells people about it with
	// --turns. Hosts older than TurnSince do not let their user end such a hook.
	Turns     []string
	TurnSince string
	// Terminal is NAME=VALUE, an environment variable with which the host tells its hooks that its user
	// started it in a terminal. If it is empty, the dialect sets Call.TurnOver only there.
	Terminal string
	// Notices are the events at which the host gives its model a text of the hook that decides nothing. A
	// denial reaches the model of every host, so it carries notices too.
	Notices []string
	// Ignored are the signals at which a failed hook would stop the host. The shell hides the failure.
	Ignored []string
	// Denied is the event at which the host reports that it has denied a call by itself; empty if there is
	// none. Hosts older than Host.Tested[0] may not know this event. An installation with this event also
	// adds a hook with ApprovedFlag at the Strict events, because that hook lets an approved call through.
	Denied  string
	Matcher string // the matcher of a hook that runs for all tools
	Off     string // the setting that, if true, turns all hooks off; a top-level setting, or if Bare is true, one beside the events
	// Bare is true if the events are members of a file with File's name, and not of an object "hooks" in it.
	Bare bool
	// Others are other files with hooks, relative to the settings directory. At each event, the host runs only
	// the hooks of the first of File and these files that has any.
	Others []string
	// Flat is true if an event holds a list of hooks instead of groups of hooks.
	Flat bool
	// CommandField and TimeoutField are the names of a hook's fields; "command" and "timeout" if
	// they are empty.
	CommandField, TimeoutField string
	// ClosedField is the name of a field of a hook; may be empty. If the field is true, the host blocks the
	// call when the hook fails. Install sets the field at the events of Blocks.
	ClosedField string
	// Comments is true if the host accepts comments in its settings file.
	Comments bool
	Version  int // the version to write into a file that has none; 0 if the host needs none
	// Timeout is how long the host waits for the hook. The settings file stores it in
	// multiples of Unit.
	Timeout time.Duration
	Unit    time.Duration
	// Script is the source of a program that contains nod's settings, for a host that has no settings file
	// for hooks but runs such programs. Script contains scriptBegin and scriptEnd, with an empty object in
	// between.
	Script string
	// Note holds advice for the user after an installation; may be empty.
	Note string
}
