package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/schemas"
)

func TestAPathThroughTheProjectIsNotContainable(t *testing.T) {
	top := t.TempDir()
	project, system, empty := top+"/project", top+"/system", top+"/empty"
	for _, dir := range []string{project + "/.venv/bin", system, empty} {
		require.NoError(t, os.MkdirAll(dir, 0o755))
	}
	testprogram.Write(t, system+"/nod", "")
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

func TestAProjectThatIsALinkRunsNothingContained(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(top+"/project", 0o755))
	require.NoError(t, os.Symlink(top+"/project", top+"/link"))
	testprogram.Write(t, top+"/nod", "")
	t.Setenv("PATH", top)
	t.Setenv("XDG_CACHE_HOME", top+"/cache")
	if runtime.GOOS == "linux" {
		assert.Equal(t, schemas.ContainPossible, containable(top+"/project"))
	}
	assert.NotEqual(t, schemas.ContainPossible, containable(top+"/link"))

	_, err = runSpec(schemas.Container{Project: top + "/project", Dir: top + "/project"}, []string{"true"}, "S")
	require.NoError(t, err)
	_, err = runSpec(schemas.Container{Project: top + "/link", Dir: top + "/link"}, []string{"true"}, "S")
	assert.ErrorContains(t, err, "leads to")
}
