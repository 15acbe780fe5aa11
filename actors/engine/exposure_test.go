package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// A search of a directory skips an ignored directory in it, but a search that also names the
// ignored directory shows its files.
func TestASearchThatNamesAnIgnoredDirectoryAsks(t *testing.T) {
	project := t.TempDir()
	for name, text := range map[string]string{".git/HEAD": "", ".gitignore": "/out/\n", "out/server.key": "TOKEN", "src/a.go": ""} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(project, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(project, name), []byte(text), 0o644))
	}
	p, err := policy.New(schemas.Permissions{})
	require.NoError(t, err)
	for line, want := range map[string]policy.Effect{"rg TOKEN .": policy.Allow, "rg TOKEN . src": policy.Allow, "rg TOKEN . out": policy.Ask, "cd out && rg TOKEN": policy.Ask} {
		c := policy.Call{ToolName: "Bash", Input: []byte(`{"command":"` + line + `"}`), Cwd: project, Project: project}
		var (
			walk   []string
			recent exposures
		)
		c.Searched, walk = p.Searches(c)
		c.Exposed, c.Unsearched = recent.files(p, walk...)
		assert.Equal(t, want, p.Check(c).Effect, line)
	}
}
