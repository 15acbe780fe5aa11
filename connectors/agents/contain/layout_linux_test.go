package contain

import (
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

// Git obeys these when a user sets up a submodule, or goes on with a rebase.
func TestAContainedCommandLeavesNoRepositoryAndNoRebaseForLater(t *testing.T) {
	r := dangerous(t)
	res := r.sh(`cd .git; git init -q --bare modules/lib; echo x > modules/lib/hooks/post-checkout; mkdir rebase-merge rebase-apply; echo 'exec evil' > rebase-merge/git-rebase-todo`)
	for _, name := range []string{"modules", "rebase-merge", "rebase-apply"} {
		assert.NoDirExists(t, r.project+"/.git/"+name, res.err)
		assert.Contains(t, res.Undone, r.project+"/.git/"+name)
	}
}
