package hook_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tailscale/hujson"
)

const openCodeBlock = "{\"bash\":\"ask\",\"edit\":\"ask\",\"webfetch\":\"ask\",\"websearch\":\"ask\"}"

// minimal returns JSONC without comments and white space.
func minimal(t *testing.T, text string) string {
	v, err := hujson.Parse([]byte(text))
	require.NoError(t, err)
	v.Minimize()
	return v.String()
}

// An installation adds nod's setting, but only once. An uninstallation restores every byte of the file.
func TestOpenCodeKeepsEveryByte(t *testing.T) {
	for name, before := range map[string]string{
		"lines":             "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"model\": \"a/b\"\n}\n",
		"tabs":              "{\n\t\"model\": \"a/b\"\n}",
		"one line":          `{"model":"a/b"}`,
		"carriage returns":  "{\r\n    \"model\": \"a/b\"\r\n}\r\n",
		"comments":          "// mine\n{ // first\n  \"model\": \"a/b\", // the good one\n  /* and */ \"share\": \"disabled\", // last\n}\n// end\n",
		"nothing":           "{}\n",
		"nothing in lines":  "{\n}\n",
		"a comment alone":   "{\n  // to do\n}\n",
		"a mark in front":   "  \n{\"model\": 1.0e2}",
		"escapes and loops": "{\n  \"a\\u0062\": [\"\\u2028\", {}],\n  \"a\\u0062\": 2\n}",
	} {
		for _, strict := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "opencode.json")
				require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
				install := hook.InstallOptions{Settings: path, Strict: strict}
				change, err := hook.OpenCode.Install(install)
				require.NoError(t, err)
				assert.Empty(t, change.Warning)
				installed := string(readFile(t, path))
				block := openCodeBlock
				if strict {
					block = `{"*":"ask","question":"allow"}`
				}
				assert.Contains(t, minimal(t, installed), `{"permission":`+block)

				again, err := hook.OpenCode.Install(hook.InstallOptions{Settings: path})
				require.NoError(t, err)
				assert.False(t, again.Changed(), "an installation that is there stays, a strict one too")
				_, err = hook.OpenCode.Install(hook.InstallOptions{Settings: path, Uninstall: true, DryRun: true})
				require.NoError(t, err)
				assert.Equal(t, installed, string(readFile(t, path)))
				_, err = hook.OpenCode.Install(hook.InstallOptions{Settings: path, Uninstall: true})
				require.NoError(t, err)
				assert.Equal(t, before, string(readFile(t, path)))
			})
		}
	}
}

func TestAStrictInstallTightensOpenCode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "opencode.json")
	require.NoError(t, os.WriteFile(path, []byte("{\n  \"model\": \"a/b\"\n}\n"), 0o600))
	for _, strict := range []bool{false, true} {
		_, err := hook.OpenCode.Install(hook.InstallOptions{Settings: path, Strict: strict})
		require.NoError(t, err)
	}
	assert.Equal(t, `{"permission":{"*":"ask","question":"allow"},"model":"a/b"}`, minimal(t, string(readFile(t, path))))
}

// An installation and an uninstallation keep the user's own permission setting.
func TestOpenCodeLeavesTheUsersOwnSetting(t *testing.T) {
	for _, own := range []string{`"ask"`, `"allow"`, `{"bash":{"git *":"allow","*":"ask"}}`, `{"edit":"ask","bash":"ask","webfetch":"ask","websearch":"ask"}`, "{\"bash\":\"ask\", // mine\n\"edit\":\"ask\",\"webfetch\":\"ask\",\"websearch\":\"ask\"}"} {
		before := "{\n  \"permission\": " + own + ",\n  \"model\": \"a/b\"\n}\n"
		path := filepath.Join(t.TempDir(), "opencode.json")
		require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
		change, err := hook.OpenCode.Install(hook.InstallOptions{Settings: path, Strict: true})
		require.NoError(t, err)
		assert.Contains(t, change.Warning, `has its own "permission", which stays`)
		_, err = hook.OpenCode.Install(hook.InstallOptions{Settings: path, Uninstall: true})
		require.NoError(t, err)
		assert.Equal(t, before, string(readFile(t, path)))
	}
}

// An uninstallation also removes nod's setting from a file with another layout, unless there is a
// comment next to the setting.
func TestUninstallFromReformattedFile(t *testing.T) {
	for before, after := range map[string]string{
		"{\"model\":\"a/b\",\n\"permission\":" + openCodeBlock + "}":                    "{\"model\":\"a/b\"}",
		"{\"model\":\"a/b\", // mine\n\"permission\":" + openCodeBlock + "}":            "",
		"{\"model\":\"a/b\",\n\"permission\":" + openCodeBlock + ",\"share\":\"auto\"}": "{\"model\":\"a/b\",\"share\":\"auto\"}",
	} {
		path := filepath.Join(t.TempDir(), "opencode.json")
		require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
		change, err := hook.OpenCode.Install(hook.InstallOptions{Settings: path, Uninstall: true})
		require.NoError(t, err)
		if after == "" {
			after = before
			assert.Contains(t, change.Warning, "remove it yourself")
		}
		assert.Equal(t, after, string(readFile(t, path)))
	}
}

func TestOpenCodeFindsItsFile(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	change, err := hook.OpenCode.Install(hook.InstallOptions{})
	require.NoError(t, err)
	usual := filepath.Join(home, ".config", "opencode", "opencode.json")
	assert.Equal(t, usual, change.Path)
	assert.Equal(t, "{\n  \"permission\": {\n    \"bash\": \"ask\",\n    \"edit\": \"ask\",\n    \"webfetch\": \"ask\",\n    \"websearch\": \"ask\"\n  }\n}\n", string(readFile(t, usual)))

	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "xdg"))
	other := filepath.Join(home, "xdg", "opencode", "opencode.jsonc")
	require.NoError(t, os.MkdirAll(filepath.Dir(other), 0o755))
	require.NoError(t, os.WriteFile(other, []byte("{} // mine\n"), 0o644))
	change, err = hook.OpenCode.Install(hook.InstallOptions{DryRun: true})
	require.NoError(t, err)
	assert.Equal(t, other, change.Path)
	assert.Contains(t, change.Diff(), "+")

	t.Chdir(t.TempDir())
	change, err = hook.OpenCode.Install(hook.InstallOptions{Project: true})
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(change.Path, "opencode.json") && !strings.HasPrefix(change.Path, home), change.Path)
}

// Kilo reads its own files, and then the files with OpenCode's names.
func TestKiloFindsItsFile(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	dir := filepath.Join(home, ".config", "kilo")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, name := range []string{"kilo.json", "kilo.jsonc", "opencode.json", "opencode.jsonc"} {
		change, err := hook.Kilo.Install(hook.InstallOptions{})
		require.NoError(t, err)
		if name == "kilo.json" {
			assert.Equal(t, filepath.Join(dir, name), change.Path)
			assert.Contains(t, string(readFile(t, change.Path)), `"bash": "ask"`)
			assert.Contains(t, change.Note, "kilo --port 4096, then nod kilo")
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600))
		change, err = hook.Kilo.Install(hook.InstallOptions{DryRun: true})
		require.NoError(t, err)
		assert.Equal(t, filepath.Join(dir, name), change.Path)
	}
}

func TestOpenCodeRefusesUnreadableSettings(t *testing.T) {
	for _, bad := range []string{"{", "[]", "{\"a\": }", "7"} {
		path := filepath.Join(t.TempDir(), "opencode.json")
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		_, err := hook.OpenCode.Install(hook.InstallOptions{Settings: path})
		require.ErrorContains(t, err, "nothing was changed")
		assert.Equal(t, bad, string(readFile(t, path)))
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}
