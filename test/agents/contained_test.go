package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/contain"
	"github.com/nodbus/nod/connectors/agents/hook"
)

// The method contains puts the preset "contained" into force and writes a script into the project. The script
// creates the file "ran" in the project, tries to create a file outside the project, and prints the project's
// secret.
func (x *machine) contains() (script, outside string) {
	if level, err := contain.Support(); level != contain.Namespaces {
		x.t.Skipf("left out: this machine cannot contain commands: %v", err)
	}
	settings := filepath.Join(x.home, "settings.json")
	require.NoError(x.t, os.WriteFile(settings, []byte(`{"permissions":{"preset":"contained"}}`), 0o600))
	x.does("settings", "apply", settings)
	outside = filepath.Join(filepath.Dir(x.project), "escaped")
	require.NoError(x.t, os.WriteFile(filepath.Join(x.project, ".env"), []byte("TOKEN=hunter2hunter2\n"), 0o600))
	require.NoError(x.t, os.WriteFile(filepath.Join(x.project, "task.sh"), fmt.Appendf(nil, "%s\necho out > %s\ncat .env\n", touch, outside), 0o600))
	return "bash task.sh", outside
}

// inPath adds nod's directory to the PATH of an agent's command, because an installed nod is in the PATH.
func (x *machine) inPath(c *exec.Cmd) *exec.Cmd {
	c.Env = append(c.Env, "PATH="+filepath.Dir(x.nod)+":"+os.Getenv("PATH"))
	return c
}

// ranContained checks that the agent ran the script without a question, and in a container.
func (x *machine) ranContained(outside string) {
	assert.FileExists(x.t, x.ran)
	assert.NoFileExists(x.t, outside)
	assert.NotEmpty(x.t, x.model.heard())
	assert.NotContains(x.t, x.model.heard(), "hunter2")
	assert.Empty(x.t, x.pending())
	var sessions []struct {
		ID string `json:"session_id"`
	}
	require.NoError(x.t, json.Unmarshal([]byte(x.does("sessions", "--json")), &sessions))
	require.Len(x.t, sessions, 1)
	assert.Contains(x.t, x.does("session", "show", sessions[0].ID), "1 call contained")
}

func TestClaudeCodeRunsALineContained(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		x := newMachine(t, newModel(t))
		script, outside := x.contains()
		x.model.calls = []call{{"Bash", map[string]any{"command": script, "description": "build"}}}
		x.does("install", "claude-code", "--strict", "--settings", x.claudeSettings())
		x.ends(x.starts(x.inPath(x.claude(program, "-p", "go on"))))
		x.ranContained(outside)
	})
}

func TestClaudeCodeRunsALineContainedByMCP(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		x := newMachine(t, newModel(t))
		script, outside := x.contains()
		x.model.calls = []call{{"Bash", map[string]any{"command": script, "description": "build"}}}
		config := fmt.Sprintf(`{"mcpServers":{"nod":{"command":%q,"args":["mcp","--in-project"]}}}`, x.nod)
		c := x.inPath(x.claude(program, "-p", "go on", "--mcp-config", config, "--permission-prompt-tool", "mcp__nod__approve"))
		c.Env = append(c.Env, "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR=1")
		x.ends(x.starts(c))
		x.ranContained(outside)
	})
}

func TestGeminiRunsALineContained(t *testing.T) {
	each(t, hook.Gemini(), geminiPackage, func(t *testing.T, program string) {
		x := newMachine(t, newModel(t))
		script, outside := x.contains()
		x.model.calls = []call{{"run_shell_command", map[string]any{"command": script, "description": "build"}}}
		x.geminiUsesAKey()
		x.installsFor("gemini", program)
		x.ends(x.starts(x.inPath(x.gemini(program, "--yolo", "-p", "go on"))))
		x.ranContained(outside)
	})
}
