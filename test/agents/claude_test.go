package agents_test

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const claudePackage = "@anthropic-ai/claude-code@2.1.329"

// claude is Claude Code in print mode.
func (x *machine) claude(program string, args ...string) *exec.Cmd {
	c := x.command(program, append([]string{"-p"}, args...)...)
	c.Env = append(c.Env, "ANTHROPIC_BASE_URL="+x.model.URL, "ANTHROPIC_API_KEY=none",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
	return c
}

func (x *machine) claudeSettings() string { return filepath.Join(x.home, ".claude", "settings.json") }

var claudeTouch = call{"Bash", map[string]any{"command": touch, "description": "leave a file"}}

// Print mode asks the hook for what a terminal would ask about, and a strict
// hook before that.
func TestClaudeCodeByHook(t *testing.T) {
	program := installed(t, claudePackage, "claude")
	for event, flags := range map[string][]string{"PermissionRequest": nil, "PreToolUse": {"--strict"}} {
		for answer := range answers {
			t.Run(event+" "+answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, claudeTouch))
				x.does(append([]string{"install", "claude-code", "--settings", x.claudeSettings()}, flags...)...)
				a := x.starts(x.claude(program, "go on"))
				r := x.asked(a)
				assert.Equal(t, "Claude Code", r.Agent)
				assert.Equal(t, "Bash", r.Tool)
				x.says(a, answer, r)
			})
		}
	}
}

func TestClaudeCodeByMCP(t *testing.T) {
	program := installed(t, claudePackage, "claude")
	for answer := range answers {
		t.Run(answer, func(t *testing.T) {
			x := newMachine(t, newModel(t, claudeTouch))
			config := fmt.Sprintf(`{"mcpServers":{"nod":{"command":%q,"args":["mcp"]}}}`, x.nod)
			a := x.starts(x.claude(program, "go on", "--mcp-config", config, "--permission-prompt-tool", "mcp__nod__approve"))
			r := x.asked(a)
			assert.Equal(t, "Bash", r.Tool)
			x.says(a, answer, r)
		})
	}
}

// Print mode alone does not offer its model AskUserQuestion. A program that hosts
// Claude Code over its standard input has it, and would show the question
// itself: here it never answers, and the hook does.
func TestClaudeCodeAsksAQuestion(t *testing.T) {
	program := installed(t, claudePackage, "claude")
	x := newMachine(t, newModel(t, call{"AskUserQuestion", map[string]any{"questions": []any{map[string]any{
		"question": "Which database?", "header": "Database", "multiSelect": false, "options": []any{
			map[string]any{"label": "Postgres", "description": "big"},
			map[string]any{"label": "SQLite", "description": "small"},
		},
	}}}}))
	x.does("install", "claude-code", "--settings", x.claudeSettings())
	c := x.claude(program, "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio")
	in, err := c.StdinPipe()
	require.NoError(t, err)
	a := x.starts(c)
	_, err = io.WriteString(in, `{"type":"user","message":{"role":"user","content":"go on"}}`+"\n")
	require.NoError(t, err)
	r := x.asked(a)
	assert.Equal(t, "question", r.Kind)
	x.does("answer", r.ID, "2")
	require.Eventually(t, func() bool { return strings.Contains(x.model.heard(), "SQLite") }, patience, tick)
	assert.NotContains(t, x.model.heard(), "Postgres")
	require.NoError(t, in.Close())
	x.ends(a)
}
