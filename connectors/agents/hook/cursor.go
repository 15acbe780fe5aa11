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

// Cursor describes the editor Cursor. Cursor's command-line agent runs fewer hooks than the editor. nod
// follows the documents about Cursor's hooks, and was not tested with Cursor itself. If a hook fails,
// Cursor runs the call, unless the hook has the field failClosed.
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

// cursorInput is the hook input of Cursor. SessionID is missing in older versions, and otherwise equals
// ConversationID.
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

// cursorActions are the tools of Cursor that rules cover. The name of an MCP server's tool begins with
// "MCP:" and does not contain the server's name. nod does not know tools with other names.
var cursorActions = map[string]schemas.ActionType{
	"Shell": schemas.ActionCommand, "Read": schemas.ActionFileRead, "Grep": schemas.ActionFileRead, "Write": schemas.ActionFileWrite,
}

// Read parses an input. The session's project is the first folder of the workspace. Cursor often leaves the
// field cwd empty. The directory of a command is then unknown, unless the input of the command names it.
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
		call.Action = schemas.ActionMCPTool // the tool counts as an MCP tool, so that no rule about another agent's tool with this name applies
	case schemas.ActionCommand:
		call.takeOwnDir()
	}
	return call, nil
}

// takeOwnDir moves the directory in the input of a command to call.Cwd, because the command runs in
// that directory. If the directory is relative, it stays in the input.
func (c *Call) takeOwnDir() {
	v, obj, err := agents.ParseObject(c.Input)
	if err != nil {
		return // Call.check later refuses this call
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

// absolute reports whether a path is absolute, on this system or on Windows.
func absolute(p string) bool {
	return strings.HasPrefix(p, "/") || strings.HasPrefix(p, `\\`) || len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
}

// Reply always allows or denies, because Cursor blocks a call without a decision if failClosed is set,
// and does not enforce "ask" at this event. It does not use exit code 2, because Cursor would give its
// agent the whole output as the reason. It refuses a call with an edited input, because such a reply was
// not tested with Cursor.
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
