package launcher_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/cmd/nod/internal/launcher"
	"github.com/nodbus/nod/internal/testprogram"
)

// asProcess is an environment variable. If it is set, this test binary acts as a nod that creates or
// repairs its launcher in the data directory of its first argument.
const asProcess = "NOD_TEST_AS"

func TestMain(m *testing.M) {
	do := map[string]func(string) error{
		"ensure": func(dir string) error { _, err := launcher.Ensure(dir); return err },
		"mend":   launcher.Repair,
	}[os.Getenv(asProcess)]
	if do == nil {
		os.Exit(m.Run())
	}
	if err := do(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// installed copies this test binary to path. The copy acts as an installed nod.
func installed(t *testing.T, path string) string {
	t.Helper()
	testprogram.Copy(t, os.Args[0], path)
	return path
}

func run(t *testing.T, program, as, dir, path string) {
	t.Helper()
	cmd := exec.Command(program, dir)
	cmd.Env = []string{asProcess + "=" + as, "PATH=" + path}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

func leadsTo(t *testing.T, dir string) string {
	t.Helper()
	to, err := os.Readlink(launcher.Path(dir))
	require.NoError(t, err)
	return to
}

// The launcher leads to a link to nod in PATH, because package managers create such links. Without such
// a link it leads to the program itself.
func TestTheLauncherOutlivesAnUpgrade(t *testing.T) {
	dir, bin, data := root(t), filepath.Join(root(t), "bin"), filepath.Join(root(t), "My data")
	first := installed(t, filepath.Join(dir, "version 1", "nod"))
	require.NoError(t, os.Mkdir(bin, 0o755))
	inPath := filepath.Join(bin, "nod")
	require.NoError(t, os.Symlink(first, inPath))

	run(t, first, "ensure", data, "/nowhere")
	assert.Equal(t, first, leadsTo(t, data))
	run(t, first, "ensure", data, bin)
	assert.Equal(t, inPath, leadsTo(t, data))
	require.NoError(t, launcher.Check(data))

	run(t, launcher.Path(data), "ensure", data, "/nowhere")
	assert.Equal(t, inPath, leadsTo(t, data), "a service has another PATH")
	require.NoError(t, launcher.Check(data))
	entries, err := os.ReadDir(filepath.Dir(launcher.Path(data)))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

// Repair changes a launcher whose target is gone. It does not change a working launcher, and does not
// create a missing one.
func TestRepair(t *testing.T) {
	dir, data := root(t), root(t)
	first, second := installed(t, filepath.Join(dir, "1", "nod")), installed(t, filepath.Join(dir, "2", "nod"))
	run(t, second, "mend", data, "")
	require.ErrorIs(t, launcher.Check(data), os.ErrNotExist)
	assert.NoFileExists(t, launcher.Path(data))

	run(t, first, "ensure", data, "")
	run(t, second, "mend", data, "")
	assert.Equal(t, first, leadsTo(t, data))
	require.NoError(t, os.Remove(first))
	require.ErrorContains(t, launcher.Check(data), "which is gone")
	run(t, second, "mend", data, "")
	assert.Equal(t, second, leadsTo(t, data))

	require.NoError(t, os.Chmod(second, 0o600))
	require.ErrorContains(t, launcher.Check(data), "cannot be run")
	require.NoError(t, launcher.Remove(data))
	require.NoError(t, launcher.Remove(data), "twice is once")
	assert.NoDirExists(t, filepath.Dir(launcher.Path(data)))
}

// This test binary is a temporary program, because go test built it.
func TestATemporaryProgramIsRefused(t *testing.T) {
	data := root(t)
	_, err := launcher.Ensure(data)
	require.ErrorContains(t, err, "go install ./cmd/nod")
	assert.NotContains(t, err.Error(), "\n")
	assert.NoFileExists(t, launcher.Path(data))
	assert.True(t, strings.Contains(os.Args[0], "go-build"), "else this test shows nothing")
}
