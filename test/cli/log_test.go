package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/logchain"
	"github.com/nodbus/nod/test/internal/rig"
)

// nod writes a checkpoint of the log at its start. nod log verify finds a change of the exported log, even on
// a machine without nod's keys.
func TestTheLogIsVerified(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	m.Asked(t, "r1", "--session", "S", "--tool", "Frobnicate")
	_, stderr, code := m.Run("deny", "r1", "--session", "S", "-m", "not now")
	require.Zero(t, code, stderr)
	require.Eventually(t, func() bool {
		stdout, _, code := m.Run("log", "search", "--outcome", "denied", "--session", "S", "frobnicate")
		return code == 0 && strings.Count(stdout, "\n") == 1 && strings.Contains(stdout, "decided     S/r1  Frobnicate  denied  local, by ")
	}, rig.Patience, rig.Tick)
	m.Kill()
	m.StartNod()
	var report logchain.Report
	require.Eventually(t, func() bool {
		stdout, stderr, code := m.Run("log", "verify", "--json")
		require.NoError(t, json.Unmarshal([]byte(stdout), &report), stderr)
		return code == 0 && report.Open == 1 // the newest checkpoint is not itself covered by a checkpoint
	}, rig.Patience, rig.Tick)
	head := report.Checkpoints[len(report.Checkpoints)-1].Hash
	stdout, stderr, code := m.Run("log", "verify", "--head", head)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, head)
	_, stderr, code = m.Run("log", "verify", "--head", strings.Repeat("0", 64))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "does not agree with its checkpoints")

	exported, stderr, code := m.Run("log", "export")
	require.Zero(t, code, stderr)
	auditor := rig.NewMachine(t)
	verify := func(log string, args ...string) (string, string, int) {
		file := filepath.Join(t.TempDir(), "log.ndjson")
		require.NoError(t, os.WriteFile(file, []byte(log), 0o600))
		return auditor.Run(append([]string{"log", "verify", file}, args...)...)
	}
	_, stderr, code = verify(exported)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no key is trusted yet: if "+report.Keys[0])
	_, stderr, code = verify(exported, "--key", report.Keys[0])
	require.Zero(t, code, stderr)
	stdout, stderr, code = verify(strings.Replace(exported, `"outcome":"denied"`, `"outcome":"allowed"`, 1), "--key", report.Keys[0])
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "was changed after its checkpoint")
	require.Contains(t, stderr, "the first fault is at entry ")
	_, stderr, code = verify("", "--key", report.Keys[0])
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no checkpoint")
}

// nod log tail -f prints new entries until it is stopped.
func TestTheLogIsFollowed(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestTheLogIsVerified reads the same log")
	m := rig.NewMachine(t)
	m.StartNod()
	tail := m.Command("log", "tail", "-n", "1", "-f", "--json")
	out, err := tail.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, tail.Start())
	m.Asked(t, "r1", "--session", "S", "--tool", "Frobnicate")
	var seen bytes.Buffer
	for buffer := make([]byte, 4096); !strings.Contains(seen.String(), `"pending_id":"r1"`); {
		n, err := out.Read(buffer)
		require.NoError(t, err, seen.String())
		seen.Write(buffer[:n])
	}
	require.NoError(t, tail.Process.Signal(os.Interrupt))
	_, err = io.Copy(&seen, out)
	require.NoError(t, err)
	require.NoError(t, tail.Wait(), "Ctrl-C is its regular end")
}
