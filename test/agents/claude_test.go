package agents_test

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
)

const claudePackage = "@anthropic-ai/claude-code"

// claude is a command that runs Claude Code, by itself or through another program.
func (x *machine) claude(program string, args ...string) *exec.Cmd {
	c := x.command(program, args...)
	c.Env = append(c.Env, "ANTHROPIC_BASE_URL="+x.model.URL, "ANTHROPIC_API_KEY=none",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
	return c
}

func (x *machine) claudeSettings() string { return filepath.Join(x.home, ".claude", "settings.json") }

var claudeTouch = call{"Bash", map[string]any{"command": touch, "description": "leave a file"}}

// A strict hook is asked before anything else, in print mode too.
func TestClaudeCodeByStrictHook(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, claudeTouch))
				x.does("install", "claude-code", "--strict", "--settings", x.claudeSettings())
				x.claudeAsks(answer, x.claude(program, "-p", "go on"))
			})
		}
	})
}

// The hook is asked in place of the host's user.
func TestClaudeCodeByHook(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, claudeTouch))
				x.claudeHosted(program, func(r request) {
					assert.Equal(t, "Bash", r.Tool)
					x.does(answer, r.ID, "-m", "said by Ann")
				})
				x.shows(answer, "said by Ann")
			})
		}
	})
}

// The hook answers a question of Claude to its user, and Claude goes on with the
// answer.
func TestClaudeCodeAsksAQuestion(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		x := newMachine(t, newModel(t, call{"AskUserQuestion", map[string]any{"questions": []any{map[string]any{
			"question": "Which database?", "header": "Database", "multiSelect": false, "options": []any{
				map[string]any{"label": "Postgres", "description": "big"},
				map[string]any{"label": "SQLite", "description": "small"},
			},
		}}}}))
		x.claudeHosted(program, func(r request) {
			assert.Equal(t, "question", r.Kind)
			x.does("answer", r.ID, "2")
		})
		assert.Contains(t, x.model.heard(), "SQLite")
		assert.NotContains(t, x.model.heard(), "Postgres")
	})
}

// A run without an answer ends. After the answer, nod resume continues the run, and
// Claude Code asks again and gets the decision.
func TestClaudeCodeIsResumed(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, claudeTouch))
				x.does("install", "claude-code", "--strict", "--defer-after", "1s", "--settings", x.claudeSettings())
				a := x.starts(x.claude(program, "-p", "go on"))
				x.ends(a)
				r := x.asked(a)
				assert.Empty(t, x.model.heard())
				x.does(answer, r.ID, "-m", "said by Ann")
				x.ends(x.starts(x.claude(x.nod, "resume", r.Session, "--claude", program)))
				x.shows(answer, "said by Ann")
			})
		}
	})
}

// nod does not end a run at one of several calls: Claude Code would not ask about them
// again, and would run those that its own rules allow. No call runs, and the model learns
// that the requests stay open.
func TestClaudeCodeMakesTwoCallsAtOnce(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		for name, whole := range map[string]bool{"streamed": false, "in one piece": true} {
			t.Run(name, func(t *testing.T) {
				other := call{"Bash", map[string]any{"command": "echo yes > ran-too", "description": "leave another"}}
				m := newModel(t, claudeTouch, other)
				m.whole = whole
				x := newMachine(t, m)
				x.does("install", "claude-code", "--strict", "--defer-after", "1s", "--settings", x.claudeSettings())
				x.ends(x.starts(x.claude(program, "-p", "go on", "--allowedTools", "Bash")))
				assert.NoFileExists(t, x.ran)
				assert.NoFileExists(t, x.ran+"-too")
				assert.Contains(t, m.heard(), "The request stays open")
				assert.Len(t, x.pending(), 2)
			})
		}
	})
}

// The permission prompt tool gets the calls that no setting allows.
func TestClaudeCodeByMCP(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		for answer := range answers {
			t.Run(answer, func(t *testing.T) {
				x := newMachine(t, newModel(t, claudeTouch))
				config := fmt.Sprintf(`{"mcpServers":{"nod":{"command":%q,"args":["mcp"]}}}`, x.nod)
				x.claudeAsks(answer, x.claude(program, "-p", "go on", "--mcp-config", config, "--permission-prompt-tool", "mcp__nod__approve"))
			})
		}
	})
}

// claudeAsks runs Claude Code, and answers its request for a shell command.
func (x *machine) claudeAsks(answer string, c *exec.Cmd) {
	a := x.starts(c)
	r := x.asked(a)
	assert.Equal(x.t, "Bash", r.Tool)
	x.does(answer, r.ID, "-m", "said by Ann")
	x.ends(a)
	x.shows(answer, "said by Ann")
}

// claudeHosted runs Claude Code with the hook, hosted over its standard input by a test
// that answers none of its prompts. Without a host, print mode offers its model no
// AskUserQuestion, and version 2.1.197 calls no PermissionRequest hook.
func (x *machine) claudeHosted(program string, answer func(request)) {
	x.does("install", "claude-code", "--settings", x.claudeSettings())
	c := x.claude(program, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio")
	in, err := c.StdinPipe()
	require.NoError(x.t, err)
	a := x.starts(c)
	_, err = io.WriteString(in, `{"type":"user","message":{"role":"user","content":"go on"}}`+"\n")
	require.NoError(x.t, err)
	answer(x.asked(a))
	x.until("the model is told", func() bool { return x.model.heard() != "" })
	require.NoError(x.t, in.Close())
	x.ends(a)
}
