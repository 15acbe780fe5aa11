package hosts

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// In the mode "auto", Claude Code itself denies a call. If a person allows the call and the agent repeats it,
// the call runs once, and nod asks a person again about the next identical call. Other calls, and a call that
// a person denies, are left to Claude Code.
func TestAnAllowOfADeniedCallIsAnApprovalForOneCall(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	start := func(event, id, command string, args ...string) (out *strings.Builder, wait func() error) {
		cmd := m.Command(append([]string{"hook", "claude-code", "--host-timeout", "10m"}, args...)...)
		cmd.Stdin = strings.NewReader(`{"session_id":"S","cwd":"/","permission_mode":"auto","hook_event_name":"` + event + `","tool_name":"Bash","tool_input":{"command":"` + command + `"},"tool_use_id":"` + id + `","reason":"It publishes."}`)
		out = &strings.Builder{}
		cmd.Stdout, cmd.Stderr = out, out
		require.NoError(t, cmd.Start())
		return out, cmd.Wait
	}
	repeated := func(id, command string) string {
		out, wait := start("PreToolUse", id, command, "--approved-only")
		require.NoError(t, wait())
		return out.String()
	}
	assert.Equal(t, "{}\n", repeated("t0", "make release"))

	out, wait := start("PermissionDenied", "t1", "make release")
	id := m.Pending("S")
	shown, _, _ := m.Run("show", id)
	assert.Contains(t, shown, "Claude Code itself denied this call: It publishes.")
	_, stderr, code := m.Run("allow", id)
	require.Zero(t, code, stderr)
	require.NoError(t, wait())
	assert.JSONEq(t, `{"hookSpecificOutput":{"hookEventName":"PermissionDenied","retry":true}}`, out.String())

	assert.Equal(t, "{}\n", repeated("t2", "make release X=1"), "another call is not approved")
	assert.Contains(t, repeated("t3", "make release"), `"permissionDecision":"allow"`)
	out, wait = start("PreToolUse", "t4", "make release", "--approved-only")
	_, stderr, code = m.Run("deny", m.Pending("S"))
	require.Zero(t, code, stderr)
	require.NoError(t, wait())
	assert.Contains(t, out.String(), `"permissionDecision":"deny"`, "the approval was for one call")

	out, wait = start("PermissionDenied", "t5", "make publish")
	_, stderr, code = m.Run("deny", m.Pending("S"))
	require.Zero(t, code, stderr)
	require.NoError(t, wait())
	assert.Equal(t, "{}\n", out.String())
	assert.Equal(t, "{}\n", repeated("t6", "make publish"))
}
