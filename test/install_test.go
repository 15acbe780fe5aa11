package test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhatCodexTrustsIsShownAndTakenBack: the hook's trust is a change of a file of
// the user's as any other.
func TestWhatCodexTrustsIsShownAndTakenBack(t *testing.T) {
	m := newMachine(t)
	dir := t.TempDir()
	t.Setenv("CODEX_HOME", dir)
	config := filepath.Join(dir, "config.toml")
	const mine = "model = \"x\" # mine\n"
	require.NoError(t, os.WriteFile(config, []byte(mine), 0o600))
	says := func() string {
		text, err := os.ReadFile(config)
		require.NoError(t, err)
		return string(text)
	}
	stdout, stderr, code := m.run("install", "codex", "--dry-run")
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "+++ "+config+"\n")
	assert.Contains(t, stdout, "+trusted_hash = ")
	assert.Equal(t, mine, says())
	assert.NoFileExists(t, filepath.Join(dir, "hooks.json"))

	_, stderr, code = m.run("install", "codex")
	require.Zero(t, code, stderr)
	assert.Contains(t, stderr, "Codex trusts the hook now, by "+config)
	trusted := says()
	assert.Contains(t, trusted, mine+"[hooks.state.")

	stdout, stderr, code = m.run("install", "codex", "--uninstall", "--dry-run")
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "-trusted_hash = ")
	assert.Equal(t, trusted, says())
	_, stderr, code = m.run("install", "codex", "--uninstall")
	require.Zero(t, code, stderr)
	assert.Equal(t, mine, says())

	require.NoError(t, os.WriteFile(config, []byte("hooks = 7\n"), 0o600))
	_, stderr, code = m.run("install", "codex")
	require.Zero(t, code, stderr)
	assert.Contains(t, stderr, "/hooks", "what is left to do")
	assert.Equal(t, "hooks = 7\n", says())
}
