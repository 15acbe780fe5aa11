package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPathThroughTheProjectIsNotContainable(t *testing.T) {
	top := t.TempDir()
	project, system, empty := top+"/project", top+"/system", top+"/empty"
	for _, dir := range []string{project + "/.venv/bin", system, empty} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	require.NoError(t, os.WriteFile(system+"/nod", nil, 0o755))
	link := top + "/link"
	require.NoError(t, os.Symlink(project+"/.venv/bin", link))
	for path, want := range map[string]bool{
		system:                                true,
		empty + ":" + system:                  true,
		system + ":" + project + "/.venv/bin": true,
		project + "/.venv/bin:" + system:      false,
		project + "/not/there:" + system:      false,
		link + ":" + system:                   false,
		".:" + system:                         false,
		":" + system:                          false,
		empty:                                 false,
		"":                                    false,
		filepath.Dir(project) + "/./project:" + system: false,
	} {
		assert.Equal(t, want, found(path, project), path)
	}
}
