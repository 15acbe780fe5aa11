package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The command nod leave shows the limits of the leave and asks for confirmation. The command nod back ends
// the leave and lists the calls that the leave allowed, even if the leave has ended by itself.
func TestLeaveAndBack(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "test/rules tests the same leaves, and TestASessionsPermissionsAreSetAndShown changes settings by command")
	m := rig.NewMachine(t)
	m.StartNod()
	ask := func(command string) int {
		input, err := json.Marshal(map[string]string{"command": command, "cwd": "/app"})
		require.NoError(t, err)
		_, _, code := m.Run("ask", "--session", "S", "--tool", "Bash", "--input", string(input), "--async")
		return code
	}
	require.Equal(t, 6, ask("make first"))
	for _, bad := range [][]string{{"--for", "9h"}, {"--calls", "201"}, {"--calls", "0"}, {"--max-risk", "high"}, {"--for", "soon"}} {
		_, stderr, code := m.Run(append([]string{"leave", "--session", "S", "--yes"}, bad...)...)
		require.Equal(t, 1, code, bad)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
	_, stderr, code := m.Run("leave", "--session", "S")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "there is no terminal to ask on")
	_, stderr, code = m.Run("leave", "--session", "nosuch", "--yes")
	require.Equal(t, 1, code)
	require.Equal(t, "nod: there is no session nosuch: see nod sessions\n", stderr)
	_, stderr, code = m.Run("back")
	require.Zero(t, code)
	require.Equal(t, "you left no session\n", stderr)

	p := m.NewPane(t, 100, 20, m.Nod+" leave --session S --for 30m --max-risk medium --calls 2; cat")
	p.Shows("For 30 minutes, nod allows calls of session S up to risk medium")
	p.Types("y", "Enter")
	p.Shows("Session S goes on until")
	require.Equal(t, 0, ask("make build"))
	require.Equal(t, 6, ask("cat .env"), "a secret asks")
	grants, _, code := m.Run("grants")
	require.Zero(t, code)
	require.Contains(t, grants, "allow calls up to risk medium that no rule decides  in session S  for 1 more call")
	require.Equal(t, 0, ask("make test"))
	require.Equal(t, 6, ask("make lint"), "the leave is used up")

	out, stderr, code := m.Run("back")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "session S: 2 calls allowed since ")
	require.Regexp(t, `(?m)^  \d\d:\d\d:\d\d  Bash make build$`, out)
	require.Regexp(t, `(?m)^  \d\d:\d\d:\d\d  Bash make test$`, out)

	_, stderr, code = m.Run("leave", "--session", "S", "--max-risk", "medium", "--yes")
	require.Zero(t, code, stderr)
	require.Equal(t, 0, ask("make again"))
	shown, _, _ := m.Run("back", "--json")
	var all []schemas.StandingAnswer
	require.NoError(t, json.Unmarshal([]byte(shown), &all))
	require.Len(t, all, 1)
	require.False(t, all[0].RevokedAt.IsZero())
	require.Equal(t, 6, ask("make more"), "nod asks again once the person is back")
}
