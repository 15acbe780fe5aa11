package gitstore_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy/gitstore"
)

// repository is a repository that git itself creates.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("left out: git is not installed")
	}
	r := repository{t, t.TempDir()}
	r.git("init", "-q", "-b", "main")
	return r
}

func (r repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "HOME="+r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x")
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "git %v: %s", args, out)
	return string(out)
}

func (r repository) write(file, text string) {
	r.t.Helper()
	file = filepath.Join(r.dir, file)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(r.t, os.WriteFile(file, []byte(text), 0o644))
}

// commits makes n commits that change, move and delete files.
func (r repository) commits(n int) {
	for i := range n {
		r.write(fmt.Sprintf("d%d/sub/f%d", i%3, i), fmt.Sprintln("file", i))
		r.write("grows/a b", strings.Repeat("line\n", i+1))
		if i%5 == 4 {
			r.git("rm", "-q", "--cached", fmt.Sprintf("d%d/sub/f%d", (i-4)%3, i-4))
		}
		r.git("add", "-A", "grows", fmt.Sprintf("d%d/sub/f%d", i%3, i))
		r.git("commit", "-q", "-m", fmt.Sprint(i))
	}
}

// blobs returns the names and paths of all files of all commits, as git lists them.
func (r repository) blobs() (blobs []string) {
	for commit := range strings.FieldsSeq(r.git("rev-list", "--all", "--reflog")) {
		for line := range strings.Lines(r.git("ls-tree", "-r", "-z", commit)) {
			for entry := range strings.SplitSeq(strings.TrimSuffix(line, "\x00"), "\x00") {
				head, file, _ := strings.Cut(entry, "\t")
				blobs = append(blobs, strings.Fields(head)[2]+" "+file)
			}
		}
	}
	slices.Sort(blobs)
	return slices.Compact(blobs)
}

func found(h *gitstore.History) (blobs []string) {
	for file, contents := range h.Found() {
		for id := range contents {
			blobs = append(blobs, id.String()+" "+file)
		}
	}
	slices.Sort(blobs)
	return blobs
}

func all(string) bool { return true }

// read reads all commits. It repeats the reading until there is no error.
func (r repository) read(h *gitstore.History) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return h.Read(r.dir+"/.git", time.Now().Add(time.Minute)) == nil }, 30*time.Second, time.Millisecond)
}

// A History finds the same files as git, however git stores its objects. Objects may be files, or may be in
// packs, as deltas, or in an alternate. Commits may be only in the reflog.
func TestAHistoryHoldsEveryFileOfEveryCommit(t *testing.T) {
	r := newRepository(t)
	h := gitstore.NewHistory(all)
	r.commits(12)
	r.read(h)
	assert.Equal(t, r.blobs(), found(h), "loose objects")

	r.git("gc", "-q", "--aggressive", "--prune=now")
	fresh := gitstore.NewHistory(all)
	r.read(fresh)
	assert.Equal(t, r.blobs(), found(fresh), "one pack of deltas")
	r.read(h)
	assert.Equal(t, r.blobs(), found(h), "the same, read again")

	r.commits(6)
	r.git("reset", "-q", "--hard", "HEAD~3")
	r.git("repack", "-q", "-d")
	r.write("stashed", "x")
	r.git("stash", "push", "-q", "-u")
	r.read(h)
	assert.Subset(t, found(h), r.blobs(), "several packs, commits of the reflog, a stash")
	assert.Contains(t, strings.Join(found(h), "\n"), " stashed")

	shared := repository{t, t.TempDir()}
	shared.git("clone", "-q", "--shared", r.dir, ".")
	theirs := gitstore.NewHistory(all)
	shared.read(theirs)
	assert.Subset(t, found(theirs), shared.blobs(), "an alternate")

	linked := filepath.Join(t.TempDir(), "tree")
	r.git("worktree", "add", "-q", "-b", "side", linked)
	var files []string
	require.NoError(t, gitstore.Index(r.dir+"/.git/worktrees/tree/index", all, func(e gitstore.Entry) { files = append(files, e.Path) }))
	assert.Equal(t, strings.Split(strings.TrimSpace(r.git("ls-tree", "-r", "--name-only", "side")), "\n"), files, "the index of a work tree")
}

// A History finds commits that were added after its first reading. If a History cannot read all commits, it
// returns an error.
func TestAHistoryIsReadAgain(t *testing.T) {
	r := newRepository(t)
	r.commits(3)
	h := gitstore.NewHistory(func(file string) bool { return strings.HasSuffix(file, ".key") })
	r.read(h)
	assert.Empty(t, h.Found())
	r.write("deploy/x.key", "k")
	r.git("add", ".")
	r.git("commit", "-q", "-m", "key")
	r.git("rm", "-q", "deploy/x.key")
	r.git("commit", "-q", "-m", "no key")
	r.read(h)
	assert.Equal(t, []string{"deploy/x.key"}, h.Paths())

	assert.ErrorIs(t, gitstore.NewHistory(all).Read(r.dir+"/.git", time.Now().Add(-time.Second)), gitstore.ErrUnfinished)
	slow := gitstore.NewHistory(all)
	_ = slow.Read(r.dir+"/.git", time.Now().Add(-time.Second))
	r.read(slow)
	assert.Equal(t, r.blobs(), found(slow), "a later call continues")

	packs, err := filepath.Glob(r.dir + "/.git/objects/*/*")
	require.NoError(t, err)
	for _, file := range packs {
		require.NoError(t, os.Chmod(file, 0o644))
		require.NoError(t, os.WriteFile(file, []byte("damaged"), 0o644))
	}
	assert.Error(t, gitstore.NewHistory(all).Read(r.dir+"/.git", time.Now().Add(time.Minute)))
}

// Index finds the same files as git, in each version of the index format.
func TestAnIndexHoldsEveryTrackedFile(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		r := newRepository(t)
		for i := range 40 {
			r.write(fmt.Sprintf("%s/f%d", strings.Repeat("d", i+1), i), "x")
		}
		r.git("add", ".")
		if version == "3" {
			r.write("later", "x")
			r.git("add", "-N", "later")
		} else {
			r.git("update-index", "--index-version", version)
		}
		var files []string
		require.NoError(t, gitstore.Index(r.dir+"/.git/index", all, func(e gitstore.Entry) {
			files = append(files, e.Path)
			assert.Equal(t, e.Path == "later", e.Size == 0, e.Path)
		}), "version %s", version)
		assert.Equal(t, strings.Fields(r.git("ls-files")), files, "version %s", version)
		r.git("update-index", "--split-index")
		assert.Error(t, gitstore.Index(r.dir+"/.git/index", all, func(gitstore.Entry) {}))
	}
}

// A damaged file causes an error, and neither a crash nor an endless loop.
func FuzzIndex(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"))
	f.Add(append([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x02"), make([]byte, 200)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "index")
		require.NoError(t, os.WriteFile(file, data, 0o644))
		_ = gitstore.Index(file, all, func(gitstore.Entry) {}) // only a panic or an endless loop fails the test
	})
}

// A small file of a repository may inflate to any size. Reading a huge object returns an error, and takes no
// more memory than the limit.
func TestAnObjectThatInflatesTooFarIsNotRead(t *testing.T) {
	r := newRepository(t)
	tree := exec.Command("git", "hash-object", "-t", "tree", "-w", "--stdin", "--literally")
	tree.Dir = r.dir
	tree.Stdin = strings.NewReader(strings.Repeat("100644 a\x00"+strings.Repeat("x", 20), 64<<20/29))
	id, err := tree.Output()
	require.NoError(t, err)
	r.git("commit-tree", "-m", "large", strings.TrimSpace(string(id)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = gitstore.NewHistory(func(string) bool { return false }).Read(filepath.Join(r.dir, ".git"), time.Now().Add(time.Minute))
	runtime.ReadMemStats(&after)
	require.Error(t, err)
	require.NotErrorIs(t, err, gitstore.ErrUnfinished)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(192<<20), "bytes, most of which are the steps by which a slice grows to the bound")
}
