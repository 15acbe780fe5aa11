package policy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
)

// nod lets git read without a question only in the work trees that git itself lists, which are those that
// Tops returns. nod asks about a directory that only looks like a work tree.
func TestGitReadsAreAllowedInTheWorkTreesThatGitLists(t *testing.T) {
	dir, homeDir := scratch(t)
	run := func(in string, args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = in, environ(homeDir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "git %v: %s", args, out)
		return string(out)
	}
	beside, below := filepath.Join(filepath.Dir(dir), "any-name"), filepath.Join(dir, ".worktrees", "x")
	run(dir, "worktree", "add", "-q", "-b", "one", beside)
	run(dir, "worktree", "add", "-q", "-b", "two", below)
	var listed []string
	for line := range strings.Lines(run(dir, "worktree", "list", "--porcelain")) {
		if tree, ok := strings.CutPrefix(strings.TrimSpace(line), "worktree "); ok {
			listed = append(listed, tree)
		}
	}
	slices.Sort(listed)
	disk := policy.ThisDisk{}
	for _, project := range []string{dir, beside, below} {
		assert.Equal(t, listed, slices.Sorted(slices.Values(disk.Tops(project))), project)
	}
	assert.Contains(t, disk.Tops(filepath.Join(dir, "src")), filepath.Join(dir, "src"), "a project below the top uses the repository above it")

	evil := filepath.Join(dir, ".worktrees", "evil")
	pointer := filepath.Join(dir, ".worktrees", "pointer")
	require.NoError(t, os.MkdirAll(filepath.Join(evil, "objects"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(evil, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644))
	require.NoError(t, os.MkdirAll(pointer, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(pointer, ".git"), []byte("gitdir: "+evil+"\n"), 0o644))
	moved := filepath.Join(dir, ".worktrees", "moved")
	run(dir, "worktree", "add", "-q", "-b", "three", moved)
	require.NoError(t, os.WriteFile(filepath.Join(moved, ".git"), []byte("gitdir: "+evil+"\n"), 0o644))

	p := preset(t, policy.PresetReaders)
	at := func(cwd, command string) policy.Effect {
		c := bash(t, command)
		c.Cwd, c.Project, c.Home = cwd, dir, homeDir
		c.Tops = disk.Tops(dir)
		return p.Check(c).Effect
	}
	for _, tree := range listed {
		assert.Equal(t, policy.Allow, at(tree, "git status"), tree)
		assert.Equal(t, policy.Allow, at(dir, "cd "+tree+" && git log -1"), tree)
		assert.Equal(t, policy.Allow, at(dir, "git -C "+tree+" diff"), tree)
	}
	for _, other := range []string{evil, pointer, moved, filepath.Join(dir, "src"), filepath.Join(dir, ".worktrees"), filepath.Dir(dir), filepath.Join(below, "src")} {
		assert.Equal(t, policy.Ask, at(other, "git status"), other)
		assert.Equal(t, policy.Ask, at(dir, "git -C "+other+" status"), other)
	}

	// In a project without a repository, Tops returns an empty list, and nod asks about git. Git could
	// otherwise use a directory that only looks like a repository.
	plain := t.TempDir()
	assert.Equal(t, []string{}, disk.Tops(plain))
	c := bash(t, "git status")
	c.Cwd, c.Project, c.Tops = plain, plain, disk.Tops(plain)
	assert.Equal(t, policy.Ask, p.Check(c).Effect)
	assert.Nil(t, disk.Tops(""))
	assert.Nil(t, disk.Tops(filepath.Join(plain, "missing")))
}
