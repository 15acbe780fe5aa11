package agents_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
)

const geminiPackage = "@google/gemini-cli"

var geminiTouch = call{"run_shell_command", map[string]any{"command": touch, "description": "leave a file"}}

// gemini is a command that runs Gemini CLI, by itself or through another program.
func (x *machine) gemini(program string, args ...string) *exec.Cmd {
	c := x.command(program, args...)
	c.Env = append(c.Env, "GOOGLE_GEMINI_BASE_URL="+x.model.URL, "GEMINI_API_KEY=none", "GEMINI_CLI_TRUST_WORKSPACE=true",
		"GEMINI_MODEL=gemini-2.5-flash") // without this it asks another model to choose one
	return c
}

// geminiUsesAKey lets Gemini CLI log in with an API key, without a prompt.
func (x *machine) geminiUsesAKey() {
	settings := filepath.Join(x.home, ".gemini", "settings.json")
	require.NoError(x.t, os.MkdirAll(filepath.Dir(settings), 0o700))
	require.NoError(x.t, os.WriteFile(settings, []byte(`{"security":{"auth":{"selectedType":"gemini-api-key"}}}`), 0o600))
}

// Without a terminal, and told to allow everything by itself, Gemini CLI still
// asks its hook.
func TestGeminiByHook(t *testing.T) {
	each(t, hook.Gemini(), geminiPackage, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, geminiTouch))
				x.geminiUsesAKey()
				x.does("install", "gemini")
				a := x.starts(x.gemini(program, "--yolo", "-p", "go on"))
				r := x.asked(a)
				assert.Equal(t, "run_shell_command", r.Tool)
				x.does(answer, r.ID, "-m", "said by Ann")
				x.ends(a)
				x.shows(answer, "said by Ann")
			})
		}
	})
}

// ACP has no field for a denial's reason: the model gets the denial only.
func TestGeminiByACP(t *testing.T) {
	each(t, hook.Gemini(), geminiPackage, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, geminiTouch))
				r := x.edits(x.gemini(x.nod, "acp", "--", program, "--experimental-acp"), "gemini-api-key", answer)
				assert.Equal(t, "acp_execute", r.Tool)
				x.shows(answer, "canceled by the user")
			})
		}
	})
}
