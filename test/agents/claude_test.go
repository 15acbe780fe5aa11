package agents_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

const claudePackage = "@anthropic-ai/claude-code@2.1.329"

// claude is Claude Code in print mode.
func (x *machine) claude(program string, args ...string) *exec.Cmd {
	c := x.command(program, append([]string{"-p", "go on"}, args...)...)
	c.Env = append(c.Env, "ANTHROPIC_BASE_URL="+x.model.URL, "ANTHROPIC_API_KEY=none",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
	return c
}

// answers are those that every agent is given, and whether its tool then runs.
var answers = map[string]bool{"allow": true, "deny": false}

// touch is a shell command that leaves a file behind.
const touch = "echo yes > ran"

func TestClaudeCodeByHook(t *testing.T) {
	program := installed(t, claudePackage, "claude")
	for answer, runs := range answers {
		t.Run(answer, func(t *testing.T) {
			x := newMachine(t, newModel(t, call{"Bash", map[string]any{"command": touch, "description": "leave a file"}}))
			x.does("install", "claude-code", "--strict", "--settings", filepath.Join(x.home, ".claude", "settings.json"))
			a := x.starts(x.claude(program))
			r := x.asked(a)
			assert.Equal(t, "Bash", r.Tool)
			x.does(answer, r.ID, "-m", "says Ann")
			x.ends(a)
			x.hasRun(runs)
		})
	}
}

func (x *machine) hasRun(runs bool) {
	x.t.Helper()
	if runs {
		assert.FileExists(x.t, x.ran)
		assert.NotEmpty(x.t, x.model.heard())
		return
	}
	assert.NoFileExists(x.t, x.ran)
	assert.Contains(x.t, x.model.heard(), "says Ann")
}
