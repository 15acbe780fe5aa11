package agents_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/agents/internal/npm"
)

// openCodeSettings are settings for OpenCode or Kilo. Their only model is the fake model, which has
// Anthropic's Messages API; %q stands for its address.
const openCodeSettings = `{
  "model": "fake/m", "small_model": "fake/m", "autoupdate": false, "share": "disabled",
  "provider": {"fake": {"npm": "@ai-sdk/anthropic", "name": "Fake", "options": {"baseURL": %q, "apiKey": "none"},
    "models": {"m": {"name": "M", "tool_call": true, "limit": {"context": 100000, "output": 1000}}}}}
}`

// openCodeOff lists environment variables that turn off all features that need other hosts. Each variable
// begins with the program's name, which the list leaves out.
var openCodeOff = []string{"_DISABLE_MODELS_FETCH=1", "_DISABLE_AUTOUPDATE=1", "_DISABLE_LSP_DOWNLOAD=1", "_DISABLE_DEFAULT_PLUGINS=1"}

// openCode returns a command of nod acp with OpenCode. OpenCode uses the fake model and the settings that nod
// install writes.
func (x *machine) openCode(program string, flags ...string) *exec.Cmd {
	settings := filepath.Join(x.project, "opencode.json")
	require.NoError(x.t, os.WriteFile(settings, fmt.Appendf(nil, openCodeSettings, x.model.URL+"/v1"), 0o600))
	x.does("install", "opencode", "--settings", settings)
	c := x.command(x.nod, slices.Concat([]string{"acp"}, flags, []string{"--", program, "acp"})...)
	for _, off := range openCodeOff {
		c.Env = append(c.Env, "OPENCODE"+off)
	}
	return c
}

// With the settings that nod install writes, OpenCode asks its editor for permission, and nod acp answers
// instead of the editor. After a denial OpenCode ends the turn, so the model gets no result.
func TestOpenCodeByACP(t *testing.T) {
	with(t, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, call{"bash", map[string]any{"command": touch, "description": "leave a file"}}))
				r := x.edits(x.openCode(program), "", answer)
				assert.Equal(t, "bash", r.Tool)
				if x.shows(answer, ""); !answers[answer] {
					assert.Empty(t, x.model.heard())
				}
			})
		}
	}, npm.OpenCode)
}

// A person's reply to the question at the end of a turn becomes OpenCode's next prompt.
func TestOpenCodeByACPGetsAReply(t *testing.T) {
	with(t, func(t *testing.T, program string) {
		x := newMachine(t, newModel(t, call{"bash", map[string]any{"command": touch, "description": "leave a file"}}))
		x.editsAgain(x.openCode(program, "--turns"), "")
	}, npm.OpenCode)
}

// After a denial, OpenCode drops all open calls of the session and still asks about them. nod asks no
// person about these calls.
func TestOpenCodeByACPAsksNoPersonAboutDroppedCalls(t *testing.T) {
	with(t, func(t *testing.T, program string) {
		x := newMachine(t, newModel(t,
			call{"bash", map[string]any{"command": touch, "description": "leave a file"}},
			call{"write", map[string]any{"filePath": "written", "content": "x"}},
			call{"bash", map[string]any{"command": "echo two > two", "description": "leave another"}}))
		x.edits(x.openCode(program), "", "deny")
		assert.Empty(t, x.pending())
		assert.Len(t, x.history(), 1)
		for _, left := range []string{x.ran, filepath.Join(x.project, "two"), filepath.Join(x.project, "written")} {
			assert.NoFileExists(t, left)
		}
	}, npm.OpenCode)
}
