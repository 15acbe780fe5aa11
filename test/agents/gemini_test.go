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

var geminiTouch = geminiShell(touch)

// geminiShell returns a call of the shell tool of Gemini CLI. Qwen Code has the same tool, because it
// is based on Gemini CLI.
func geminiShell(line string) call {
	return call{"run_shell_command", map[string]any{"command": line, "description": "leave a file", "is_background": false}}
}

// gemini returns a command for Gemini CLI. The string program is the path of Gemini CLI or of a program that
// starts it.
func (x *machine) gemini(program string, args ...string) *exec.Cmd {
	c := x.command(program, args...)
	c.Env = append(c.Env, "GOOGLE_GEMINI_BASE_URL="+x.model.URL, "GEMINI_API_KEY=none", "GEMINI_CLI_TRUST_WORKSPACE=true",
		"GEMINI_MODEL=gemini-2.5-flash") // without GEMINI_MODEL, Gemini CLI asks a model to choose a model
	return c
}

// geminiUsesAKey makes Gemini CLI log in with an API key, so that it does not ask the user how to log in.
func (x *machine) geminiUsesAKey() {
	settings := filepath.Join(x.home, ".gemini", "settings.json")
	require.NoError(x.t, os.MkdirAll(filepath.Dir(settings), 0o700))
	require.NoError(x.t, os.WriteFile(settings, []byte(`{"security":{"auth":{"selectedType":"gemini-api-key"}}}`), 0o600))
}

// Gemini CLI asks its hook even without a terminal and with the flag --yolo, by which it runs every call
// without asking its user.
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

// Through nod acp, the model gets a denial without its reason, because ACP has no field for a reason.
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

// A person's reply to the question at the end of a turn becomes Gemini CLI's next prompt.
func TestGeminiByACPGetsAReply(t *testing.T) {
	each(t, hook.Gemini(), geminiPackage, func(t *testing.T, program string) {
		x := newMachine(t, newModel(t, geminiTouch))
		x.editsAgain(x.gemini(x.nod, "acp", "--turns", "--", program, "--experimental-acp"), "gemini-api-key")
	})
}
