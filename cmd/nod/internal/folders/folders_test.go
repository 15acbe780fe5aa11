package folders_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/cmd/nod/internal/folders"
	"github.com/nodbus/nod/connectors/agents/hook"
)

// A host reads a project's hooks if it trusts the project's folder. For Codex, trust in the git work
// tree around that folder is enough. A host always reads the user's own hooks.
func TestTrusts(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CODEX_HOME", "")
	t.Setenv("COPILOT_HOME", "")
	project := filepath.Join(work, "app")
	require.NoError(t, os.Mkdir(project, 0o700))
	trusts := func(host hook.Host, file string) bool {
		is, err := folders.Trusts(host, file)
		require.NoError(t, err)
		return is
	}
	for _, c := range []struct {
		host               hook.Host
		own, file          string
		config, says, none string
	}{
		{hook.Codex(), ".codex/hooks.json", ".codex/hooks.json", ".codex/config.toml", "[projects.%q]\ntrust_level = \"trusted\"\n", "[projects.%q]\ntrust_level = \"untrusted\"\n"},
		{hook.Copilot(), ".copilot/hooks/nod.json", ".github/hooks/nod.json", ".copilot/config.json", "// its own\n{\"trustedFolders\": [%q]}\n", "{\"other\": [%q]}\n"},
	} {
		t.Run(c.host.Name, func(t *testing.T) {
			file, config := filepath.Join(project, c.file), filepath.Join(home, c.config)
			require.True(t, trusts(c.host, filepath.Join(home, c.own)))
			require.False(t, trusts(c.host, file), "there is no %s", c.config)
			require.NoError(t, os.MkdirAll(filepath.Dir(config), 0o700))
			for text, want := range map[string]bool{
				fmt.Sprintf(c.says, project): true, fmt.Sprintf(c.says, work): false, fmt.Sprintf(c.says, project+"2"): false,
				fmt.Sprintf(c.says, filepath.Join(project, "sub")): false, fmt.Sprintf(c.none, project): false,
			} {
				require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
				require.Equal(t, want, trusts(c.host, file), text)
			}
			require.NoError(t, os.WriteFile(config, []byte("{["), 0o600))
			_, err := folders.Trusts(c.host, file)
			require.Error(t, err)
		})
	}
	require.NoError(t, os.Mkdir(filepath.Join(work, ".git"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".codex/config.toml"), fmt.Appendf(nil, "[projects.%q]\ntrust_level = \"trusted\"\n", work), 0o600))
	require.True(t, trusts(hook.Codex(), filepath.Join(project, ".codex/hooks.json")))
	require.True(t, trusts(hook.Gemini(), filepath.Join(project, ".gemini/settings.json")))
}
