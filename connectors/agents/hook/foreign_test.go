package hook_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// Gemini CLI may call a tool of an MCP server by the name that the server uses. For nod, this is an MCP
// tool, even if one of the tools that nod knows has the same name.
func TestGeminisForeignToolsAreNotItsOwn(t *testing.T) {
	for _, c := range []struct {
		tool, context string
		action        schemas.ActionType
	}{
		{"run_shell_command", "", schemas.ActionCommand},
		{"run_shell_command", `,"mcp_context":null`, schemas.ActionCommand},
		{"run_shell_command", `,"mcp_context":{"server_name":"x"}`, schemas.ActionMCPTool},
		{"ask_user", `,"mcp_context":{"server_name":"x"}`, schemas.ActionMCPTool},
		{"Bash", "", schemas.ActionMCPTool},
		{"shell", "", schemas.ActionMCPTool},
		{"TodoWrite", "", schemas.ActionMCPTool},
		{"mcp_x_y", "", schemas.ActionMCPTool},
	} {
		call, err := hook.Gemini().Dialect.Read(fmt.Appendf(nil, `{"hook_event_name":"BeforeTool","session_id":"s","cwd":"/p","tool_name":%q,"tool_input":{}%s}`, c.tool, c.context))
		require.NoError(t, err)
		assert.Equal(t, c.action, call.Action, "%+v", c)
		assert.Empty(t, call.Ignore)
	}
}
