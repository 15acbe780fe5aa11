package policy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// trackedSecrets makes a repository with two files with secrets: deploy/server.key, which it tracks now, and
// .npmrc, which it tracked in an earlier commit.
func trackedSecrets(t *testing.T) (dir, homeDir string, git func(args ...string) string) {
	t.Helper()
	dir, homeDir = scratch(t)
	git = func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, environ(homeDir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "git %v: %s", args, out)
		return string(out)
	}
	write := func(file, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o644))
	}
	write(".npmrc", "HUSH-old")
	write("deploy/server.key", "HUSH-key")
	git("add", ".")
	git("commit", "-q", "-m", "with secrets")
	git("rm", "-q", ".npmrc")
	git("commit", "-q", "-m", "without one")
	return dir, homeDir, git
}

// lookAt returns a call in the directory dir, with the facts about the disk that the engine would read.
func lookAt(t *testing.T, p *policy.Policy, repos *policy.Repositories, dir, homeDir, line string, changeable bool) policy.Call {
	t.Helper()
	c := bash(t, line)
	c.Cwd, c.Project, c.Home, c.Tops, c.Changeable = dir, dir, homeDir, []string{dir}, changeable
	c.Seen = repos.Look(p, c, func(s policy.Search) ([]string, bool) { return policy.ThisDisk{}.Exposed(p, s) })
	return c
}

// nod lets no git command print a secret that the repository tracks, now or in any commit. If nod may change
// the command, it makes git leave out the secret. Otherwise nod asks.
func TestGitPrintsNoTrackedSecret(t *testing.T) {
	dir, homeDir, git := trackedSecrets(t)
	blob := strings.TrimSpace(git("rev-parse", "HEAD:deploy/server.key"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("changed HUSH\n"), 0o644))
	git("stash", "push", "-q")
	git("stash", "apply", "-q")
	run := func(line string) string {
		cmd := exec.Command("bash", "-c", line)
		cmd.Dir, cmd.Env = dir, environ(homeDir)
		out, _ := cmd.CombinedOutput() // a line may fail, because only its output matters
		return string(out)
	}
	p, repos := preset(t, policy.PresetReaders), &policy.Repositories{}
	lines := strings.Split(`git log -p
git log -p -5
git log -u --all
git log --patch HEAD
git log -U1
git log --cc -m -p
git log --stat -p
git log --unified=3
git log --binary
git log -p --follow deploy
git log -p --full-diff -- main.go
git log -p -- deploy
git log -p -- ':!main.go'
git log -p -- '*.go' '*.key'
git log -p -- . ':(top,exclude,literal)main.go'
git show HEAD~1
git show --stat -p HEAD~1
git show HEAD~1 HEAD
git show HEAD~1 -- deploy
git show `+blob+`
git show `+blob[:7]+`
git cat-file -p `+blob+`
git cat-file -p `+strings.ToUpper(blob[:8])+`
git cat-file blob `+blob+`
git diff HEAD~2
git diff HEAD~2 HEAD~1
git diff HEAD~2..HEAD --
git diff --cached HEAD~2
git diff HEAD~2 -- deploy
git grep HUSH
git grep HUSH HEAD~1
git grep --cached HUSH
git grep -e HUSH -- deploy
git grep -h HUSH | cat
git reflog show -p
git log -p --reverse | head -50
git -C `+dir+` log -p
cd . && git show HEAD~1
git --literal-pathspecs log -p -- ':(top,exclude,literal)deploy/server.key' ':(top,exclude,literal).npmrc'
rtk git log -p`, "\n")
	for _, line := range lines {
		c := lookAt(t, p, repos, dir, homeDir, line, false)
		v := p.Check(c)
		assert.Equal(t, policy.Ask, v.Effect, line)
		assert.NotContains(t, v.Why, "nod has not", line)
		c.Changeable = true
		if v = p.Check(c); v.Effect != policy.Allow {
			continue
		}
		hard, changed := p.Harden(c)
		require.True(t, changed, line)
		require.NotEmpty(t, v.LeavesOut, line)
		out := run(hard)
		assert.NotContains(t, out, "HUSH-", hard)
		assert.NotContains(t, out, "fatal:", hard)
		assert.NotContains(t, out, "usage:", hard)
		assert.Equal(t, policy.Allow, p.Check(lookAt(t, p, repos, dir, homeDir, hard, false)).Effect, "the changed line, asked again: %s", hard)
	}
	for _, line := range []string{"git log -p", "git show HEAD~1", "git diff HEAD~2", "git grep HUSH", "git reflog show -p", "git log -p --reverse | head -500"} {
		assert.Equal(t, policy.Allow, p.Check(lookAt(t, p, repos, dir, homeDir, line, true)).Effect, "nod could change %s", line)
		if !strings.Contains(line, "reflog") {
			assert.Contains(t, run(line), "HUSH-", "the test would not notice the secret: %s", line)
		}
	}
	contained := preset(t, policy.PresetContained)
	for _, line := range []string{"git log -p", "for i in 1; do git log -p; done", "timeout 9 git show HEAD~1", "git diff", "cd deploy && git log -p"} {
		v := contained.Check(lookAt(t, contained, repos, dir, homeDir, line, false))
		assert.NotEqual(t, policy.Contain, v.Effect, line)
		assert.Nil(t, v.Containment, line)
	}
}

// nod does not ask about a git command that prints no tracked secret. If the repository tracks no secret, nod
// does not ask about any reading git command.
func TestGitCommandsWithoutTrackedSecretsDoNotAsk(t *testing.T) {
	dir, homeDir, git := trackedSecrets(t)
	p, repos := preset(t, policy.PresetReaders), &policy.Repositories{}
	settled := func(line string) policy.Verdict {
		return p.Check(lookAt(t, p, repos, dir, homeDir, line, false))
	}
	// git trusts a file's time only if the file is older than the index
	require.Eventually(t, func() bool {
		_ = os.Chtimes(filepath.Join(dir, "deploy/server.key"), time.Time{}, time.Now().Add(-time.Hour))
		git("update-index", "--refresh")
		return settled("git diff").Effect == policy.Allow
	}, 30*time.Second, 10*time.Millisecond)
	for _, line := range []string{
		"git log", "git log --oneline -5", "git log --stat", "git status", "git diff", "git diff --stat HEAD~2", "git diff -- main.go", "git show --stat HEAD~1", "git show --name-only HEAD~1", "git log -p -- main.go src", "git log -p -- '*.go'", "git diff HEAD~2 -- src",
		"git grep -l HUSH", "git grep HUSH -- '*.go'", "git grep HUSH -- src", "git cat-file -p HEAD", "git cat-file -p HEAD:main.go", "git show HEAD:main.go", "git blame main.go", "git branch", "git ls-files", "git rev-parse HEAD",
		"git log -p -- . ':!deploy' ':!.npmrc'", "git show HEAD~1 ':(top,exclude,literal)deploy/server.key' ':(top,exclude,literal).npmrc'", "git log -p -- ':(exclude)deploy/server.key' ':(exclude).npmrc'", "git stash list",
	} {
		v := settled(line)
		assert.Equal(t, policy.Allow, v.Effect, "%s: %s", line, v.Why)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "deploy/server.key"), []byte("HUSH-new\n"), 0o644))
	assert.Equal(t, policy.Ask, settled("git diff").Effect, "the secret is changed")
	assert.Contains(t, settled("git diff").Why, "':(top,exclude,literal)deploy/server.key'", "the agent can leave it out")
	assert.Equal(t, policy.Allow, pol(t, schemas.Permissions{Allow: []string{"Bash(git diff)"}}).Check(lookAt(t, p, repos, dir, homeDir, "git diff", false)).Effect, "a rule of the user")

	linked := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, linked))
	assert.Equal(t, policy.Ask, p.Check(lookAt(t, p, repos, linked, homeDir, "git log -p -- deploy", false)).Effect, "in a directory that is a link")
	assert.Equal(t, policy.Allow, p.Check(lookAt(t, p, repos, linked, homeDir, "git log -p -- src", false)).Effect, "in a directory that is a link")

	clean, home := scratch(t)
	for _, line := range []string{"git grep x", "git diff"} {
		git := exec.Command("git", "update-index", "--split-index")
		git.Dir, git.Env = clean, environ(home)
		require.NoError(t, git.Run())
		assert.Equal(t, policy.Ask, p.Check(lookAt(t, p, repos, clean, home, line, false)).Effect, "an index that nod cannot read: %s", line)
		git = exec.Command("git", "update-index", "--no-split-index")
		git.Dir, git.Env = clean, environ(home)
		require.NoError(t, git.Run())
	}
	for _, line := range []string{"git log -p", "git show", "git diff HEAD~1", "git grep x", "git stash show -p", "git reflog show -p"} {
		v := p.Check(lookAt(t, p, repos, clean, home, line, false))
		assert.Equal(t, policy.Allow, v.Effect, "%s: %s", line, v.Why)
	}
	require.NoError(t, os.WriteFile(filepath.Join(clean, ".git", "config"), []byte("[extensions]\n\tobjectFormat = sha256\n"), 0o644))
	assert.Equal(t, policy.Ask, p.Check(lookAt(t, p, repos, clean, home, "git log -p", false)).Effect, "a repository that nod cannot read")
}
