package contain

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/contain/inner"
)

func TestSystemDirectoriesInPathAndLoginsOfAllUsersAreNotShown(t *testing.T) {
	home := t.TempDir()
	l := &layout{spec: &Spec{Project: home + "/p", Env: []string{"PATH=/etc:/var:/root:/usr/bin", "CONDA_PREFIX=/srv"}}, home: home, made: map[string]bool{}}
	require.NoError(t, l.system())
	require.NoError(t, l.homeDir())
	for _, s := range l.steps {
		if s.Kind == inner.StepBind {
			assert.NotContains(t, []string{"/etc", "/var", "/root", "/srv", systemGit}, s.Path)
		}
	}
}

func TestTheKeysOfElixirsPackagesAreNotShown(t *testing.T) {
	r := newRig(t)
	for _, name := range []string{".hex/hex.config", ".mix/hex.config"} {
		r.file(r.home+"/"+name, marker)
	}
	r.file(r.home+"/.hex/packages/x", "package")
	res := r.sh(`cat ~/.hex/hex.config ~/.mix/hex.config ~/.hex/packages/x`)
	assert.NotContains(t, res.out, marker)
	assert.Contains(t, res.out, "package", res.err)
}

// A contained command must leave no repository in modules, because git uses that repository when the
// user sets up a submodule. It must leave no files of a rebase, because git runs commands from these
// files when the user continues the rebase.
func TestAContainedCommandLeavesNoRepositoryAndNoRebaseForLater(t *testing.T) {
	r := dangerous(t)
	res := r.sh(`cd .git; git init -q --bare modules/lib; echo x > modules/lib/hooks/post-checkout; mkdir rebase-merge rebase-apply; echo 'exec evil' > rebase-merge/git-rebase-todo`)
	for _, name := range []string{"modules", "rebase-merge", "rebase-apply"} {
		assert.NoDirExists(t, r.project+"/.git/"+name, res.err)
		assert.Contains(t, res.Undone, r.project+"/.git/"+name)
	}
}

func TestALinkInPlaceOfADirectoryWithProtectedNamesIsTakenAway(t *testing.T) {
	r := dangerous(t)
	r.file("old/real/workflows/ci.yml", "good")
	require.NoError(t, os.Symlink("real", r.project+"/old/.github"))
	res := r.sh(`mkdir -p new/tools/workflows; echo evil > new/tools/workflows/ci.yml; ln -s tools new/.github; echo evil > old/real/workflows/ci.yml`)
	assert.NoFileExists(t, r.project+"/new/.github/workflows/ci.yml", res.err)
	data, err := os.ReadFile(r.project + "/old/.github/workflows/ci.yml")
	require.NoError(t, err)
	assert.Equal(t, "good", string(data))
}

func TestAMissingProgramOfGitsSettingsIsNotMade(t *testing.T) {
	r := dangerous(t)
	r.file(".git/config", "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = bin/watch\n")
	res := r.sh(`mkdir -p bin; echo evil > bin/watch; chmod +x bin/watch`)
	assert.NoFileExists(t, r.project+"/bin/watch", res.err)
	assert.Contains(t, res.Undone, r.project+"/bin/watch")
}

func TestAProtectedFileOnAnotherFileSystemIsKept(t *testing.T) {
	r := newRig(t)
	top, err := os.MkdirTemp("/dev/shm", "nod-test-")
	if err != nil {
		t.Skipf("left out: this machine has no second file system for the test: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	r.project = top
	r.file("a/AGENTS.md", "the user's own")
	res := r.sh(`mv a b`)
	assert.Contains(t, res.Undone, top+"/b/AGENTS.md", res.err)
	assert.NoFileExists(t, top+"/b/AGENTS.md")
	kept, err := filepath.Glob(top + "/nod-removed-*/*-AGENTS.md")
	require.NoError(t, err)
	require.Len(t, kept, 1)
	data, err := os.ReadFile(kept[0])
	require.NoError(t, err)
	assert.Equal(t, "the user's own", string(data))
}
