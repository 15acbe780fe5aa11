package codex_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/cmd/nod/internal/codex"
	"github.com/nodbus/nod/connectors/agents/hook"
)

func home(t *testing.T, settings string) (config string) {
	dir := t.TempDir()
	t.Setenv("CODEX_HOME", dir)
	config = filepath.Join(dir, "config.toml")
	require.NoError(t, os.WriteFile(config, []byte(settings), 0o640))
	return config
}

func installs(t *testing.T, program string) hook.Inspection {
	_, err := hook.Install(hook.Codex(), hook.InstallOptions{Program: program, Strict: true})
	require.NoError(t, err)
	at, err := hook.Inspect(hook.Codex(), hook.InstallOptions{})
	require.NoError(t, err)
	require.Len(t, at.Hooks, 2)
	return at
}

func written(t *testing.T, c hook.Change, err error) hook.Change {
	require.NoError(t, err)
	require.NoError(t, c.Write())
	return c
}

// Trust adds each installed hook once, replaces the hash of a changed hook, and keeps the rest of the
// file. Distrust removes every line that Trust added.
func TestTrust(t *testing.T) {
	const mine = "model = \"x\" # mine\n\n[tools]\nweb = true\n"
	config := home(t, mine)
	var at hook.Inspection
	for _, program := range []string{"/opt/nod", "/elsewhere/nod"} {
		at = installs(t, program)
		c, err := codex.Trust(at)
		require.Contains(t, c.Diff(), "+trusted_hash")
		require.Equal(t, config, written(t, c, err).Path)
		state, err := codex.Read(config)
		require.NoError(t, err)
		require.Len(t, state.Hooks.State, 3)
		for _, h := range at.All() {
			require.Equal(t, codex.Hash(h), state.Of(at.Path, h).Hash)
		}
		c, err = codex.Trust(at)
		require.NoError(t, err)
		require.False(t, c.Changed())
		require.True(t, strings.HasPrefix(string(c.After), mine))
	}
	info, err := os.Stat(config)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	c, err := codex.Distrust(at)
	require.Equal(t, mine, string(written(t, c, err).After))
	c, err = codex.Distrust(at)
	require.NoError(t, err)
	require.False(t, c.Changed())
}

// Trust changes only the hash. The user's entries beside the hash stay where they are, and a hook that
// the user switched off stays off.
func TestTrustKeepsTheUsersOwnEntries(t *testing.T) {
	for name, quoted := range map[string]string{"as Codex quotes it": `"KEY"`, "otherwise": ` 'KEY' `} {
		t.Run(name, func(t *testing.T) {
			config := home(t, "")
			at := installs(t, "/opt/nod")
			text := func(hash string) string {
				return strings.ReplaceAll("model = \"x\"\n\n  [hooks.state."+quoted+"] # mine\n"+hash+"enabled = false\n\n# my providers\n[model_providers.x]\nname = \"x\"\n",
					"KEY", at.Path+":permission_request:0:0")
			}
			require.NoError(t, os.WriteFile(config, []byte(text("trusted_hash = 'sha256:old' # then\n")), 0o600))
			c, err := codex.Trust(at)
			written(t, c, err)
			hash := codex.Hash(at.Hooks[0])
			assert.True(t, strings.HasPrefix(string(c.After), text("trusted_hash = \""+hash+"\" # then\n")), "%s", c.After)
			state, err := codex.Read(config)
			require.NoError(t, err)
			trusted := state.Of(at.Path, at.Hooks[0])
			require.NotNil(t, trusted.Enabled)
			assert.False(t, *trusted.Enabled)

			c, err = codex.Distrust(at)
			assert.Equal(t, text(""), string(written(t, c, err).After))
			c, err = codex.Trust(at)
			assert.True(t, strings.HasPrefix(string(written(t, c, err).After), text("trusted_hash = \""+hash+"\"\n")), "%s", c.After)
		})
	}
}

// Distrust keeps a comment below a hook's table, because it belongs to the next table.
func TestDistrustLeavesComments(t *testing.T) {
	config := home(t, "")
	at := installs(t, "/opt/nod")
	c, err := codex.Trust(at)
	written(t, c, err)
	const rest = "\n# my providers\n[model_providers.x]\nname = \"x\"\n"
	require.NoError(t, os.WriteFile(config, append(c.After, rest...), 0o600))
	c, err = codex.Distrust(at)
	assert.Equal(t, rest, string(written(t, c, err).After))
}

// Trust does not write a file that it cannot change safely, or that another process has changed since
// Trust read it.
func TestTrustKeepsAFileThatItCannotChange(t *testing.T) {
	config := home(t, "")
	at := installs(t, "/opt/nod")
	header := "[hooks.state.\"" + at.Path + ":permission_request:0:0\"]\n"
	for name, text := range map[string]string{
		"no TOML":      "model =",
		"a text":       "note = '''\n" + header + "trusted_hash = \"x\"\n'''\n",
		"inline":       "hooks = { state = {} }\n",
		"of a table's": "[hooks]\nstate = { \"x\" = { enabled = true } }\n",
		"no table":     "[hooks]\nstate = 7\n",
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
			_, err := codex.Trust(at)
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
	require.NoError(t, os.WriteFile(config, []byte("a = 1\n"), 0o600))
	c, err := codex.Trust(at)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, []byte("a = 2\n"), 0o600))
	require.ErrorContains(t, c.Write(), "changed meanwhile")
	is, err := os.ReadFile(config)
	require.NoError(t, err)
	assert.Equal(t, "a = 2\n", string(is))
}

// TestHashOfSignals compares Hash with the hashes that Codex 0.169.0 lists for the same hooks.
func TestHashOfSignals(t *testing.T) {
	every := "*"
	for event, want := range map[string]string{
		"SessionEnd": "sha256:d06323c6daf7677167e38330789d03984523bb0f499b10a080c57b2a21777538",
		"Stop":       "sha256:433c3b8d5746a4be1db011df7256a919167e5c92bed515843eb81de4438de618",
		"Interrupt":  "sha256:040b056a465b8eef754125249d177ee5731a2e03d6ff84830bd6268b4d8b5d3d",
	} {
		h := hook.Installed{Event: event, Command: "/tmp/hookagents/ch/.local/share/nod/launcher/nod hook codex --host-timeout 86400s", Matcher: &every, Timeout: 10}
		require.Equal(t, want, codex.Hash(h), event)
	}
}
