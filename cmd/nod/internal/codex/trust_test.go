package codex_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/cmd/nod/internal/codex"
	"github.com/nodbus/nod/connectors/agents/hook"
)

// What was installed is trusted, once; what else the file holds stays; a hook that
// changed is trusted anew.
func TestTrust(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	config := filepath.Join(home, "config.toml")
	const mine = "model = \"x\" # mine\n\n[tools]\nweb = true"
	require.NoError(t, os.WriteFile(config, []byte(mine), 0o600))
	install := func(program string) hook.Inspection {
		_, err := hook.Install(hook.Codex(), hook.InstallOptions{Program: program, Strict: true})
		require.NoError(t, err)
		at, err := hook.Inspect(hook.Codex(), hook.InstallOptions{})
		require.NoError(t, err)
		require.Len(t, at.Hooks, 2)
		return at
	}
	for _, program := range []string{"/opt/nod", "/elsewhere/nod"} {
		at := install(program)
		where, changed, err := codex.Trust(at)
		require.NoError(t, err)
		require.Equal(t, config, where)
		require.True(t, changed)
		state, err := codex.Read(config)
		require.NoError(t, err)
		require.Len(t, state.Hooks.State, 2)
		for _, h := range at.Hooks {
			require.Equal(t, codex.Hash(h), state.Of(at.Path, h).Hash)
		}
		_, changed, err = codex.Trust(at)
		require.NoError(t, err)
		require.False(t, changed)
		text, err := os.ReadFile(config)
		require.NoError(t, err)
		require.Contains(t, string(text), mine)
	}

	// A file that cannot be read is left alone.
	require.NoError(t, os.WriteFile(config, []byte("model ="), 0o600))
	_, changed, err := codex.Trust(install("/opt/nod"))
	require.Error(t, err)
	require.False(t, changed)
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	require.Equal(t, "model =", string(text))
}
