package policy_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// held makes a directory w, which the session of the tests may read, and a directory out, which it must not
// read. Symbolic links lead from w to out. held returns the parent of both directories.
func held(t *testing.T) (dir string) {
	t.Helper()
	dir = trueTempDir(t)
	for _, d := range []string{"w/sub", "w/plain", "w/.worktrees/repo/.git/objects", "w/.worktrees/repo/inner", "w/.worktrees/hollow/.git", "w/sub/deep", "w/sub/spot", "out/deep"} {
		require.NoError(t, os.MkdirAll(dir+"/"+d, 0o755))
	}
	for _, f := range []string{"out/x", "out/deep/x", "w/x", "w/sub/a.txt", "w/plain/a.txt", "w/.worktrees/repo/.git/HEAD"} {
		require.NoError(t, os.WriteFile(dir+"/"+f, []byte("words\n"), 0o600))
	}
	for name, target := range map[string]string{"w/link": dir + "/out", "w/deep": "../out/deep", "w/sub/LEAK.txt": dir + "/out/x", "w/sub/near": "a.txt", "w/-odd": dir + "/out/x", "w/[a]": dir + "/out", "w/bent": "sub/deep", "w/sub/spot/leak": dir + "/out/x"} {
		require.NoError(t, os.Symlink(target, dir+"/"+name))
	}
	return dir
}

// covered requires that nod allows the line. It reports whether a session in the directory w has all
// permissions that the line needs, and returns the missing permissions or the error as a text.
func covered(t *testing.T, dir, line string) (bool, string) {
	t.Helper()
	c := bash(t, line)
	c.Cwd, c.Project, c.Home = dir+"/w", dir+"/w", "/nowhere"
	p := preset(t, policy.PresetReaders)
	v := p.Check(c)
	assert.Equal(t, policy.Allow, v.Effect, "%s: %s", line, v.Why)
	perms, err := p.ShellNeeds(c, policy.ThisDisk{})
	if err != nil {
		return false, err.Error()
	}
	missing, err := policy.Missing(&schemas.SessionPermissions{WorkingDir: dir + "/w"}, perms, policy.OnDisk)
	return err == nil && len(missing) == 0, fmt.Sprint(tags(missing), err)
}

// The session's permissions cover a line only if the line reads nothing outside the directory w, in whatever
// form the words name the paths.
func TestShellLinesNeedPermissionForAllTheyRead(t *testing.T) {
	dir := held(t)
	for _, line := range []string{
		"ls", "cat x sub/near | head -n 3", "cat < x", "wc -l < sub/a.txt", "grep -rln x .", "grep -rn --include=*.go x sub", "cat plain/*.txt", "ls -d p*", "cat ./x*.txt", "cd sub && cat a.txt", "cat x # all of it", "cat x > /dev/null < /dev/null",
		"cd .worktrees/repo && git status", "cd .worktrees/repo && git log -p -- a", "git -C " + dir + "/w/.worktrees/repo show HEAD:inner/x", "rtk git -C " + dir + "/w/.worktrees/repo status", "find . -name '*.txt'", "echo x*.txt", "rg x", "test -f x",
	} {
		ok, why := covered(t, dir, line)
		assert.True(t, ok, "%s: %s", line, why)
	}
	for _, line := range []string{
		"cat " + dir + "/out/x", "ls ..", "cat link/x", "ls link/../../out", "cat ~/x", "head -n3 ../out/x", "cd .. && ls",
		"cat < " + dir + "/out/x", "wc -l < ../out/x", "cat 0< link/x", "cd sub && cat < ../../out/x", "cat x | grep words < link/x", // redirections
		"cat */../../out/x", "cat p*/../../out/x", "ls */", "cat s?b/a.txt", "head -n1 [l]ink/x.txt", // patterns in the middle of a path
		"cat lin*/x", "cat sub/LEAK*.txt", "cat sub/*.TXT", "cat -- sub/?EAK.txt", "ls lin*", "cat sub/leak*.txt", "ls '[a]'*", "cat -- -odd", // patterns that match links, and links with odd names
		"grep -lR words .", "grep -rl --dereference-recursive words .", "rg -lL words", "rg --follow -l words", "ls -LR", "ls --dereference", "du -L", "tree -l", "find -L . -name x", "find . -follow -name x", "diff -rq sub plain", // options that make a command follow all links
		"cat x # ../out/x", "cat x # " + dir + "/out/x", // an interactive Zsh takes the comment for words of the command
		"cd link && ls", "cd link/../x && cat y", "cd " + dir + "/w/bent/../spot && cat leak", "cd bent/../spot && cat leak", "workmux capture agent",
	} {
		ok, why := covered(t, dir, line)
		assert.False(t, ok, "%s is covered: %s", line, why)
	}
}

// A git command can show all files of its repository. Therefore it needs permission to read the whole work
// tree, even if it runs in a directory below the top.
func TestGitReadsWholeWorkTrees(t *testing.T) {
	dir := held(t)
	for _, line := range []string{"git status", "git show HEAD:out/x", "cd .worktrees/hollow && git log -p", "git -C " + dir + "/w/.worktrees/hollow diff", "rtk git log -p", "ls && cd .worktrees/hollow && git show HEAD:../out/x"} {
		require.NoError(t, os.RemoveAll(dir+"/.git"))
		ok, why := covered(t, dir, line)
		assert.True(t, ok, "there is no repository to show, %s: %s", line, why)
		require.NoError(t, os.WriteFile(dir+"/.git", []byte("gitdir: elsewhere\n"), 0o600))
		ok, why = covered(t, dir, line)
		assert.False(t, ok, line)
		assert.Contains(t, why, "[@read:"+dir+"]", "the top of the repository is asked for")
	}
	require.NoError(t, os.RemoveAll(dir+"/.git"))
	require.NoError(t, os.WriteFile(dir+"/out/.git", []byte("gitdir: elsewhere\n"), 0o600))
	c := bash(t, "git -C "+dir+"/out/deep show HEAD:x")
	c.Cwd, c.Project = dir+"/w", dir+"/out/deep"
	perms, err := preset(t, policy.PresetReaders).ShellNeeds(c, policy.ThisDisk{})
	require.NoError(t, err)
	assert.Contains(t, tags(perms), "@read:"+dir+"/out", "the repository that -C names")
	for _, part := range []string{"/HEAD", "/commondir"} {
		require.NoError(t, os.WriteFile(dir+part, nil, 0o600))
	}
	ok, _ := covered(t, dir, "git log -p")
	assert.False(t, ok, "a repository without a work tree is one, too")
}

type lostDisk struct{}

func (lostDisk) Links(string) ([]string, error)  { return nil, errors.New("lost") }
func (lostDisk) WorkTree(string) (string, error) { return "", errors.New("lost") }

func TestShellNeedsErrors(t *testing.T) {
	p := preset(t, policy.PresetReaders)
	for _, line := range []string{"cat *.txt", "git status"} {
		_, err := p.ShellNeeds(bash(t, line), lostDisk{})
		assert.EqualError(t, err, "lost", line)
	}
	_, err := p.ShellNeeds(call(t, "Read", map[string]string{"file_path": "x"}), lostDisk{})
	assert.ErrorIs(t, err, policy.ErrOtherTool)
	for _, line := range []string{"rm x", "cat '", strings.Repeat("x", 9<<10)} {
		_, err = p.ShellNeeds(bash(t, line), policy.ThisDisk{})
		assert.Error(t, err, line)
	}
	many := t.TempDir()
	for i := range 4096 {
		require.NoError(t, os.WriteFile(fmt.Sprintf("%s/%d", many, i), nil, 0o600))
	}
	_, err = policy.ThisDisk{}.Links(many)
	assert.ErrorContains(t, err, "4096 entries or more")
	none, err := policy.ThisDisk{}.Links(many + "/nowhere")
	assert.NoError(t, err)
	assert.Empty(t, none)
}
