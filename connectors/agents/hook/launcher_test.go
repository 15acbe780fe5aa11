//go:build unix

package hook_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// installProcess installs the hook as the program that it is.
func installProcess() int {
	_, err := hook.Install(hook.ClaudeCode(), hook.InstallOptions{Settings: os.Args[1]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestInstalledPathLasts: a program behind a link in PATH, as package managers
// lay it out, is installed by the link; any other by its own path, spaces and
// all.
func TestInstalledPathLasts(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	program, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	versioned := filepath.Join(root, "version 1.0", "nod")
	bin := filepath.Join(root, "bin")
	require.NoError(t, os.Mkdir(filepath.Dir(versioned), 0o755))
	require.NoError(t, os.Mkdir(bin, 0o755))
	require.NoError(t, os.WriteFile(versioned, program, 0o755))
	require.NoError(t, os.Symlink(versioned, filepath.Join(bin, "nod")))

	for name, c := range map[string]struct{ path, want string }{
		"linked in PATH": {bin, filepath.Join(bin, "nod") + " hook claude-code"},
		"not in PATH":    {"/nowhere", `'` + versioned + `' hook claude-code`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "settings.json")
			cmd := exec.Command(versioned, path)
			cmd.Env = []string{asProcess + "=install", "PATH=" + c.path}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, contents(t, path), `"command": "`+c.want)

			installed(t, path, hook.InstallOptions{Uninstall: true})
			assert.Equal(t, "{}\n", contents(t, path), "found again by its shape")
		})
	}
}
