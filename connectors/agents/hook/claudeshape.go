package hook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// claudeInput is the format of the hook input of Claude Code and of some other hosts.
type claudeInput struct {
	SessionID   string          `json:"session_id"`
	Cwd         string          `json:"cwd"`
	ToolName    string          `json:"tool_name"`
	ToolInput   json.RawMessage `json:"tool_input"`
	ToolUseID   string          `json:"tool_use_id"`
	AgentID     string          `json:"agent_id"` // the id of the sub-agent
	PromptID    string          `json:"prompt_id"`
	TurnID      string          `json:"turn_id"` // from Codex
	Transcript  string          `json:"transcript_path"`
	Suggestions json.RawMessage `json:"permission_suggestions"`
	DurationMS  *int            `json:"duration_ms"` // the duration of the call
	Reason      string          `json:"reason"`      // why Claude Code denied the call
	LastMessage string          `json:"last_assistant_message"`
	// Error is the kind of error that ended the turn, such as rate_limit.
	Error        string `json:"error"`
	ErrorDetails string `json:"error_details"`
	// Background and Crons list the work that continues after a turn.
	Background []json.RawMessage `json:"background_tasks"`
	Crons      []json.RawMessage `json:"session_crons"`
	MCPContext json.RawMessage   `json:"mcp_context"` // from Gemini CLI: the MCP server of the tool; absent for Gemini CLI's own tools
}

// readClaudeShape parses an input in the format claudeInput into a Call. The parameter events lists the
// events that nod handles, and questions lists the tools that ask the user something. For any other
// event, and for such a tool, readClaudeShape sets Call.Ignore.
func readClaudeShape(input []byte, events, questions []string) (Call, claudeInput, error) {
	var in claudeInput
	// The event must be parsed first, because a later error leads to a refusal in the format of the event.
	var envelope struct {
		Event string `json:"hook_event_name"`
	}
	if err := json.Unmarshal(input, &envelope); err != nil {
		return Call{}, in, inputError(err)
	}
	call := Call{Event: envelope.Event}
	if call.Event == "" {
		return call, in, errNoEvent
	}
	if !slices.Contains(events, call.Event) {
		call.Ignore = fmt.Sprintf("hook event %q is not one that nod answers", call.Event)
		return call, in, nil
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return call, in, inputError(err)
	}
	call.SessionID, call.ToolCallID = in.SessionID, in.ToolUseID
	call.Input, call.Cwd, call.TaskID, call.Transcript = in.ToolInput, in.Cwd, in.AgentID, in.Transcript
	call.nameTool(in.ToolName, questions)
	if len(in.MCPContext) > 0 && string(in.MCPContext) != "null" {
		call.Action, call.Ignore = schemas.ActionMCPTool, "" // the tool counts as an MCP tool, because an MCP server may give its tool the name of one of the host's own tools
	}
	return call, in, nil
}

// readProgram calls readClaudeShape with the events of host. For a signal (see Call.Signal), it also
// sets HostResolved. It is for hosts that do not ask their own user while their hook runs.
func readProgram(host Host, input []byte, questions []string) (Call, claudeInput, error) {
	s := host.Setup
	signals := slices.Concat(s.Signals, s.Newer)
	call, in, err := readClaudeShape(input, slices.Concat(s.Events, s.Strict, signals), questions)
	if call.Signal = slices.Contains(signals, call.Event); call.Signal {
		call.Ignore = "" // this signal is about a question
		call.HostResolved = programHostResolved(host, &call)
	}
	return call, in, err
}

var errNoEvent = errors.New("the hook's input names no hook_event_name")

func inputError(err error) error {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) { // the message of encoding/json would name Go types instead of JSON types
		err = fmt.Errorf("%s is a JSON %s", cmp.Or(typed.Field, "the whole input"), typed.Value)
	}
	return fmt.Errorf("the hook's input is not as expected: %w", err)
}

// nameTool sets the tool and the action type of the call. The parameter questions lists the tools that
// ask the user something. For such a tool, nameTool sets Ignore, because nod can neither allow nor deny
// a question.
func (c *Call) nameTool(name string, questions []string) {
	c.ToolName, c.Action = name, agents.ActionOf(name)
	if slices.Contains(questions, name) {
		c.Ignore = name + " is a question, not a permission"
	}
}

// hasOnly reports whether the call has no other arguments than the given ones.
func (c *Call) hasOnly(arguments []string) bool {
	var args map[string]json.RawMessage
	if json.Unmarshal(c.Input, &args) != nil {
		return false
	}
	for name := range args {
		if !slices.Contains(arguments, name) {
			return false
		}
	}
	return true
}

// withoutEdits returns v for a host that cannot run an edited input. If v is an allow with an edit, it
// becomes a denial that tells the agent to make the call again with the edited input. If v has no
// reason, it gets one.
func (v Verdict) withoutEdits(agent string) Verdict {
	if v.Effect == Allow && v.Edited {
		var line bytes.Buffer
		_ = json.Compact(&line, v.Input) // Compact cannot fail, because verdict has parsed this object
		return deny(fmt.Sprintf("Allowed only with edited input, which %s cannot take from a hook: ask again with %s", agent, &line))
	}
	return v.withReason()
}

// withReason returns v with a reason, because some hosts ignore a refusal without a reason.
func (v Verdict) withReason() Verdict {
	if v.Reason == "" {
		v.Reason = "Not allowed by nod."
	}
	return v
}

// blockReply encodes a reply for a host that can block a call by exit code 2.
func blockReply(reply map[string]string) ([]byte, int) {
	out, err := schemas.Encode(reply)
	if err != nil {
		return []byte(fallbackRefusal), exitBlock
	}
	return out, exitBlock
}

// jsonReply encodes a reply with exit code 0.
func jsonReply(reply any) ([]byte, int) {
	out, err := schemas.Encode(reply)
	if err != nil {
		return []byte(fallbackRefusal), exitBlock
	}
	return out, 0
}

// fallbackRefusal is a refusal in the formats of all hosts at once. The hook sends it if a dialect fails
// to encode a reply. It contains fields, because Gemini CLI takes an empty object for an allow, with any
// exit code.
const fallbackRefusal = `{"decision":"block","reason":"nod failed on this call and refused it.","behavior":"deny"}`

// Leaves writes a reply that lets the host continue as if it had no hook. It is for a process with
// TurnsFlag that failed before Run. It returns the exit code of the process.
func Leaves(stdout io.Writer) int {
	_, _ = io.WriteString(stdout, "{}\n") // if the write fails, the exit code 0 still lets the host continue
	return 0
}

// Refuse writes a refusal to stdout. It is for a process that failed before Run. It returns the exit
// code of the process. The caller should write the reason to stderr, because some hosts ignore a
// refusal if stderr is empty.
func Refuse(stdout io.Writer) int {
	_, _ = io.WriteString(stdout, fallbackRefusal+"\n") // if the write fails, the exit code still refuses the call
	return exitBlock
}
