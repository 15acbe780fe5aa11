package hook_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// LoadPlugin adds nod's plugin to OpenClaw's settings, and removes it again. Every other byte stays.
func TestOpenClawLoadsThePlugin(t *testing.T) {
	for _, text := range []string{
		"{}\n",
		"{\n  // mine\n  \"agents\": {}, /* two */\n  \"plugins\": {\n    \"entries\": {\"voice\": {\"enabled\": true}}\n  }\n}",
		"{\r\n\t\"plugins\": {\r\n\t\t\"load\": {\r\n\t\t\t\"paths\": [\r\n\t\t\t\t\"/other.ts\"\r\n\t\t\t]\r\n\t\t},\r\n\t\t\"allow\": [\"nod\"]\r\n\t}\r\n}\r\n",
		`{"plugins":{"load":{"paths":["a"]},"entries":{"x":{}}}}`,
	} {
		script := filepath.Join(t.TempDir(), "nod.ts")
		settings := hook.PluginSettings(script)
		require.NoError(t, os.WriteFile(settings, []byte(text), 0o600))
		change, err := hook.LoadPlugin(script, false)
		require.NoError(t, err)
		require.True(t, change.Changed())
		assert.Empty(t, change.Warning)
		assert.Contains(t, string(change.After), script)
		require.NoError(t, change.Write())
		again, err := hook.LoadPlugin(script, false)
		require.NoError(t, err)
		assert.False(t, again.Changed())
		back, err := hook.LoadPlugin(script, true)
		require.NoError(t, err)
		assert.Equal(t, text, string(back.After))
	}
}

// LoadPlugin warns about settings that keep OpenClaw from loading the plugin. It does not change
// unreadable settings.
func TestOpenClawsSettingsMayLeaveThePluginOut(t *testing.T) {
	for text, warning := range map[string]string{
		`{"plugins":{"enabled":false}}`:                     "turns nod's plugin off",
		`{"plugins":{"entries":{"nod":{"enabled":false}}}}`: "turns nod's plugin off",
		`{"plugins":{"allow":["voice"]}}`:                   "does not let nod's plugin run",
		`{"plugins":{"allow":["nod"],"deny":["nod"]}}`:      "does not let nod's plugin run",
		`{"plugins":{"allow":["nod"]}}`:                     "",
		`{"plugins":{"allow":["voice" /* "nod" */]}}`:       "does not let nod's plugin run",
		`{"plugins":{"deny":["voice"]}}`:                    "",
	} {
		script := filepath.Join(t.TempDir(), "nod.ts")
		require.NoError(t, os.WriteFile(hook.PluginSettings(script), []byte(text), 0o600))
		change, err := hook.LoadPlugin(script, false)
		require.NoError(t, err)
		if warning == "" {
			assert.Empty(t, change.Warning)
		} else {
			assert.Contains(t, change.Warning, warning)
		}
	}
	for _, text := range []string{`{plugins: {}}`, `{"plugins": 1}`, `{"plugins":{"load":{"paths":"x"}}}`, `[]`} {
		script := filepath.Join(t.TempDir(), "nod.ts")
		require.NoError(t, os.WriteFile(hook.PluginSettings(script), []byte(text), 0o600))
		_, err := hook.LoadPlugin(script, false)
		require.Error(t, err, text)
	}
	change, err := hook.LoadPlugin(filepath.Join(t.TempDir(), "nod.ts"), true)
	require.NoError(t, err)
	assert.False(t, change.Changed(), "there are no settings to change")
}

// For rules, a call of OpenClaw is a command or an access to a file only if no argument moves it to
// another place.
func TestOpenClawsCallsThatRulesCover(t *testing.T) {
	for input, action := range map[string]schemas.ActionType{
		`"exec","tool_input":{"command":"ls","title":"look","background":true}`: schemas.ActionCommand,
		`"exec","tool_input":{"command":"ls","host":"node"}`:                    schemas.ActionMCPTool,
		`"exec","tool_input":{"command":"ls","elevated":true}`:                  schemas.ActionMCPTool,
		`"exec","tool_input":{"command":"ls","workdir":"/"}`:                    schemas.ActionMCPTool,
		`"exec","tool_input":{"command":"ls","env":{"PATH":"."}}`:               schemas.ActionMCPTool,
		`"exec.code_mode_exec","tool_input":{"command":"ls"}`:                   schemas.ActionMCPTool,
		`"read","tool_input":{"path":"/a"}`:                                     schemas.ActionFileRead,
		`"read","tool_input":{"path":"~/a"}`:                                    schemas.ActionMCPTool,
		`"write","tool_input":{"path":"a","content":"b"}`:                       schemas.ActionFileWrite,
		`"openclaw","tool_input":{}`:                                            schemas.ActionMCPTool,
	} {
		call, err := hook.OpenClaw().Dialect.Read([]byte(`{"hook_event_name":"PreToolUse","session_id":"s","tool_use_id":"1","tool_name":` + input + `}`))
		require.NoError(t, err)
		assert.Equal(t, action, call.Action, input)
	}
}
