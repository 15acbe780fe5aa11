package installs_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/cmd/nod/internal/installs"
)

func TestRememberAndForget(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	all, err := installs.List(dir)
	require.NoError(t, err)
	assert.Empty(t, all)

	at := time.Date(2026, 1, 18, 0, 0, 0, 0, time.UTC)
	one, two := installs.Install{Agent: "codex", Path: "/a", At: at}, installs.Install{Agent: "codex", Path: "/b", At: at}
	require.NoError(t, installs.Remember(dir, one, true))
	require.NoError(t, installs.Remember(dir, two, true))
	one.At = at.Add(time.Hour)
	require.NoError(t, installs.Remember(dir, one, true))
	late := two
	late.At = at.Add(time.Hour)
	require.NoError(t, installs.Remember(dir, late, false))
	all, err = installs.List(dir)
	require.NoError(t, err)
	assert.Equal(t, []installs.Install{one, two}, all, "what was not changed keeps its time")

	require.NoError(t, installs.Forget(dir, two))
	require.NoError(t, installs.Forget(dir, two), "twice is once")
	require.NoError(t, installs.Forget(dir, one))
	assert.NoDirExists(t, filepath.Join(dir, "hooks"), "nothing is left")
}

func TestRanRecordsOnlyRememberedHooks(t *testing.T) {
	dir := t.TempDir()
	installs.Ran(dir, "codex", "0.4.0")
	at, _, err := installs.LastRan(dir, "codex")
	require.NoError(t, err)
	assert.Zero(t, at)
	assert.NoDirExists(t, filepath.Join(dir, "hooks"))

	before := time.Now().Add(-time.Second) // file systems may round file times
	require.NoError(t, installs.Remember(dir, installs.Install{Agent: "codex", Path: "/a"}, true))
	installs.Ran(dir, "codex", "0.4.0")
	installs.Ran(dir, "codex", "0.4.1")
	at, version, err := installs.LastRan(dir, "codex")
	require.NoError(t, err)
	assert.True(t, at.After(before))
	assert.Equal(t, "0.4.1", version)
}

func TestADamagedListIsReported(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, installs.Remember(dir, installs.Install{Agent: "codex", Path: "/a"}, true))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hooks", "installed.json"), []byte("{"), 0o600))
	_, err := installs.List(dir)
	require.ErrorContains(t, err, "installed.json")
}

func BenchmarkRan(b *testing.B) {
	dir := b.TempDir()
	require.NoError(b, installs.Remember(dir, installs.Install{Agent: "codex", Path: "/a"}, true))
	for b.Loop() {
		installs.Ran(dir, "codex", "0.4.0")
	}
}
