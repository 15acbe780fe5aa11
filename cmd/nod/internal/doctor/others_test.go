package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
)

// For an agent program without a hook of nod, the doctor names another way in. It names Cursor only if
// Cursor could run nod's hook for Claude Code.
func TestAgentsThatNoHookGates(t *testing.T) {
	h := newHome(t)
	assert.Empty(t, ungated())
	h.program("auggie", "1.0.0")
	says(t, ungated(), Note, "Auggie is on this machine, and no hook of nod gates it: put nod mcp gate before its MCP servers")
	require.NoError(t, os.Mkdir(filepath.Join(h.dir, ".vscode"), 0o700))
	require.NoError(t, os.Mkdir(filepath.Join(h.dir, ".factory"), 0o700))
	found := h.findings()
	says(t, found, Note, "VS Code does not ask nod: nod install vscode")
	says(t, found, Note, "droid does not ask nod: nod install droid")
	require.NoError(t, os.Mkdir(filepath.Join(h.dir, ".cursor"), 0o700))
	assert.Len(t, ungated(), 1)
	h.install(hook.ClaudeCode(), hook.InstallOptions{Program: h.program("nod", "")})
	says(t, ungated(), Note, "Cursor can load the hooks in ")
}

// The doctor reports a file of a project that turns off droid's hooks in this project.
func TestAProjectTurnsOffDroidsHooks(t *testing.T) {
	h := newHome(t)
	project := t.TempDir()
	t.Chdir(project)
	require.NoError(t, os.Mkdir(filepath.Join(project, ".factory"), 0o700))
	h.install(hook.Droid(), hook.InstallOptions{Program: h.program("nod", "")})
	for file, content := range map[string]string{"hooks.json": `{"hooksDisabled":true}`, "settings.json": `{"hooks":{"hooksDisabled":true}}`} {
		path := filepath.Join(project, ".factory", file)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		says(t, h.findings(), Wrong, file+` says "hooksDisabled", so that droid runs no hook in this project`)
		require.NoError(t, os.Remove(path))
	}
}
