package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHookThatCannotBeRunRefuses: a command line that this nod does not
// understand, say of another version, must not let the host run the tool.
func TestHookThatCannotBeRunRefuses(t *testing.T) {
	m := newMachine(t)
	for _, line := range []string{"hook", "hook nope", "hook codex --frob", "hook codex --on-unavailable maybe", "hook gemini --host-timeout x"} {
		t.Run(line, func(t *testing.T) {
			stdout, stderr, code := m.run(strings.Fields(line)...)
			assert.Equal(t, 2, code)
			assert.Contains(t, stderr, "nod: ", "some hosts take exit code 2 for a refusal only with a reason")
			var reply map[string]string
			require.NoError(t, json.Unmarshal([]byte(stdout), &reply), "stdout %q", stdout)
			assert.Equal(t, "block", reply["decision"])
			assert.Equal(t, "deny", reply["behavior"])
		})
	}
}

// TestEachHookEndToEnd: what nod install writes is a command that the host can
// run, and what its person answers reaches the host in the host's words.
func TestEachHookEndToEnd(t *testing.T) {
	m := newMachine(t)
	m.start()
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
				cmd := m.command("hook", agent)
				cmd.Stdin = strings.NewReader(strings.Replace(c.input, "SESSION", session, 1))
				var out strings.Builder
				cmd.Stdout, cmd.Stderr = &out, os.Stderr
				require.NoError(t, cmd.Start())
				_, stderr, code := m.run(answer, m.pending(session))
				require.Zero(t, code, stderr)
				require.NoError(t, cmd.Wait())
				if answer == "allow" {
					assert.Equal(t, c.allow+"\n", out.String())
				} else {
					assert.Contains(t, out.String(), c.deny)
				}
			}
			path := filepath.Join(t.TempDir(), "settings.json")
			_, stderr, code := m.run("install", agent, "--settings", path, "--dry-run")
			require.Zero(t, code, stderr)
			assert.NoFileExists(t, path)
		})
	}
}

// pending is the id of the one request that waits in session.
func (m *machine) pending(session string) (id string) {
	require.Eventually(m.t, func() bool {
		stdout, _, _ := m.run("pending", "--json")
		var all []struct {
			SessionID string `json:"session_id"`
			PendingID string `json:"pending_id"`
		}
		if json.Unmarshal([]byte(stdout), &all) != nil {
			return false
		}
		for _, p := range all {
			if p.SessionID == session {
				id = p.PendingID
			}
		}
		return id != ""
	}, time.Minute, 50*time.Millisecond)
	return id
}
