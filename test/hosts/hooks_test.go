package hosts

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/test/internal/rig"
)

// TestHookThatCannotBeRunRefuses: if nod does not understand a hook command, for example of another version,
// the host must not run the call.
func TestHookThatCannotBeRunRefuses(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	for _, line := range []string{"hook", "hook nope", "hook codex --frob", "hook codex --on-unavailable maybe", "hook gemini --host-timeout x"} {
		t.Run(line, func(t *testing.T) {
			stdout, stderr, code := m.Run(strings.Fields(line)...)
			assert.Equal(t, 2, code)
			assert.Contains(t, stderr, "nod: ", "some hosts take exit code 2 for a refusal only with a reason")
			var reply map[string]string
			require.NoError(t, json.Unmarshal([]byte(stdout), &reply), "stdout %q", stdout)
			assert.Equal(t, "block", reply["decision"])
			assert.Equal(t, "deny", reply["behavior"])
		})
	}
}

// TestAHookForTurnsThatCannotBeRunLeavesTheTurn: if nod does not understand a hook command for the end of a
// turn, it refuses nothing, because Claude Code would take the refusal for its next prompt.
func TestAHookForTurnsThatCannotBeRunLeavesTheTurn(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	for _, line := range []string{"hook claude-code --turns --frob", "hook claude-code --host-timeout x --turns"} {
		stdout, stderr, code := m.Run(strings.Fields(line)...)
		assert.Zero(t, code, line)
		assert.Equal(t, "{}\n", stdout, line)
		assert.Contains(t, stderr, "nod: ")
	}
}

// TestEachHookEndToEnd: each host gets a person's answer from its hook in the host's own format. With
// --dry-run, nod install writes no file.
func TestEachHookEndToEnd(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	for agent, c := range map[string]struct{ input, allow, deny string }{
		"codex": {
			`{"session_id":"SESSION","cwd":"/","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"make release"}}`,
			`{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`, `"behavior":"deny"`,
		},
		"gemini": {
			`{"session_id":"SESSION","cwd":"/","hook_event_name":"BeforeTool","tool_name":"run_shell_command","tool_input":{"command":"make release"}}`,
			`{"decision":"allow"}`, `"decision":"deny"`,
		},
		"copilot": {
			`{"sessionId":"SESSION","cwd":"/","toolName":"bash","toolInput":{"command":"make release"}}`,
			`{"behavior":"allow"}`, `"behavior":"deny"`,
		},
	} {
		t.Run(agent, func(t *testing.T) {
			for _, answer := range []string{"allow", "deny"} {
				session := agent + "-" + answer
				cmd := m.Command("hook", agent)
				cmd.Stdin = strings.NewReader(strings.Replace(c.input, "SESSION", session, 1))
				var out strings.Builder
				cmd.Stdout, cmd.Stderr = &out, os.Stderr
				require.NoError(t, cmd.Start())
				_, stderr, code := m.Run(answer, m.Pending(session))
				require.Zero(t, code, stderr)
				require.NoError(t, cmd.Wait())
				if answer == "allow" {
					assert.Equal(t, c.allow+"\n", out.String())
				} else {
					assert.Contains(t, out.String(), c.deny)
				}
			}
			path := filepath.Join(t.TempDir(), "settings.json")
			_, stderr, code := m.Run("install", agent, "--settings", path, "--dry-run")
			require.Zero(t, code, stderr)
			assert.NoFileExists(t, path)
		})
	}
}

// TestResumeContinuesADeferredRun: with --defer-after, the hook makes the host end its run. nod resume waits
// for the answer and resumes the run. The host then repeats the call, and the hook returns the decision.
func TestResumeContinuesADeferredRun(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestEachHookEndToEnd runs the hooks, and connectors/agents/hook tests deferring")
	m := rig.NewMachine(t)
	m.StartNod()
	transcript := filepath.Join(t.TempDir(), "S-1.jsonl")
	require.NoError(t, os.WriteFile(transcript, []byte(`{"type":"user","promptId":"p1","promptSource":"sdk"}
{"type":"assistant","message":{"id":"m1","stop_reason":"tool_use","content":[{"type":"tool_use","id":"toolu_1"}]}}
`), 0o600))
	call := `{"session_id":"S-1","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"make release"},"tool_use_id":"toolu_1","transcript_path":"` + transcript + `","prompt_id":"p1"}`
	ask := func(patience string) string {
		cmd := m.Command("hook", "claude-code", "--host-timeout", "10m", "--defer-after", patience)
		cmd.Stdin = strings.NewReader(call)
		out, err := cmd.Output()
		require.NoError(t, err)
		return string(out)
	}
	assert.Contains(t, ask("2s"), `"permissionDecision":"defer"`)
	stdout, _, _ := m.Run("show", "toolu_1")
	assert.Contains(t, stdout, "the agent has stopped waiting; an answer counts if it asks again")

	claude := filepath.Join(t.TempDir(), "claude")
	testprogram.Write(t, claude, "#!/bin/sh\necho \"$@\"\nexit 7\n")
	resume := m.Command("resume", "S-1", "--claude", claude, "--", "--model", "opus")
	var out strings.Builder
	resume.Stdout = &out
	said, err := resume.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, resume.Start())
	defer func() { _ = resume.Process.Kill() }() // Kill fails if the process has ended
	waiting, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, waiting, "waiting for toolu_1")
	_, stderr, code := m.Run("allow", "toolu_1")
	require.Zero(t, code, stderr)
	var ended *exec.ExitError
	require.ErrorAs(t, resume.Wait(), &ended)
	assert.Equal(t, 7, ended.ExitCode())
	assert.Equal(t, "-p --resume S-1 --model opus\n", out.String())
	assert.Contains(t, ask("1m"), `"permissionDecision":"allow"`)
}

// TestAnAnswerAtTheHostWithdrawsTheRequest: a user allows a call at the terminal while nod's request is
// pending. nod withdraws the request when the host reports that the call succeeded or failed.
func TestAnAnswerAtTheHostWithdrawsTheRequest(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	for session, event := range map[string]string{"S-2": "PostToolUse", "S-2f": "PostToolUseFailure"} {
		input := func(event string) *strings.Reader {
			return strings.NewReader(`{"session_id":"` + session + `","cwd":"/","hook_event_name":"` + event + `","tool_name":"Bash","tool_input":{"command":"make release"}}`)
		}
		asking := m.Command("hook", "claude-code")
		asking.Stdin = input("PermissionRequest")
		require.NoError(t, asking.Start())
		id := m.Pending(session)
		stdout, _, _ := m.Run("show", id)
		assert.Contains(t, stdout, "can also be answered in the agent's own terminal")

		ran := m.Command("hook", "claude-code")
		ran.Stdin = input(event)
		out, err := ran.Output()
		require.NoError(t, err)
		assert.Equal(t, "{}\n", string(out))
		require.NoError(t, asking.Wait())
		stdout, _, _ = m.Run("show", id)
		assert.Contains(t, stdout, "Withdrawn", event)
	}
}

// turnHook starts the hook by which Claude Code reports the end of a turn. The string entry says how the user
// started Claude Code.
func turnHook(m *rig.Machine, t *testing.T, session, entry string) (c *exec.Cmd, out *strings.Builder) {
	c, out = m.Command("hook", "claude-code", "--turns", "--host-timeout", "86400s"), &strings.Builder{}
	c.Env = append(c.Env, "CLAUDE_CODE_ENTRYPOINT="+entry)
	c.Stdin = strings.NewReader(`{"session_id":"` + session + `","cwd":"/","hook_event_name":"Stop","last_assistant_message":"All **done**."}`)
	c.Stdout = out
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() }) // Kill fails if the hook has ended
	return c, out
}

// TestAReplyIsTheNextPrompt: with --turns, nod tells people that an agent's turn is over. Their reply becomes
// the agent's next prompt.
func TestAReplyIsTheNextPrompt(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	for name, c := range map[string]struct {
		answer []string
		hears  string
	}{
		"reply": {[]string{"answer", "ID", "now run the linter"}, `{"decision":"block","reason":"The user's next prompt, by nod: now run the linter"}`},
		"left":  {[]string{"deny", "ID"}, "{}"},
		"froze": {[]string{"freeze", "--session", "T-froze"}, "{}"},
	} {
		hook, out := turnHook(m, t, "T-"+name, "cli")
		id := m.Pending("T-" + name)
		stdout, _, _ := m.Run("show", id)
		assert.Contains(t, stdout, "Your turn: the agent has finished")
		assert.Contains(t, stdout, "All **done**.")
		assert.Contains(t, stdout, "1: Reply: the agent's next prompt (in your own words)")
		_, stderr, code := m.Run("allow", id)
		assert.Equal(t, 1, code, "a reply needs words")
		assert.Contains(t, stderr, "nod answer")
		_, stderr, code = m.Run("answer", id, "2")
		assert.Equal(t, 1, code, "the agent may have offered 1 or 2")
		assert.Contains(t, stderr, "write more words")
		_, stderr, code = m.Run("deny", id, "-m", "rather the tests")
		assert.Equal(t, 1, code, "the words would reach nobody")
		assert.Contains(t, stderr, "say nod answer "+id)
		words := slices.Clone(c.answer)
		if at := slices.Index(words, "ID"); at >= 0 {
			words[at] = id
		}
		_, stderr, code = m.Run(words...)
		require.Zero(t, code, stderr)
		require.NoError(t, hook.Wait())
		assert.Equal(t, c.hears+"\n", out.String(), name)
	}
}

// TestAPromptAtTheTerminalEndsTheQuestion: nod ends the question about the end of a turn if the user types
// the next prompt in the agent's own terminal, or if the next turn ends.
func TestAPromptAtTheTerminalEndsTheQuestion(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAReplyIsTheNextPrompt asks the same question")
	m := rig.NewMachine(t)
	m.StartNod()
	first, out := turnHook(m, t, "T-9", "cli")
	m.Pending("T-9")
	typed := m.Command("hook", "claude-code")
	typed.Stdin = strings.NewReader(`{"session_id":"T-9","cwd":"/","hook_event_name":"UserPromptSubmit","prompt":"go on"}`)
	require.NoError(t, typed.Run())
	require.NoError(t, first.Wait())
	assert.Equal(t, "{}\n", out.String())

	second, out := turnHook(m, t, "T-9", "cli")
	old := m.Pending("T-9")
	third, _ := turnHook(m, t, "T-9", "cli")
	require.NoError(t, second.Wait())
	assert.Equal(t, "{}\n", out.String())
	assert.NotEqual(t, old, m.Pending("T-9"))
	require.NoError(t, third.Process.Signal(syscall.SIGTERM))
	_ = third.Wait() // Wait fails, because the exit code is not 0; Claude Code ignores this code
	stdout, _, _ := m.Run("pending")
	assert.NotContains(t, stdout, "Your turn")
}

// TestNobodyIsAskedAfterTheTurnOfAProgram: nod asks no one at the end of a turn if Claude Code runs in print
// mode or under a program.
func TestNobodyIsAskedAfterTheTurnOfAProgram(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAReplyIsTheNextPrompt ends a turn")
	m := rig.NewMachine(t)
	m.StartNod()
	for _, entry := range []string{"sdk-cli", "sdk-ts", ""} {
		hook, out := turnHook(m, t, "T-p", entry)
		require.NoError(t, hook.Wait())
		assert.Equal(t, "{}\n", out.String(), entry)
	}
}

// TestInstallAsksClaudeCodeForItsVersion: nod install adds the hook for an event only if the installed
// version of Claude Code has that event.
func TestInstallAsksClaudeCodeForItsVersion(t *testing.T) {
	m := rig.NewMachine(t)
	for version, known := range map[string]bool{"2.1.329 (Claude Code)": true, "2.1.9 (Claude Code)": false, "no version": false} {
		dir := t.TempDir()
		testprogram.Write(t, filepath.Join(dir, "claude"), "#!/bin/sh\necho '"+version+"'\n")
		settings := filepath.Join(dir, "settings.json")
		cmd := m.Command("install", "claude-code", "--settings", settings)
		cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		written, err := os.ReadFile(settings)
		require.NoError(t, err)
		assert.Contains(t, string(written), "PermissionRequest")
		assert.Equal(t, known, strings.Contains(string(written), "PostToolUseFailure"), version)
	}
}

// TestAQuestionIsAnswered: a person can answer, but not allow, an agent's question to its user. The host gets
// the question's input with the answer added.
func TestAQuestionIsAnswered(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	const input = `{"session_id":"S-3","cwd":"/","hook_event_name":"PermissionRequest","tool_name":"AskUserQuestion","tool_input":` +
		`{"questions":[{"question":"Which database?","header":"Database","options":[{"label":"Postgres","description":"big"},{"label":"SQLite","description":"small"}],"multiSelect":false}]}}`
	for _, c := range []struct{ says, hears string }{{"2", "SQLite"}, {"the one we have", "the one we have"}} {
		asking := m.Command("hook", "claude-code")
		asking.Stdin = strings.NewReader(input)
		var out strings.Builder
		asking.Stdout = &out
		require.NoError(t, asking.Start())
		id := m.Pending("S-3")
		stdout, _, _ := m.Run("show", id)
		assert.Contains(t, stdout, "2: SQLite")
		assert.Contains(t, stdout, "3: Something else (in your own words)")
		for _, no := range [][]string{{"allow", id}, {"answer", id, "3"}, {"answer", id, "9"}} {
			_, stderr, code := m.Run(no...)
			assert.Equal(t, 1, code, no)
			assert.Contains(t, stderr, "nod ")
		}
		stdout, stderr, code := m.Run("answer", id, c.says)
		require.Zero(t, code, stderr)
		assert.Contains(t, stdout, c.hears)
		require.NoError(t, asking.Wait())
		assert.Contains(t, out.String(), `"answers":{"Which database?":"`+c.hears+`"}`)
	}
}

// TestAStrictInstallListsTheHostsAllowRules: after install --strict, nod also decides calls that the host's
// own rules allow. nod install therefore lists these rules, and a command that imports them.
func TestAStrictInstallListsTheHostsAllowRules(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	path := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"permissions":{"allow":["Bash(make test:*)","Bash"],"deny":["Read(~/.ssh/**)"]}}`), 0o600))
	stdout, stderr, code := m.Run("install", "claude-code", "--settings", path)
	require.Zero(t, code, stderr)
	assert.NotContains(t, stdout, "make test")
	stdout, stderr, code = m.Run("install", "claude-code", "--strict", "--settings", path)
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "  Bash(make test:*)\n")
	assert.NotContains(t, stdout, "  Bash\n", "a rule without bounds is not taken over")
	assert.Contains(t, stdout, "nod policy import claude-code --file "+path)
}

// TestServersOfNodAreInstalledAndUninstalled: nod install mcp and nod install acp add nod commands to
// a host's settings. nod uninstall removes them.
func TestServersOfNodAreInstalledAndUninstalled(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	dir := t.TempDir()
	mcp, acp := filepath.Join(dir, ".mcp.json"), filepath.Join(dir, "editor.json")
	require.NoError(t, os.WriteFile(acp, []byte(`{"theme":"x"}`), 0o600))
	for _, args := range [][]string{
		{"install", "mcp", "--settings", mcp},
		{"install", "acp", "--settings", acp, "--", "gemini", "--experimental-acp"},
	} {
		_, stderr, code := m.Run(args...)
		require.Zero(t, code, stderr)
	}
	text, err := os.ReadFile(mcp)
	require.NoError(t, err)
	var listed struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	require.NoError(t, json.Unmarshal(text, &listed))
	require.FileExists(t, listed.Servers["nod"].Command)
	require.Equal(t, []string{"mcp", "--data", m.Dir}, listed.Servers["nod"].Args)

	home := m.Command("uninstall")
	home.Env = append(home.Env, "HOME="+dir, "XDG_CONFIG_HOME="+dir, "CLAUDE_CONFIG_DIR=", "CODEX_HOME=", "COPILOT_HOME=")
	out, err := home.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoFileExists(t, mcp)
	text, err = os.ReadFile(acp)
	require.NoError(t, err)
	require.JSONEq(t, `{"theme":"x"}`, string(text))
}
