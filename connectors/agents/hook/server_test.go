package hook_test

import (
	"testing"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// InstallServer adds a server once, keeps other servers, and can remove the server again.
func TestInstallServerAddsAndRemovesAServer(t *testing.T) {
	acp, err := hook.ACPServer([]string{"/usr/bin/gemini", "--experimental-acp"})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		server        hook.Server
		before, after string
	}{
		"none yet": {hook.MCPServer(), "", `{"mcpServers":{"nod":{"args":["mcp"],"command":"/opt/nod"}}}`},
		"others": {hook.MCPServer(), `{"mcpServers": {"x": {"command": "y"}}, "n": 1.0}`,
			`{"mcpServers":{"x":{"command":"y"},"nod":{"args":["mcp"],"command":"/opt/nod"}},"n":1.0}`},
		"an older nod": {hook.MCPServer(), `{"mcpServers":{"nod":{"command":"/old"}}}`,
			`{"mcpServers":{"nod":{"args":["mcp"],"command":"/opt/nod"}}}`},
		"an editor": {acp, `{"theme":"x"}`,
			`{"theme":"x","agent_servers":{"gemini, through nod":{"args":["acp","--","/usr/bin/gemini","--experimental-acp"],"command":"/opt/nod"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			path := settings(t, c.before)
			o := hook.InstallOptions{Settings: path, Program: "/opt/nod"}
			_, err := hook.InstallServer(c.server, o)
			require.NoError(t, err)
			assert.JSONEq(t, c.after, contents(t, path))
			again, err := hook.InstallServer(c.server, o)
			require.NoError(t, err)
			assert.False(t, again.Changed(), again.Diff())

			o.Uninstall = true
			_, err = hook.InstallServer(c.server, o)
			require.NoError(t, err)
			assert.NotContains(t, contents(t, path), "/opt/nod")
		})
	}
}

func TestInstallServerRefusesInvalidSettings(t *testing.T) {
	for _, before := range []string{"[]", "{", `{"mcpServers":[]}`} {
		path := settings(t, before)
		_, err := hook.InstallServer(hook.MCPServer(), hook.InstallOptions{Settings: path, Program: "/opt/nod"})
		require.Error(t, err)
		assert.Equal(t, before, contents(t, path))
	}
	_, err := hook.InstallServer(hook.MCPServer(), hook.InstallOptions{})
	require.ErrorContains(t, err, "--settings")
	_, err = hook.ACPServer(nil)
	require.ErrorContains(t, err, "after --")

	path := settings(t, "{\n  // mine\n  \"theme\": \"x\", // dark\n}\n")
	_, err = hook.InstallServer(hook.MCPServer(), hook.InstallOptions{Settings: path, Program: "/opt/nod"})
	require.NoError(t, err)
	assert.Contains(t, contents(t, path), "// mine")
	assert.Contains(t, contents(t, path), "// dark")
}
