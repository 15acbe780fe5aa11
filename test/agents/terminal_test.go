package agents_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/internal/testlog"
)

// inTerminal makes the command c run in a terminal, by means of util-linux's program "script". What the test
// writes to the returned writer is typed in the terminal.
func (x *machine) inTerminal(c *exec.Cmd) (keyboard io.Writer, s *testlog.Buffer) {
	path, err := exec.LookPath("script")
	if err != nil {
		x.t.Skip("left out: there is no script, which gives a program a terminal (Debian: bsdutils)")
	}
	c.Args, c.Path = []string{"script", "-qec", "stty rows 40 cols 100; " + strings.Join(c.Args, " "), "/dev/null"}, path
	c.Env = append(c.Env, "TERM=xterm-256color", "COLUMNS=100", "LINES=40")
	keyboard, err = c.StdinPipe()
	require.NoError(x.t, err)
	s = &testlog.Buffer{}
	c.Stdout = s
	return keyboard, s
}

// The method types writes a prompt and sends it.
func (x *machine) types(keyboard io.Writer, s *testlog.Buffer, text string) {
	_, err := io.WriteString(keyboard, text)
	require.NoError(x.t, err)
	x.until("the terminal shows the prompt", func() bool { return strings.Contains(s.String(), text) })
	_, err = io.WriteString(keyboard, "\r")
	require.NoError(x.t, err)
}

// At the end of a turn in a terminal, nod asks people for Claude Code's next prompt. Their reply becomes
// the next prompt. A prompt that the user types in the terminal also becomes the next prompt, and ends
// the question.
func TestClaudeCodeGetsAReply(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		x := newMachine(t, newModel(t, call{tool: "no tool"})) // the model ends each turn at once
		install := x.installs(program, "--turns")
		if strings.Contains(t.Name(), "2.1.197") { // Claude Code 2.1.197 takes no prompt in the terminal while a Stop hook runs
			out, err := install.CombinedOutput()
			require.Error(t, err)
			assert.Contains(t, string(out), "--turns needs Claude Code 2.1.329 or newer, and nod found 2.1.197")
			return
		}
		out, err := install.CombinedOutput()
		require.NoError(t, err, string(out))
		keyboard, s, a := x.claudeInTerminal(program)
		x.types(keyboard, s, "hello")
		first := x.asked(a)
		assert.Equal(t, "question", first.Kind)
		x.does("answer", first.ID, "now rest a little")
		x.until("the model is told", func() bool { return strings.Contains(x.model.lastAsked(), "now rest a little") })
		second := x.asked(a)
		assert.NotEqual(t, first.ID, second.ID)
		x.types(keyboard, s, "typed-here")
		x.until("the model is told", func() bool { return strings.Contains(x.model.lastAsked(), "typed-here") })
		x.until("the next turn is asked about", func() bool {
			all := x.pending()
			return len(all) == 1 && all[0].ID != second.ID
		})
		_, err = io.WriteString(keyboard, "\x1b") // the key Esc
		require.NoError(t, err)
		x.until("the question has ended", func() bool { return len(x.pending()) == 0 })
	})
}

// claudeInTerminal starts Claude Code in a terminal, in a project that its user trusts.
func (x *machine) claudeInTerminal(program string) (keyboard io.Writer, s *testlog.Buffer, a *agent) {
	trusted := `{"hasCompletedOnboarding":true,"theme":"dark","customApiKeyResponses":{"approved":["none"]},"projects":{"` + x.project + `":{"hasTrustDialogAccepted":true}}}`
	require.NoError(x.t, os.WriteFile(filepath.Join(x.home, ".claude.json"), []byte(trusted), 0o600))
	c := x.claude(program)
	keyboard, s = x.inTerminal(c)
	a = x.starts(c)
	x.until("Claude Code is ready", func() bool { return strings.Contains(s.String(), "❯") })
	return keyboard, s, a
}

// If a turn of Claude Code fails, people are told why, and cannot reply. The user can still type in Claude
// Code's terminal, and the next prompt there ends the question.
func TestClaudeCodeTellsOfAFailedTurn(t *testing.T) {
	each(t, hook.ClaudeCode(), claudePackage, func(t *testing.T, program string) {
		if strings.Contains(t.Name(), "2.1.197") {
			t.Skip("left out: nod install refuses --turns for this version")
		}
		m := newModel(t, call{tool: "no tool"})
		m.fails = "the model is on strike"
		x := newMachine(t, m)
		out, err := x.installs(program, "--turns").CombinedOutput()
		require.NoError(t, err, string(out))
		keyboard, s, a := x.claudeInTerminal(program)
		x.types(keyboard, s, "hello")
		first := x.asked(a)
		assert.Equal(t, "question", first.Kind)
		assert.JSONEq(t, `{"failure":"API Error: 400 the model is on strike"}`, string(first.Details))
		assert.NotContains(t, x.does("show", first.ID), "Reply")
		x.types(keyboard, s, "typed-here")
		x.until("the next failure is told", func() bool {
			all := x.pending()
			return len(all) == 1 && all[0].ID != first.ID
		})
		x.does("deny", x.asked(a).ID)
		assert.Empty(t, x.pending())
	})
}

// When Codex has finished in a terminal, people are asked for its next prompt. A prompt that the user types
// in the terminal waits until the key Esc ends the question.
func TestCodexGetsAReply(t *testing.T) {
	each(t, hook.Codex(), "@openai/codex", func(t *testing.T, program string) {
		x := newMachine(t, newModel(t, call{tool: "no tool"}))
		x.codexUsesTheModel()
		x.codexSets("[projects." + text(x.project) + "]\ntrust_level = \"trusted\"\n")
		x.installsFor("codex", program, "--turns")
		t.Cleanup(x.killCodexDaemon)
		c := x.codex(program)
		keyboard, s := x.inTerminal(c)
		a := x.starts(c)
		x.until("Codex is ready", func() bool { return strings.Contains(s.String(), "›") })
		x.types(keyboard, s, "hello")
		first := x.asked(a)
		assert.Equal(t, "question", first.Kind)
		assert.JSONEq(t, `{"message":"Done."}`, string(first.Details))
		x.does("answer", first.ID, "now rest a little")
		x.until("the model is told", func() bool { return strings.Contains(x.model.lastAsked(), "now rest a little") })
		second := x.asked(a)
		assert.NotEqual(t, first.ID, second.ID)
		x.types(keyboard, s, "typed-here")
		_, err := io.WriteString(keyboard, "\x1b") // the key Esc
		require.NoError(t, err)
		x.until("the model is told", func() bool { return strings.Contains(x.model.lastAsked(), "typed-here") })
		x.until("the next turn is asked about", func() bool {
			all := x.pending()
			return len(all) == 1 && all[0].ID != second.ID
		})
	})
}

// killCodexDaemon kills the server that Codex has started in the background, and the hooks that the server
// runs. This server would outlive Codex's terminal. Its program is in the home directory.
func (x *machine) killCodexDaemon() {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(x.t, err)
	for _, path := range all {
		line, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(line), x.home+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // Kill fails if the process has ended
		}
	}
}
