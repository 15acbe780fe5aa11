package hook_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

const geminiMake = `{"session_id":"s1","cwd":"/w","hook_event_name":"BeforeTool","tool_name":"run_shell_command","tool_input":{"command":"make","description":"build"}}`

// Since version 0.61.0, Gemini CLI runs a call with the input that the hook has changed. An older
// version runs the agent's own input. Options.ChangesInput tells the hook which is the case.
func TestGeminiGetsAChangeOnlyIfItsVersionRunsIt(t *testing.T) {
	for name, c := range map[string]struct {
		changes bool
		edit    string
		want    string
		contain string
	}{
		"a version that runs changes": {true, `{"command":"nod exec","description":"build","cwd":"/w"}`,
			`{"decision":"allow","hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":{"command":"nod exec","description":"build"}}}`, schemas.ContainPossible},
		"an unknown version":           {false, `{"command":"nod exec","description":"build","cwd":"/w"}`, `"decision":"deny"`, ""},
		"a change that drops a member": {true, `{"command":"nod exec","cwd":"/w"}`, `"decision":"deny"`, schemas.ContainPossible},
		"no change":                    {true, "", `{"decision":"allow"}`, schemas.ContainPossible},
	} {
		t.Run(name, func(t *testing.T) {
			d := schemas.Decision{Outcome: schemas.Allowed, By: schemas.By{Kind: schemas.ByPolicy}}
			if c.edit != "" {
				d.UpdatedInput = json.RawMessage(c.edit)
			}
			nod := &fakeNod{t: t, ask: decides(d)}
			var out bytes.Buffer
			hook.Run(t.Context(), hook.Gemini(), strings.NewReader(geminiMake), &out, nod.connect, hook.Options{ChangesInput: c.changes, Contain: schemas.ContainPossible})
			if strings.HasPrefix(c.want, "{") {
				assert.JSONEq(t, c.want, out.String())
			} else {
				assert.Contains(t, out.String(), c.want)
			}
			assert.Equal(t, c.contain, nod.asked().Contain)
		})
	}
}

// nod install writes the flag --changes-input only for a version of the host that runs changed inputs.
// If no version of the host runs changed inputs, such as Codex, Options.ChangesInput has no effect.
func TestInstallTellsTheHookWhetherItsHostRunsChanges(t *testing.T) {
	for version, want := range map[string]bool{"": false, "0.60.9": false, "0.61.0": true, "1.0.0": true} {
		change := installedFor(t, hook.Gemini(), t.TempDir()+"/settings.json", hook.InstallOptions{HostVersion: version})
		assert.Equal(t, want, strings.Contains(string(change.After), "--changes-input"), version)
	}
	change := installedFor(t, hook.Codex(), t.TempDir()+"/hooks.json", hook.InstallOptions{HostVersion: "9.0.0"})
	assert.NotContains(t, string(change.After), "--changes-input")
	nod := &fakeNod{t: t, ask: decides(schemas.Decision{Outcome: schemas.Allowed, By: schemas.By{Kind: schemas.ByPolicy}})}
	hook.Run(t.Context(), hook.Codex(), strings.NewReader(claudeEvent("PreToolUse", "")), &bytes.Buffer{}, nod.connect, hook.Options{ChangesInput: true, Contain: schemas.ContainPossible})
	assert.Empty(t, nod.asked().Contain)
}
