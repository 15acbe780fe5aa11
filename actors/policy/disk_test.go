package policy_test

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

func trueTempDir(t testing.TB) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return dir
}

func TestLinksAreFollowed(t *testing.T) {
	dir := trueTempDir(t)
	in := func(p string) string { return dir + "/" + p }
	require.NoError(t, os.MkdirAll(in("held/sub"), 0o755))
	require.NoError(t, os.MkdirAll(in("other/deep"), 0o755))
	require.NoError(t, os.WriteFile(in("other/file"), nil, 0o600))
	for name, target := range map[string]string{
		"held/out":      in("other"),
		"held/up":       "../other",
		"held/back":     "sub/../sub",
		"held/deep":     "../other/deep",
		"held/dangling": in("other/not-yet"),
		"held/far":      in("nowhere/at/all"),
		"held/loop":     "loop",
		"held/chain":    "up",
		"other/in":      in("held"),
	} {
		require.NoError(t, os.Symlink(target, in(name)))
	}
	held := schemas.SessionPermissions{WriteDirs: []string{in("held")}}
	for p, want := range map[string]struct {
		leads string // the true path; "" if OnDisk returns an error
		held  bool
	}{
		"held":              {"held", true},
		"held//./sub/":      {"held/sub", true},
		"held/back":         {"held/sub", true},
		"held/new/and/more": {"held/new/and/more", true},
		"held/sub/..":       {"held", true},
		"held/out":          {"other", false},
		"held/out/file":     {"other/file", false},
		"held/up/file":      {"other/file", false},
		"held/chain/new":    {"other/new", false},
		"held/dangling":     {"other/not-yet", false}, // the link's target does not exist, so a program that opens the link creates other/not-yet
		"held/far":          {"nowhere/at/all", false},
		"held/far/x":        {"nowhere/at/all/x", false},
		"held/deep/..":      {"other", false}, // the link deep leads to other/deep, so the .. after the link leads to other
		"held/deep/../file": {"other/file", false},
		"other/in/sub":      {"held/sub", true},
		"held/../heldback":  {"heldback", false},
		"held/loop":         {"", false},
		"held/new/../x":     {"", false},
		"other/file/x":      {"", false}, // other/file is not a directory
	} {
		got, err := policy.OnDisk(in(p))
		if want.leads == "" {
			assert.Error(t, err, p)
		} else {
			require.NoError(t, err, p)
			assert.Equal(t, in(want.leads), got, p)
		}
		perm := policy.Permission{Access: policy.AccessWrite, Path: in(p)}
		assert.Equal(t, want.held, policy.Covers(&held, perm, policy.OnDisk), p)
	}

	_, err := policy.OnDisk("held")
	assert.ErrorContains(t, err, "not absolute")
	if runtime.GOOS == "linux" {
		for _, p := range []string{"/proc/self/cwd/x", "/dev/stdin", "/dev/fd/0"} {
			_, err := policy.OnDisk(p)
			assert.ErrorContains(t, err, "differs for each process", p)
		}
	}

	// If a program replaces a directory of the permission set by a link, the set does not cover the
	// target of the link.
	sub := schemas.SessionPermissions{ReadDirs: []string{in("held/sub")}}
	require.NoError(t, os.Remove(in("held/sub")))
	require.NoError(t, os.Symlink(in("other"), in("held/sub")))
	assert.False(t, policy.Covers(&sub, policy.Permission{Access: policy.AccessRead, Path: in("held/sub/file")}, policy.OnDisk))
}

// randomTree makes a tree of directories and files. The tree has links that lead inside, outside
// and nowhere. randomTree returns a generator of paths into the tree.
func randomTree(t *testing.T, rng *rand.Rand, root string) func() string {
	names := []string{"a", "b", "aa", "ab"}
	dirs := []string{root, filepath.Dir(root)}
	for range 12 {
		p := dirs[rng.IntN(len(dirs))] + "/" + names[rng.IntN(len(names))]
		switch rng.IntN(6) {
		case 0, 1:
			if os.Mkdir(p, 0o755) == nil {
				dirs = append(dirs, p)
			}
		case 2:
			_ = os.WriteFile(p, nil, 0o600) // may fail, because a directory may have the same name
		default:
			target := dirs[rng.IntN(len(dirs))]
			if rng.IntN(2) == 0 {
				target += "/" + names[rng.IntN(len(names))] // the target of this link may not exist
			}
			if rng.IntN(2) == 0 {
				var err error
				target, err = filepath.Rel(filepath.Dir(p), target)
				require.NoError(t, err)
			}
			_ = os.Symlink(target, p)
		}
	}
	return func() string {
		p := dirs[rng.IntN(len(dirs))]
		for range 1 + rng.IntN(3) {
			p += "/" + append(names, "..", ".", "new")[rng.IntN(len(names)+3)]
		}
		return p
	}
}

// For each path at which the kernel can open or create a file, the permission set must cover the path if the
// file is in one of the set's directories, and must not cover it otherwise.
func TestContainmentAgreesWithTheKernel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	inside, outside, rooted := 0, 0, 0
	for range 150 {
		dir := trueTempDir(t) + "/w"
		require.NoError(t, os.MkdirAll(dir+"/root", 0o755))
		path := randomTree(t, rng, dir+"/root")
		set := schemas.SessionPermissions{WriteDirs: []string{dir + "/root"}}
		root, err := os.OpenRoot(dir + "/root")
		require.NoError(t, err)
		for range 40 {
			p := path()
			covered := policy.Covers(&set, policy.Permission{Access: policy.AccessWrite, Path: p}, policy.OnDisk)
			resolved, resolveErr := policy.OnDisk(p)
			if rel, err := filepath.Rel(dir+"/root", p); err == nil && !strings.Contains(p, "..") && filepath.IsLocal(rel) {
				if _, err := root.Stat(rel); err == nil {
					rooted++
					require.True(t, covered, "os.Root finds %s inside", p)
				}
			}
			where, made, err := kernelsView(p)
			if err != nil {
				continue // the kernel can neither open nor create a file at p
			}
			require.NoError(t, resolveErr, p)
			require.Equal(t, where, resolved, p)
			require.Equal(t, where == dir+"/root" || strings.HasPrefix(where, dir+"/root/"), covered, "%s is %s", p, where)
			if covered {
				inside++
			} else {
				outside++
			}
			if made {
				require.NoError(t, os.Remove(where))
			}
		}
		require.NoError(t, root.Close())
	}
	t.Logf("%d inside, %d outside, %d by os.Root", inside, outside, rooted)
	require.Greater(t, min(inside, outside, rooted), 200, "the tree is worth looking at")
}

// kernelsView opens or creates the file at p. It returns the file's true path and whether it was created.
func kernelsView(p string) (where string, made bool, err error) {
	if _, err := os.Stat(p); errors.Is(err, fs.ErrNotExist) {
		f, err := os.OpenFile(p, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", false, err
		}
		made = true
		if err := f.Close(); err != nil {
			return "", false, err
		}
	}
	where, err = filepath.EvalSymlinks(p)
	return where, made, err
}

// Apply removes no permission from a set. Adding a permission twice has the same result as adding it once.
func TestApplyIsMonotoneAndIdempotent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	segments := []string{"a", "ab", "b"}
	anyPath := func() string {
		p := ""
		for range rng.IntN(4) {
			p += "/" + segments[rng.IntN(len(segments))]
		}
		return p
	}
	anyPermission := func() policy.Permission {
		switch rng.IntN(7) {
		case 0:
			return policy.Permission{Access: policy.AccessNetwork}
		case 1, 2, 3:
			return policy.Permission{Access: policy.AccessRead, Path: "/" + strings.TrimPrefix(anyPath(), "/")}
		}
		return policy.Permission{Access: policy.AccessWrite, Path: "/" + strings.TrimPrefix(anyPath(), "/")}
	}
	several := func() []policy.Permission {
		perms := make([]policy.Permission, rng.IntN(4))
		for i := range perms {
			perms[i] = anyPermission()
		}
		return perms
	}
	lost := 0
	for range 5000 {
		before := policy.Apply(schemas.SessionPermissions{WorkingDir: anyPath()}, several()...)
		perms := several()
		after := policy.Apply(before, perms...)
		about := fmt.Sprintf("%+v and %v", before, perms)
		require.Equal(t, after, policy.Apply(after, perms...), about)
		for _, p := range perms {
			require.True(t, policy.Covers(&after, p, asWritten), "%s: %s", about, p)
			if p.Access == policy.AccessWrite {
				require.True(t, policy.Covers(&after, policy.Permission{Access: policy.AccessRead, Path: p.Path}, asWritten), about)
			}
		}
		for range 20 {
			p := anyPermission()
			if policy.Covers(&before, p, asWritten) {
				require.True(t, policy.Covers(&after, p, asWritten), "%s loses %s", about, p)
			} else {
				lost++
			}
			scope, err := policy.ExecScope(after, []string{p.String()}, asWritten)
			require.Equal(t, policy.Covers(&after, p, asWritten), err == nil, about)
			if err == nil {
				require.True(t, policy.Covers(&scope, p, asWritten), about)
				missing, err := policy.Missing(&after, []policy.Permission{p}, asWritten)
				require.NoError(t, err)
				require.Empty(t, missing)
			}
		}
	}
	require.Positive(t, lost)
}

// The same call with the same Seen must always get the same verdict. Therefore only the files named disk* and
// package gitstore may import packages that read the file system or the time.
func TestOnlyDiskReadsFiles(t *testing.T) {
	require.NoError(t, filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "disk") || strings.HasPrefix(name, "gitstore/") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, imp := range f.Imports {
			assert.False(t, slices.Contains([]string{`"os"`, `"io/fs"`, `"net"`, `"net/http"`, `"time"`, `"syscall"`, `"path/filepath"`, `"math/rand"`, `"github.com/nodbus/nod/actors/policy/gitstore"`}, imp.Path.Value), "%s imports %s", name, imp.Path.Value)
		}
		return nil
	}))
}

// nod does not read a file .git that is a pipe or a device, because reading it might never end.
func TestAGitFileThatIsNoFileIsNotRead(t *testing.T) {
	for name, write := range map[string]func(at string) error{
		"device": func(at string) error { return os.Symlink("/dev/zero", at) },
		"pipe":   func(at string) error { return syscall.Mkfifo(at, 0o600) },
	} {
		dir := t.TempDir()
		require.NoError(t, write(dir+"/.git"), name)
		assert.Equal(t, []string{dir}, policy.ThisDisk{}.Tops(dir), name)
	}
}
