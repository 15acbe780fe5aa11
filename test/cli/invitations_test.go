package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/internal/testports"
	"github.com/nodbus/nod/test/internal/rig"
)

// The function invites runs nod invite with a free port. It returns the arguments of the printed nod join
// command, and the invitation's address.
func invites(m *rig.Machine, name string) (line []string, address string) {
	address = testports.Address(m.T)
	stdout, stderr, code := m.Run("invite", name, "--address", address)
	require.Zero(m.T, code, stderr)
	require.Equal(m.T, 1, strings.Count(stdout, "\n"), "one line to copy")
	line = strings.Fields(stdout)
	require.Equal(m.T, []string{"nod", "join"}, line[:2])
	return line[1:], address
}

// Another machine joins with the command line that nod invite prints. Its agents then reach nod over TLS
// without flags, have a key of their own, and trust no other server.
func TestAnotherMachineJoins(t *testing.T) {
	t.Parallel()
	here, there := rig.NewMachine(t), rig.NewMachine(t)
	join, address := invites(here, "devbox")
	stdout, stderr, code := there.Run(join...)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "devbox")
	for _, name := range []string{"joined.json", "keys/agent-devbox.nk"} {
		info, err := os.Stat(filepath.Join(there.Dir, name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
	text, err := os.ReadFile(filepath.Join(there.Dir, "joined.json"))
	require.NoError(t, err)
	require.NotContains(t, string(text), "PRIVATE KEY", "the certificate authority's private key is not handed out")

	_, stderr, code = there.Run("ask", "--session", "S", "--tool", "Read", "--input", `{"file_path":"/x"}`)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, address, "the error names the address, where no server listens yet")

	here.StartNod("--listen", address)
	_, stderr, code = there.Run("ask", "--session", "S", "--tool", "Read", "--input", `{"file_path":"/x"}`)
	require.Zero(t, code, stderr)
	hookCmd := there.Command("hook", "claude-code")
	hookCmd.Stdin = strings.NewReader(`{"session_id":"H","cwd":"/","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"make release"}}`)
	var out bytes.Buffer
	hookCmd.Stdout, hookCmd.Stderr = &out, &out
	require.NoError(t, hookCmd.Start())
	id := here.Pending("H")
	stdout, _, _ = here.Run("pending", "--json")
	require.Contains(t, stdout, `"agent": "devbox"`)
	_, stderr, code = here.Run("allow", id)
	require.Zero(t, code, stderr)
	require.NoError(t, hookCmd.Wait(), out.String())
	require.Contains(t, out.String(), `"behavior":"allow"`)

	_, stderr, code = there.Run("pending")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "answer and manage on that machine")
	stdout, _, _ = there.Run("doctor")
	require.Contains(t, stdout, "this machine asks the nod at ")
	require.Contains(t, stdout, "this machine may ask, as the agent devbox")
	require.NotContains(t, stdout, "not running")
	_, err = nats.Connect("nats://" + address)
	require.ErrorContains(t, err, "certificate", "a client without TLS, or that trusts the system's authorities, cannot connect")

	// The invited machine must not trust a different nod at the same address.
	here.Kill()
	other := rig.NewMachine(t)
	invites(other, "devbox")
	other.StartNod("--listen", address)
	stdout, stderr, code = there.Run("ask", "--session", "S", "--tool", "Read", "--input", `{"file_path":"/x"}`)
	require.Equal(t, 1, code, stdout)
	require.Contains(t, stderr, "certificate")
}

func TestInvalidInvitationsAreRefused(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAnotherMachineJoins takes a valid one")
	here, there := rig.NewMachine(t), rig.NewMachine(t)
	join, _ := invites(here, "devbox")
	fails := func(m *rig.Machine, says string, args ...string) {
		t.Helper()
		stdout, stderr, code := m.Run(args...)
		assert.Equal(t, 1, code, stdout)
		assert.Contains(t, stderr, says)
		assert.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		assert.NotContains(t, stderr, "SUA", "a key")
	}
	fails(here, "invited already", "invite", "devbox")
	fails(here, "cannot name", "invite", "a.b")
	fails(here, "HOST:PORT", "invite", "two", "--address", "here")
	fails(here, "HOST:PORT", "invite", "two", "--address", ":4222")
	fails(there, "whole", "join", join[1][:len(join[1])/2])
	fails(there, "whole", "join", "e30")
	require.NoFileExists(t, filepath.Join(there.Dir, "joined.json"))

	byInput := there.Command("join", "-")
	byInput.Stdin = strings.NewReader(fmt.Sprintf("nod join %s\n", join[1]))
	out, err := byInput.CombinedOutput()
	require.NoError(t, err, string(out))
	fails(there, "has joined a nod already", append([]string{}, join...)...)
	fails(there, "has joined the nod at", "up", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")

	here.StartNod()
	fails(here, "a nod of its own", join...)
	require.NoError(t, os.WriteFile(filepath.Join(there.Dir, "joined.json"), []byte("{"), 0o600))
	fails(there, "damaged", "ask", "--session", "S", "--tool", "Read")
}
