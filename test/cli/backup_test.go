package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// killAfter runs a nod command, kills it after it has printed n+1 lines about its steps, and reports whether
// the command was still running.
func killAfter(m *rig.Machine, n int, args ...string) (killed bool) {
	m.T.Helper()
	c := m.Command(args...)
	steps, err := c.StderrPipe()
	require.NoError(m.T, err)
	require.NoError(m.T, c.Start())
	lines := bufio.NewReader(steps)
	for range n + 1 {
		if _, err := lines.ReadString('\n'); err != nil {
			break
		}
	}
	_ = c.Process.Kill() // Kill fails if the process has ended
	_ = c.Wait()
	return c.ProcessState.ExitCode() != 0
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

// If nod backup or nod restore is killed at any moment, the backup or the data directory is either complete
// or missing, and the next try succeeds. A restored nod is frozen, and denies the pending request.
func TestABackupAndARestoreSurviveKillNine(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	m.Asked(t, "waits", "--session", "S", "--tool", "Frobnicate")
	dir := t.TempDir()
	backup := filepath.Join(dir, "backup")
	kills := rig.Times(t, 3, 6)
	for n := range kills {
		if killAfter(m, n, "backup", backup) && missing(backup) {
			continue
		}
		require.FileExists(t, filepath.Join(backup, "manifest.json"))
		require.NoError(t, os.RemoveAll(backup))
	}
	out, stderr, code := m.Run("backup", backup)
	require.Zero(t, code, stderr)
	require.Contains(t, out, "has everything that was decided before")
	info, err := os.Stat(backup)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	_, stderr, code = m.Run("backup", backup)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "exists: name a new directory")
	_, stderr, code = m.Run("restore", backup)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "is not empty")
	m.Kill()
	_, stderr, code = m.Run("backup", filepath.Join(dir, "of a nod that is down"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nod is not running")

	to := &rig.Machine{T: t, Dir: filepath.Join(dir, "restored"), Nod: m.Nod}
	for n := range kills {
		if killAfter(to, n, "restore", backup) && missing(to.Dir) {
			continue
		}
		require.FileExists(t, filepath.Join(to.Dir, "format.json"))
		require.NoError(t, os.RemoveAll(to.Dir))
	}
	require.NoError(t, os.Mkdir(to.Dir, 0o700)) // nod restore also takes an empty directory
	out, stderr, code = to.Run("restore", backup)
	require.Zero(t, code, stderr)
	require.Contains(t, out, "nod is frozen")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "nothing of the killed commands is left")

	to.StartNod()
	to.Soon(func(ctx context.Context, d *connector.Desk) bool {
		p, _, err := d.Find(ctx, "S", "waits")
		return err == nil && p.Decision != nil && p.Decision.Outcome == schemas.Denied && strings.Contains(p.Decision.Message, "restored from the backup")
	})
	_, _, code = to.Run("ask", "--session", "S", "--tool", "Frobnicate")
	require.Equal(t, 3, code, "a new request is denied")
}

// If nod is killed during nod backup, there is no backup.
func TestABackupOfAKilledNodIsNone(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	backup := filepath.Join(t.TempDir(), "backup")
	c := m.Command("backup", backup)
	steps, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	lines := bufio.NewReader(steps)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	m.Kill()
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	if c.Wait() == nil { // Wait succeeds if the copy was complete before the kill
		require.FileExists(t, filepath.Join(backup, "manifest.json"))
		return
	}
	require.Contains(t, string(rest), "the connection to the server was lost")
	require.NoDirExists(t, backup)
}
