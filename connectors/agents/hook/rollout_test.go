package hook_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
)

// The hook input of Codex does not contain the directory that the model chose for a command. If the
// rollout does not contain it either, the directory is unknown.
func TestCodexCommandsRunWhereTheRolloutSays(t *testing.T) {
	call := func(id, workdir string) string {
		args, err := json.Marshal(map[string]string{"cmd": "git status", "workdir": workdir})
		require.NoError(t, err)
		line, err := json.Marshal(map[string]any{"type": "response_item", "payload": map[string]string{"type": "function_call", "name": "exec_command", "call_id": id, "arguments": string(args)}})
		require.NoError(t, err)
		return string(line)
	}
	shell := `{"type":"response_item","payload":{"type":"local_shell_call","call_id":"c1","action":{"command":["bash","-lc","git status"],"working_directory":"/w/y"}}}`
	for _, c := range []struct {
		name, id, want string
		lines          []string
	}{
		{"the call's directory", "c1", "/w/x", []string{call("c0", "/elsewhere"), call("c1", "/w/x")}},
		{"a relative directory", "c1", "/project/sub", []string{call("c1", "sub")}},
		{"no directory of its own", "c1", "/project", []string{call("c1", "")}},
		{"another shape", "c1", "/w/y", []string{shell}},
		{"without an id, one directory for the command", "", "/w/x", []string{call("c1", "/w/x"), call("c2", "/w/x")}},
		{"without an id, several directories", "", "", []string{call("c1", "/w/x"), call("c2", "/w/z")}},
		{"the call is not there yet", "c9", "", []string{call("c1", "/w/x")}},
		{"the id has another command", "c1", "", []string{strings.Replace(call("c1", "/w/x"), "git status", "git stash", 1)}},
		{"no rollout", "c1", "", nil},
		{"lines of other kinds", "c1", "", []string{"{", `{"type":"response_item","payload":{"type":"function_call","call_id":"c1","arguments":"no json"}}`, `{"type":"event_msg"}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rollout := filepath.Join(t.TempDir(), "rollout.jsonl")
			if c.lines != nil {
				require.NoError(t, os.WriteFile(rollout, []byte(strings.Join(c.lines, "\n")+"\n"), 0o600))
			}
			input, err := json.Marshal(map[string]any{"session_id": "s", "cwd": "/project", "hook_event_name": "PreToolUse", "transcript_path": rollout, "tool_name": "Bash", "tool_input": map[string]string{"command": "git status"}, "tool_use_id": c.id})
			require.NoError(t, err)
			got, err := hook.Codex().Dialect.Read(input)
			require.NoError(t, err)
			assert.Equal(t, c.want, got.Cwd)
			assert.Equal(t, "/project", got.Project)
		})
	}
}

// If Claude Code does not name the project, the directory of a call does not become the project,
// because an agent can change its directory.
func TestClaudesProjectIsNotTheCallsDirectory(t *testing.T) {
	work := filepath.Join(t.TempDir(), "work")
	require.NoError(t, os.MkdirAll(filepath.Join(work, ".git"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(work, "vendor", "x", "objects"), 0o755))
	input, err := json.Marshal(map[string]any{"session_id": "s", "cwd": filepath.Join(work, "vendor", "x"), "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": map[string]string{"command": "git status"}})
	require.NoError(t, err)
	got, err := hook.ClaudeCode().Dialect.Read(input)
	require.NoError(t, err)
	assert.Equal(t, work, got.Project)
	assert.Equal(t, filepath.Join(work, "vendor", "x"), got.Cwd)
}

// The hook tells people about the end of a turn only if Codex's user wrote its prompt in a terminal.
// Their reply is Codex's next prompt.
func TestCodexTurnsInATerminal(t *testing.T) {
	meta := func(originator string) string {
		return `{"type":"session_meta","payload":{"originator":"` + originator + `"}}`
	}
	began := func(id, trigger string) string {
		return `{"type":"event_msg","payload":{"type":"task_started","turn_attribution":{"turn_id":"` + id + `","turn_trigger":"` + trigger + `"}}}`
	}
	for name, c := range map[string]struct {
		lines []string
		asks  bool
	}{
		"in a terminal":            {[]string{meta("codex-tui"), began("t0", "exec"), began("t1", "user")}, true},
		"codex exec":               {[]string{meta("codex_exec"), began("t1", "exec")}, false},
		"resumed by codex exec":    {[]string{meta("codex-tui"), began("t0", "user"), began("t1", "exec")}, false},
		"an editor":                {[]string{meta("codex_vscode"), began("t1", "user")}, false},
		"a review by Codex":        {[]string{meta("codex-tui"), began("t1", "agent")}, false},
		"another turn":             {[]string{meta("codex-tui"), began("t0", "user")}, false},
		"a rollout without a turn": {[]string{meta("codex-tui")}, false},
		"no rollout":               {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "rollout.jsonl")
			if c.lines != nil {
				require.NoError(t, os.WriteFile(file, []byte(strings.Join(c.lines, "\n")+"\n"), 0o600))
			}
			input, err := json.Marshal(map[string]any{"session_id": "s1", "cwd": "/w", "turn_id": "t1", "transcript_path": file, "hook_event_name": "Stop", "last_assistant_message": "Done."})
			require.NoError(t, err)
			nod := &fakeNod{t: t, ask: decides(schemas.Decision{Outcome: schemas.Allowed, OptionID: "reply", OptionKind: schemas.AllowOnce, Message: "go on", By: schemas.By{Kind: schemas.ByHuman}})}
			got := runHost(t, t.Context(), hook.Codex(), bytes.NewReader(input), nod.connect, hook.Options{Turns: true, InTerminal: true})
			want := "{}"
			if c.asks {
				want = `{"decision":"block","reason":"The user's next prompt, by nod: go on"}`
				assert.JSONEq(t, `{"message":"Done."}`, string(nod.asked().ActionDetails))
			}
			assert.JSONEq(t, want, got.stdout)
			assert.Zero(t, got.exit)
		})
	}
}
