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

// claudeInput is what Claude Code writes, and the hosts that took its format
// over.
type claudeInput struct {
	SessionID   string          `json:"session_id"`
	Cwd         string          `json:"cwd"`
	ToolName    string          `json:"tool_name"`
	ToolInput   json.RawMessage `json:"tool_input"`
	ToolUseID   string          `json:"tool_use_id"`
	AgentID     string          `json:"agent_id"` // the sub-agent's
	PromptID    string          `json:"prompt_id"`
	Transcript  string          `json:"transcript_path"`
	Suggestions json.RawMessage `json:"permission_suggestions"`
	DurationMS  *int            `json:"duration_ms"` // how long the call ran
}

// readClaudeShape understands that format, as Dialect.Read does: the events
// that nod answers, and the tools that are questions.
func readClaudeShape(input []byte, events, questions []string) (Call, claudeInput, error) {
	var in claudeInput
	// The event alone first: a fault elsewhere is then refused in its shape.
	var envelope struct {
		Event string `json:"hook_event_name"`
	}
	if err := json.Unmarshal(input, &envelope); err != nil {
		return Call{}, in, unexpected(err)
	}
	call := Call{Event: envelope.Event}
	if call.Event == "" {
		return call, in, errors.New("the hook's input names no hook_event_name")
	}
	if !slices.Contains(events, call.Event) {
		call.Ignore = fmt.Sprintf("hook event %q is none that nod answers", call.Event)
		return call, in, nil
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return call, in, unexpected(err)
	}
	call.SessionID, call.ToolCallID = in.SessionID, in.ToolUseID
	call.Input, call.Cwd, call.TaskID, call.Transcript = in.ToolInput, in.Cwd, in.AgentID, in.Transcript
	call.nameTool(in.ToolName, questions)
	return call, in, nil
}

// readProgram understands that format for a host that does not ask its own user
// beside its hook.
func readProgram(host Host, input []byte, questions []string) (Call, error) {
	s := host.Setup
	signals := slices.Concat(s.Signals, s.Newer)
	call, _, err := readClaudeShape(input, slices.Concat(s.Events, s.Strict, signals), questions)
	if call.Signal = slices.Contains(signals, call.Event); call.Signal {
		call.HostResolved = programHostResolved(host, &call)
	}
	return call, err
}

func unexpected(err error) error {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) { // its own words are Go's types
		err = fmt.Errorf("%s is a JSON %s", cmp.Or(typed.Field, "it"), typed.Value)
	}
	return fmt.Errorf("the hook's input is not as expected: %w", err)
}

// nameTool says which tool is called. A question is not for nod to allow.
func (c *Call) nameTool(name string, questions []string) {
	c.ToolName, c.Action = name, agents.ActionOf(name)
	if slices.Contains(questions, name) {
		c.Ignore = name + " is a question, not a permission"
	}
}

// withoutEdits is v for a host that runs what its agent said and nothing else:
// an edit is refused, and told to the agent, which may ask for it.
func (v Verdict) withoutEdits(agent string) Verdict {
	if v.Effect == Allow && v.Edited {
		var line bytes.Buffer
		_ = json.Compact(&line, v.Input) // an object: verdict has parsed it
		return deny(fmt.Sprintf("Allowed with other input, which %s cannot take from a hook: ask again with %s", agent, &line))
	}
	if v.Reason == "" { // some hosts take a refusal without a reason for none
		v.Reason = "Not allowed by nod."
	}
	return v
}

// blocked is the reply of a host that can block a call by exit code 2.
func blockReply(reply map[string]string) ([]byte, int) {
	out, err := schemas.Encode(reply)
	if err != nil {
		return []byte(fallbackRefusal), exitBlock
	}
	return out, exitBlock
}

// said is a reply of a host, with exit code 0.
func jsonReply(reply any) ([]byte, int) {
	out, err := schemas.Encode(reply)
	if err != nil {
		return []byte(fallbackRefusal), exitBlock
	}
	return out, 0
}

// fallbackRefusal refuses in every host's words at once, for where the dialect itself
// is at fault: to Gemini CLI an empty object is an allow, whatever the exit
// code.
const fallbackRefusal = `{"decision":"block","reason":"nod failed on this call and refused it.","behavior":"deny"}`

// Refuse answers for a process that did not get as far as Run, and returns its
// exit code. What went wrong belongs on stderr, or some hosts take no refusal.
func Refuse(stdout io.Writer) int {
	_, _ = io.WriteString(stdout, fallbackRefusal+"\n") // the exit code says it too
	return exitBlock
}
