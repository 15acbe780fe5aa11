package hook_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Inspect finds the hooks that Install wrote, for every host and also for paths that need quotes.
func TestInspectFindsInstalledHooks(t *testing.T) {
	for _, host := range hook.Hosts() {
		for _, program := range []string{"/opt/nod/bin/nod", "/My Files/it's/nod"} {
			path := filepath.Join(t.TempDir(), "settings.json")
			at := hook.InstallOptions{Settings: path, Program: program, Strict: true}
			found, err := hook.Inspect(host, at)
			require.NoError(t, err)
			assert.Equal(t, hook.Inspection{Path: path}, found)
			_, err = hook.Install(host, at)
			require.NoError(t, err)
			found, err = hook.Inspect(host, at)
			require.NoError(t, err)
			assert.True(t, found.Exists)
			require.Len(t, found.Hooks, len(host.Setup.Events)+len(host.Setup.Strict))
			for _, h := range found.Hooks {
				assert.Equal(t, program, h.Program())
				assert.Equal(t, int64(host.Setup.Timeout/host.Setup.Unit), h.Timeout)
				assert.Zero(t, h.Group+h.Index)
			}
			assert.NotEmpty(t, host.Program)
			if len(host.Tested) == 0 {
				assert.Contains(t, host.Setup.Note, "nod was not run with")
			}
		}
	}
}

// Inspect returns only nod's hooks, but their indices also count the hooks of other programs.
func TestInspectSkipsHooksOfOtherPrograms(t *testing.T) {
	path := settings(t, `{"disableAllHooks":true,"hooks":{"PermissionRequest":[7,{"matcher":"x","hooks":[{"command":"log.sh"}]},
		{"hooks":[3,{"command":"nod hook codex"},{"command":"nod hook claude-code"}]}],"Stop":[{"hooks":[{"command":"nod hook claude-code"}]}]}}`)
	found, err := hook.Inspect(hook.ClaudeCode(), hook.InstallOptions{Settings: path})
	require.NoError(t, err)
	assert.Equal(t, "disableAllHooks", found.Off)
	assert.Equal(t, []hook.Installed{{Event: "PermissionRequest", Command: "nod hook claude-code", Group: 2, Index: 2}}, found.Hooks)
	assert.Equal(t, "nod", found.Hooks[0].Program())
	assert.Empty(t, hook.Installed{Command: "$(which nod) hook codex"}.Program())

	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = hook.Inspect(hook.ClaudeCode(), hook.InstallOptions{Settings: path})
	assert.ErrorContains(t, err, "not valid JSON")
}
