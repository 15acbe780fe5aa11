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

	"github.com/nodbus/nod/connectors/agents/hook"
)

const claudePackage = "@anthropic-ai/claude-code"

// claude returns a command for Claude Code. The string program is the path of Claude Code or of a program
// that starts it.
func (x *machine) claude(program string, args ...string) *exec.Cmd {
	c := x.command(program, args...)
	c.Env = append(c.Env, "ANTHROPIC_BASE_URL="+x.model.URL, "ANTHROPIC_API_KEY=none",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
		"ENABLE_TOOL_SEARCH=false") // Claude Code then offers every tool to the model at once
	return c
}

// The method installs returns a command that installs Claude Code's hook.
func (x *machine) installs(program string, flags ...string) *exec.Cmd {
	return x.installFor("claude-code", program, append([]string{"--settings", x.claudeSettings()}, flags...)...)
}

func (x *machine) claudeSettings() string { return filepath.Join(x.home, ".claude", "settings.json") }

var claudeTouch = claudeShell(touch)

func claudeShell(line string) call {
	return call{"Bash", map[string]any{"command": line, "description": "leave a file"}}
}

// After a strict install, Claude Code asks the hook before each tool call, also in print mode.
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

// Claude Code asks the hook instead of its own user.
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

// Claude Code asks its user a question. A person answers the question through the hook, and the model
// gets the answer.
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

// Claude Code asks its user to approve a plan, and a person answers through the hook. After an allow Claude
// Code leaves its plan mode; after a denial the model gets the person's words.
func TestClaudeCodeAsksToApproveAPlan(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		for said, heard := range map[string]string{"1": "approved your plan", "use go build": "keep planning: use go build"} {
			t.Run(said, func(t *testing.T) {
				if strings.Contains(t.Name(), "2.1.329") {
					t.Skip("left out: this version takes the plan from a plan file, which the model of this test does not write")
				}
				x := newMachine(t, newModel(t, call{"ExitPlanMode", map[string]any{"plan": "# Mend the build"}}))
				x.claudeHosted(program, func(r request) {
					assert.Equal(t, "question", r.Kind)
					x.does("answer", r.ID, said)
				}, "--permission-mode", "plan")
				assert.Contains(t, x.model.heard(), heard)
			})
		}
	})
}

// In the mode "auto", Claude Code itself denies a call. If a person allows the call through the hook, the
// call runs once when the agent repeats it.
func TestClaudeCodeRepeatsACallThatItHadDenied(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		if strings.Contains(t.Name(), "2.1.329") {
			t.Skip("left out: this version lets Anthropic's server check calls in the mode auto, which the model of this test does not")
		}
		for answer, runs := range answers {
			t.Run(answer, func(t *testing.T) {
				risky := call{"Bash", map[string]any{"command": "/bin/sh -c '" + touch + "'", "description": "leave a file"}}
				m := newModel(t, risky)
				m.then = []call{risky}
				x := newMachine(t, m)
				out, err := x.installs(program).CombinedOutput()
				require.NoError(t, err, string(out))
				a := x.starts(x.claude(program, "-p", "go on", "--permission-mode", "auto"))
				r := x.asked(a)
				assert.Equal(t, "Bash", r.Tool)
				assert.NoFileExists(t, x.ran)
				x.does(answer, r.ID)
				x.ends(a)
				assert.Equal(t, runs, strings.Contains(x.model.lastAsked(), "may retry"))
				if runs {
					assert.FileExists(t, x.ran)
				} else {
					assert.NoFileExists(t, x.ran)
				}
			})
		}
	})
}

// With --defer-after, Claude Code's run ends if no person answers in time. After the answer, nod
// resume continues the run: Claude Code makes the same call again and gets the decision.
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

// A run that nod resume has continued ends again if its next call gets no answer in time.
func TestClaudeCodeIsResumedTwice(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		m := newModel(t, claudeTouch)
		m.then = []call{{"Bash", map[string]any{"command": "echo yes > ran-too", "description": "leave another"}}}
		x := newMachine(t, m)
		x.does("install", "claude-code", "--strict", "--defer-after", "1s", "--settings", x.claudeSettings())
		a := x.starts(x.claude(program, "-p", "go on"))
		x.ends(a)
		r := x.asked(a)
		x.does("allow", r.ID)
		x.ends(x.starts(x.claude(x.nod, "resume", r.Session, "--claude", program)))
		assert.FileExists(t, x.ran)
		second := x.asked(a)
		assert.NoFileExists(t, x.ran+"-too")
		x.does("allow", second.ID)
		x.ends(x.starts(x.claude(x.nod, "resume", r.Session, "--claude", program)))
		assert.FileExists(t, x.ran+"-too")
	})
}

// If the model makes several calls at once, --defer-after does not end the run, because a resumed Claude Code
// would run, without asking, the calls that its own rules allow. Instead, all calls are denied, and the model
// learns that the requests stay open.
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

// Claude Code uses nod mcp as its permission prompt tool, and asks it about calls that its own settings
// do not allow.
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

// claudeAsks runs Claude Code and answers its request to run a shell command. It requires that the command
// has run if the answer allows it, and only then.
func (x *machine) claudeAsks(answer string, c *exec.Cmd) {
	a := x.starts(c)
	r := x.asked(a)
	assert.Equal(x.t, "Bash", r.Tool)
	x.does(answer, r.ID, "-m", "said by Ann")
	x.ends(a)
	x.shows(answer, "said by Ann")
}

// claudeHosted installs the hook and runs Claude Code until the model has a result. It passes Claude Code's
// request to the function answer. The test acts as Claude Code's host over the standard streams, and answers
// no permission prompts. Claude Code needs a host, because without one the model cannot use AskUserQuestion
// in print mode, and version 2.1.197 calls no PermissionRequest hook.
func (x *machine) claudeHosted(program string, answer func(request), args ...string) {
	x.does("install", "claude-code", "--settings", x.claudeSettings())
	args = append([]string{"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio"}, args...)
	c := x.claude(program, args...)
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

// Claude Code gives its model the session's notices, both with the next prompt that the user types and after
// a call that a person allowed with a changed input.
func TestClaudeCodeTellsItsModelTheNotices(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		const session = "11111111-2222-4333-8444-555555555555"
		x := newMachine(t, newModel(t, claudeTouch))
		gate := func(name string) {
			x.does("gate", "--session", session, "--name", name, "--id", "g", "--permission", "@network")
		}
		gate("before-the-prompt")
		require.NoError(t, x.installs(program, "--strict").Run())
		a := x.starts(x.claude(program, "-p", "--session-id", session, "go on"))
		r := x.asked(a)
		assert.Contains(t, x.model.lastAsked(), `\"before-the-prompt\"`)
		gate("during-the-call")
		x.does("allow", r.ID, "--input", text(map[string]any{"command": touch, "description": "leave that file"}))
		x.ends(a)
		assert.Contains(t, x.model.lastAsked(), `\"during-the-call\"`)
	})
}
