package agents_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents"
)

// A git repository in a directory of the project does not become the project, because a stranger may
// have made it.
func TestTheProjectIsTheOutermostRepository(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Chmod(root, 0o755))
	t.Setenv("HOME", filepath.Join(root, "home"))
	work := filepath.Join(root, "home", "code")
	for _, dir := range []string{"home/.git", "home/code/.git", "home/code/vendor/x/.git", "home/code/src", "home/plain/sub", "home/bare/objects", "shared/.git", "shared/x"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "home/bare/HEAD"), []byte("ref: refs/heads/main\n"), 0o644))
	require.NoError(t, os.Chmod(filepath.Join(root, "shared"), 0o777))
	for dir, want := range map[string]string{
		work: work, work + "/src": work, work + "/vendor/x": work, work + "/missing": work,
		filepath.Join(root, "home/plain/sub"): filepath.Join(root, "home/plain/sub"),
		filepath.Join(root, "home/bare"):      filepath.Join(root, "home/bare"),
		filepath.Join(root, "shared/x"):       filepath.Join(root, "shared/x"),
		"":                                    "", "relative": "relative", "/": "/",
	} {
		assert.Equal(t, want, agents.ProjectOf(dir), dir)
	}
}
