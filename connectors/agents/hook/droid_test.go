package hook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// Rules know droid's own tools by the names that they use. A call with an argument that nod does not know is
// that of an unknown tool.
func TestDroidsOwnToolsAlone(t *testing.T) {
	for _, c := range []struct {
		tool, input, name string
		action            schemas.ActionType
	}{
		{"Execute", `{"command":"ls","riskLevel":"low","riskLevelReason":"r","summary":"s","timeout":60,"fireAndForget":true}`, "Bash", schemas.ActionCommand},
		{"Execute", `{"command":"ls","workdir":"/etc"}`, "Execute", schemas.ActionMCPTool},
		{"Create", `{"file_path":"/p/a","content":"x"}`, "Write", schemas.ActionFileWrite},
		{"Edit", `{"file_path":"/p/a","old_str":"x","new_str":"y","change_all":true}`, "Edit", schemas.ActionFileWrite},
		{"Read", `{"file_path":"/p/a"}`, "Read", schemas.ActionFileRead},
		{"Grep", `{"pattern":"x","glob_pattern":"*"}`, "Grep", schemas.ActionMCPTool},
		{"Bash", `{"command":"ls"}`, "Bash", schemas.ActionMCPTool},
		{"mcp__x__Execute", `{"command":"ls"}`, "mcp__x__Execute", schemas.ActionMCPTool},
	} {
		call, err := hook.Droid().Dialect.Read(fmt.Appendf(nil, `{"session_id":"s","cwd":"/p","hook_event_name":"PreToolUse","tool_name":%q,"tool_input":%s}`, c.tool, c.input))
		require.NoError(t, err)
		assert.Equal(t, c.name, call.ToolName)
		assert.Equal(t, c.action, call.Action, c.input)
	}
}

// droid runs no hook if its hooks.json, or the hooks in its settings.json, say so.
func TestDroidsHooksAreOff(t *testing.T) {
	for file, content := range map[string]string{"hooks.json": `{"hooksDisabled":true}`, "settings.json": `{"hooks":{"hooksDisabled":true}}`} {
		path := filepath.Join(t.TempDir(), file)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		change, err := hook.Install(hook.Droid(), hook.InstallOptions{Settings: path, Program: "/opt/nod"})
		require.NoError(t, err)
		assert.Contains(t, change.Warning, "no hook runs until you remove it")
		at, err := hook.Inspect(hook.Droid(), hook.InstallOptions{Settings: path})
		require.NoError(t, err)
		assert.Equal(t, "hooksDisabled", at.Off)
	}
}

// At each event, droid runs only the hooks of the first of hooks.json, hooks/hooks.json and settings.json that
// has any. An installation turns off no hooks of the user, and is not turned off by them.
func TestInstallTurnsOffNoHooksOfDroid(t *testing.T) {
	const own = `[ {"matcher":"Execute","hooks":[{"type":"command","command":"mine"}]}]`
	for name, c := range map[string]struct {
		file, content string
		into, before  string
		refused       string
	}{
		"in settings":         {"settings.json", `{"hooks":{"PreToolUse":` + own + `}}`, "hooks.json", "", "settings.json has hooks for PreToolUse"},
		"in the older file":   {"hooks/hooks.json", `{"PreToolUse":` + own + `}`, "hooks.json", "", "hooks/hooks.json has hooks for PreToolUse"},
		"moved already":       {"settings.json", `{"hooks":{"PreToolUse":` + own + `}}`, "hooks.json", "{\n  \"PreToolUse\": " + own + "\n}\n", ""},
		"at another event":    {"settings.json", `{"hooks":{"PostToolUse":` + own + `}}`, "hooks.json", "{ // mine\n  \"PostToolUse\": []\n}", ""},
		"an empty list":       {"settings.json", `{"hooks":{"PreToolUse":[]}}`, "hooks.json", `{"hooks":{}}`, ""},
		"settings, no object": {"settings.json", `[`, "hooks.json", "", "is not valid JSON"},
		"would be off":        {"hooks.json", `{"PreToolUse":` + own + `}`, "settings.json", `{"model":"x"}`, "hooks.json has hooks for PreToolUse"},
		"off in settings":     {"settings.json", `{"hooks":{"hooksDisabled":true}}`, "hooks.json", "", `says "hooksDisabled"`},
		"off, older file":     {"hooks/hooks.json", `{"hooksDisabled":true}`, "hooks.json", "", `says "hooksDisabled"`},
		"off, not effective":  {"settings.json", `{"hooksDisabled":true}`, "hooks.json", `{}`, ""},
		"in settings alone":   {"hooks.json", `{"PostToolUse":` + own + `}`, "settings.json", `{"model":"x"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "hooks"), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(c.file)), []byte(c.content), 0o600))
			path := filepath.Join(dir, c.into)
			if c.before != "" {
				require.NoError(t, os.WriteFile(path, []byte(c.before), 0o600))
			}
			_, err := hook.Install(hook.Droid(), hook.InstallOptions{Settings: path, Program: "/opt/nod"})
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			problem, err := hook.Droid().OffBy(path)
			require.NoError(t, err)
			require.Empty(t, problem)
			at, err := hook.Inspect(hook.Droid(), hook.InstallOptions{Settings: path})
			require.NoError(t, err)
			require.Len(t, at.All(), 2)
			_, err = hook.Install(hook.Droid(), hook.InstallOptions{Settings: path, Uninstall: true})
			require.NoError(t, err)
			assert.Equal(t, c.before, contents(t, path))
		})
	}
}
