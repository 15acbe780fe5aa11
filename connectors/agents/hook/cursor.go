package hook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// The hook events of Cursor that nod handles. Cursor calls preToolUse before every tool call of its
// agent.
const (
	cursorTool = "preToolUse"
	cursorEnd  = "sessionEnd"
)

// Cursor describes the editor Cursor. Cursor's command-line agent calls fewer hooks than the editor. nod
// follows the documents of Cursor's hooks and was not run with Cursor itself. If a hook fails, Cursor runs
// the call by default. With the hook's field failClosed, Cursor blocks the call instead.
func Cursor() Host {
	return Host{
		Name:    "cursor",
		Agent:   "Cursor",
		Dialect: cursor{},
		Program: "cursor",
		Setup: Setup{
			Dir: ".cursor", File: "hooks.json",
			Events: []string{cursorTool}, Blocks: []string{cursorTool}, Signals: []string{cursorEnd},
			Flat: true, ClosedField: "failClosed", Version: 1,
			Timeout: 24 * time.Hour, Unit: time.Second,
			Note: "nod was not run with Cursor: restart Cursor, and let its agent try a harmless command first. " +
				"Every call of Cursor's agent is refused while nod does not run; its inline completions (Tab) do not ask nod",
		},
	}
}

type cursor struct{}

// cursorInput is the hook input of Cursor. SessionID has the same value as ConversationID, and is missing
// in older versions.
type cursorInput struct {
	ConversationID string          `json:"conversation_id"`
	SessionID      string          `json:"session_id"`
	Event          string          `json:"hook_event_name"`
	Roots          []string        `json:"workspace_roots"`
	ToolName       string          `json:"tool_name"`
	ToolInput      json.RawMessage `json:"tool_input"`
	ToolUseID      string          `json:"tool_use_id"`
	Cwd            string          `json:"cwd"`
}

// cursorActions are Cursor's own tools that rules cover. A tool of an MCP server has a name with "MCP:",
// without the server's name. A tool with any other name is unknown to nod.
var cursorActions = map[string]schemas.ActionType{
	"Shell": schemas.ActionCommand, "Read": schemas.ActionFileRead, "Grep": schemas.ActionFileRead, "Write": schemas.ActionFileWrite,
}

// Read parses an input. Cursor often leaves cwd empty. The session's project is the first folder of the
// workspace. If cwd is empty, the directory of a command is unknown unless the command's input names it.
func (cursor) Read(input []byte) (Call, error) {
	var envelope struct {
		Event string `json:"hook_event_name"`
	}
	if err := json.Unmarshal(input, &envelope); err != nil {
		return Call{}, inputError(err)
	}
	call := Call{Event: envelope.Event}
	switch call.Event {
	case "":
		return call, errNoEvent
	case cursorTool, cursorEnd:
	default:
		call.Ignore = fmt.Sprintf("hook event %q is not one that nod answers", call.Event)
		return call, nil
	}
	var in cursorInput
	if err := json.Unmarshal(input, &in); err != nil {
		return call, inputError(err)
	}
	call.SessionID = cmp.Or(in.ConversationID, in.SessionID)
	if call.Event == cursorEnd {
		call.Signal, call.HostResolved = true, schemas.HostResolved{WholeSession: true, AgentName: Cursor().Agent, Reason: "the session has ended"}
		return call, nil
	}
	call.ToolCallID, call.ToolName, call.Input, call.Cwd = in.ToolUseID, in.ToolName, in.ToolInput, in.Cwd
	if len(in.Roots) > 0 {
		call.Project = in.Roots[0]
	}
	call.Action = cursorActions[in.ToolName]
	switch call.Action {
	case "":
		call.Action = schemas.ActionMCPTool // count the tool as an MCP tool, so that no rule for another agent's tool of this name applies
	case schemas.ActionCommand:
		call.takeOwnDir()
	}
	return call, nil
}

// takeOwnDir moves the directory in a command's input to call.Cwd, because the command runs in that
// directory. It leaves a relative directory in the input.
func (c *Call) takeOwnDir() {
	v, obj, err := agents.ParseObject(c.Input)
	if err != nil {
		return // Call.check later refuses the call
	}
	i := agents.Member(obj, "cwd")
	if i < 0 {
		return
	}
	dir, ok := obj.Members[i].Value.Value.(hujson.Literal)
	if !ok || dir.Kind() != '"' || dir.String() != "" && !absolute(dir.String()) {
		return // nod asks a person, because no rule knows the field cwd in the input
	}
	c.Cwd = cmp.Or(dir.String(), c.Cwd)
	removeMember(obj, i)
	c.Input = v.Pack()
}

// absolute reports whether a path is absolute on this system or on Windows.
func absolute(p string) bool {
	return strings.HasPrefix(p, "/") || strings.HasPrefix(p, `\\`) || len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
}

// Reply always decides. With failClosed, Cursor blocks a call without a decision, and Cursor does not enforce
// "ask" at this event. Reply does not use exit code 2, because Cursor would give its agent the whole output
// as the reason. An edit becomes a refusal, because nod was not run with Cursor.
func (cursor) Reply(c Call, v Verdict) ([]byte, int) {
	v = v.withoutEdits("Cursor")
	refusal := map[string]string{"permission": "deny", "user_message": v.Reason, "agent_message": v.Reason}
	switch {
	case c.Event == "":
		return blockReply(refusal)
	case c.Event != cursorTool && v.Effect == Leave:
		return []byte("{}"), 0
	case c.Event == cursorTool && v.Effect == Allow:
		return jsonReply(map[string]string{"permission": "allow"})
	}
	return jsonReply(refusal)
}
