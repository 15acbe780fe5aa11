package hook_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// Cursor leaves the field cwd empty, and names the directory of a command in the command's input. For
// nod, the command runs in this directory. If the directory is relative, it stays in the input, so that
// nod asks a person.
func TestCursorsDirectoryOfACommand(t *testing.T) {
	for name, c := range map[string]struct{ input, cwd, wantInput, wantCwd string }{
		"in the input":       {`{"command":"ls","cwd":"/p/app"}`, "", `{"command":"ls"}`, "/p/app"},
		"empty in the input": {`{"command":"ls","cwd":""}`, "/p", `{"command":"ls"}`, "/p"},
		"both":               {`{"cwd":"/p/app","command":"ls"}`, "/p", `{"command":"ls"}`, "/p/app"},
		"on Windows":         {`{"command":"ls","cwd":"C:\\p"}`, "", `{"command":"ls"}`, `C:\p`},
		"relative":           {`{"command":"ls","cwd":"app"}`, "/p", `{"command":"ls","cwd":"app"}`, "/p"},
		"no text":            {`{"command":"ls","cwd":["/p"]}`, "/p", `{"command":"ls","cwd":["/p"]}`, "/p"},
		"nowhere":            {`{"command":"ls"}`, "", `{"command":"ls"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			call, err := hook.Cursor().Dialect.Read(fmt.Appendf(nil, `{"conversation_id":"c","hook_event_name":"preToolUse","workspace_roots":["/p","/q"],"tool_name":"Shell","tool_input":%s,"tool_use_id":"x","cwd":%q}`, c.input, c.cwd))
			require.NoError(t, err)
			assert.Equal(t, c.wantInput, string(call.Input))
			assert.Equal(t, c.wantCwd, call.Cwd)
			assert.Equal(t, "/p", call.Project)
		})
	}
}

// A tool of an MCP server may be named "MCP:" and the name of a tool of Cursor. A tool of another agent
// may have a name that Cursor does not use. No rule about Cursor's own tools applies to these tools.
func TestCursorsOwnToolsAlone(t *testing.T) {
	for tool, want := range map[string]schemas.ActionType{
		"Shell": schemas.ActionCommand, "Read": schemas.ActionFileRead, "Write": schemas.ActionFileWrite,
		"MCP:Shell": schemas.ActionMCPTool, "Bash": schemas.ActionMCPTool, "shell": schemas.ActionMCPTool, "Task": schemas.ActionMCPTool,
	} {
		call, err := hook.Cursor().Dialect.Read(fmt.Appendf(nil, `{"conversation_id":"c","hook_event_name":"preToolUse","tool_name":%q,"tool_input":{}}`, tool))
		require.NoError(t, err)
		assert.Equal(t, want, call.Action, tool)
	}
}
