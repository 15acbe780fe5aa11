package contain

import (
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents"
)

const marker = "the-secret-itself"

// dangerous returns a rig whose project contains secrets, protected files and a git repository.
func dangerous(t *testing.T) *rig {
	r := newRig(t)
	git := osexec.Command("git", "init", "-q", "-b", "main", r.project)
	git.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + r.home}
	out, err := git.CombinedOutput()
	require.NoError(t, err, string(out))
	r.file(".git/config", "[core]\n\trepositoryformatversion = 0\n\thooksPath = tools/hooks\n[remote \"origin\"]\n\turl = https://ann:"+marker+"@example.com/x\n[credential]\n\thelper = !echo "+marker+"\n[filter \"x\"]\n\tclean = sh tools/clean.sh\n[include]\n\tpath = ../shared.gitconfig\n")
	r.file("shared.gitconfig", "[core]\n")
	r.file(".git/hooks/pre-commit", "exit 0\n")
	r.file("tools/hooks/pre-commit", "exit 0\n")
	r.file("tools/clean.sh", "cat\n")
	r.file("main.txt", "plain\n")
	for _, name := range []string{".env", "deep/er/.env", "deep/key.pem", ".ssh/id"} {
		r.file(name, marker)
	}
	for _, name := range protectedFiles {
		r.file(name, "original")
	}
	require.NoError(t, os.Link(r.project+"/.env", r.project+"/copy-of-env"))
	require.NoError(t, os.Link(r.project+"/.mcp.json", r.project+"/copy-of-mcp"))
	r.file("config/prod", marker)
	require.NoError(t, os.Symlink("../../config/prod", r.project+"/deep/er/x.pem"))
	r.file(r.outside+"/file", marker)
	r.file(r.home+"/.ssh/id", marker)
	r.file(r.home+"/.netrc", marker)
	r.file(r.home+"/.gitconfig", "[user]\n\tname = Ann\n\temail = ann@example.com\n[credential]\n\thelper = "+marker+"\n")
	require.NoError(t, os.Symlink(r.outside, r.project+"/way-out"))
	return r
}

var protectedFiles = []string{".mcp.json", ".envrc", "AGENTS.md", ".claude/settings.json", ".vscode/tasks.json", "sub/.vscode/tasks.json", "sub/deep/.claude/hooks/x.sh", ".github/workflows/ci.yml", ".husky/pre-push", ".nod/settings.json"}

// snapshot returns the names and contents of all files that a contained command must not change.
func (r *rig) snapshot() map[string]string {
	all := map[string]string{}
	for _, dir := range []string{r.project, r.home, r.outside} {
		err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || strings.Contains(p, "/allowed") {
				return err
			}
			data, _ := os.ReadFile(p)
			info, err := e.Info()
			all[p] = string(data) + info.Mode().String()
			return err
		})
		require.NoError(r.t, err)
	}
	return all
}

func eachLevel(t *testing.T, f func(t *testing.T, level Level)) {
	for _, level := range []Level{Namespaces, LandlockAlone} {
		t.Run(level.String(), func(t *testing.T) {
			needLevel(t, LandlockAlone)
			if level == LandlockAlone && landlockABI() < abiTruncate {
				t.Skipf("this kernel has version %d of Landlock, and the test needs %d", landlockABI(), abiTruncate)
			}
			f(t, level)
		})
	}
}

func TestNoActEscapes(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		r := dangerous(t)
		r.level = level
		path, abstract, tcp := r.listeners()
		before := r.snapshot()
		acts := [][]string{
			{"read", r.outside + "/file"}, {"read", "way-out/file"}, {"read", "/proc/self/root" + r.outside + "/file"}, {"read", "/proc/1/root" + r.outside + "/file"},
			{"read", "/proc/1/environ"}, {"read", "/proc/" + strconv.Itoa(os.Getpid()) + "/environ"}, {"read", "/etc/shadow"}, {"list", r.outside}, {"read", "/proc/1/fd/3"}, {"read", "/proc/1/mem"},
			{"read", r.home + "/.ssh/id"}, {"read", r.home + "/.netrc"}, {"list", "/root/.ssh"}, {"list", "/sys/kernel/debug"}, {"list", "/run/user"},
			{"read", ".env"}, {"read", "deep/er/.env"}, {"read", "deep/key.pem"}, {"list", ".ssh"}, {"read", ".ssh/id"}, {"read", "copy-of-env"}, {"read", "config/prod"}, {"read", "deep/er/x.pem"},
			{"write", r.outside + "/new"}, {"write", "way-out/new"}, {"append", r.outside + "/file"}, {"write", "/usr/nod-test"}, {"write", "/etc/nod-test"}, {"write", "/nod-test"},
			{"link", ".env", "allowed-env"}, {"link", "copy-of-env", "allowed-env2"}, {"rename", ".env", "allowed-env3"}, {"exchange", ".env", "main.txt"},
			{"link", ".mcp.json", "allowed-mcp"}, {"append", "copy-of-mcp"}, {"truncate", "copy-of-mcp"}, {"remove", ".claude"}, {"rename", ".claude", "allowed-claude"},
			{"write", ".claude/new"}, {"mkdir", ".claude/commands"}, {"tmpfile", ".claude", ".claude/new"}, {"symlink", "x", ".claude/new"},
			{"rename", "main.txt", ".mcp.json"}, {"link", "main.txt", ".claude/new"}, {"exchange", "main.txt", "AGENTS.md"}, {"chmod", "AGENTS.md", "777"},
			{"append", ".git/config"}, {"rename", ".git", "allowed-git"}, {"rename", "main.txt", ".git/config"}, {"remove", ".git/config"}, {"write", ".git/hooks/post-checkout"}, {"append", ".git/hooks/pre-commit"},
			{"rename", ".git/hooks", ".git/allowed-hooks"}, {"append", "tools/hooks/pre-commit"}, {"write", "tools/hooks/post-commit"}, {"append", "tools/clean.sh"}, {"append", "shared.gitconfig"}, {"rename", "tools/hooks", "allowed-hooks"},
			{"mount", ".", "deep"}, {"mount", "main.txt", ".env"}, {"umount", r.project + "/.env"}, {"umount", "/proc"}, {"remount", "/"}, {"opentree"}, {"chroot", "."},
			{"unshare"}, {"clone"}, {"clone3"}, {"setns"}, {"ptrace"}, {"vmread"}, {"getfd"}, {"iouring"}, {"keyctl"}, {"bpf"}, {"perf"}, {"userfaultfd"}, {"handle"}, {"mknod", "allowed-disk"},
			{"socket", "2", "3"}, {"socket", "10", "3"}, {"socket", "16", "3"}, {"socket", "17", "3"}, {"socket", "40", "1"}, {"socket", "38", "5"}, {"socket", "44", "3"},
			{"type", "0x5412"}, {"type", "0x541c"}, {"type", "0xffffffff00005412"},
			{"suid", "allowed-suid"}, {"chmod", "main.txt", "4755"}, {"core"}, {"privileges"}, {"hostname"}, {"files"},
			{"dial", "tcp", tcp}, {"dial", "udp", "192.0.2.1:53"}, {"dial", "tcp", "192.0.2.1:80"}, {"dial", "unix", abstract}, {"dial", "unix", path},
			{"signal", strconv.Itoa(os.Getpid())}, {"signal", strconv.Itoa(os.Getppid())},
		}
		for _, p := range protectedFiles {
			acts = append(acts, []string{"append", p}, []string{"truncate", p}, []string{"remove", p}, []string{"rename", "main.txt", p}, []string{"link", p, "allowed-" + filepath.Base(p)})
		}
		if level == LandlockAlone { // Landlock restricts no changes of file modes, and cannot hide names in a directory that the command may list
			acts = slices.DeleteFunc(acts, func(a []string) bool {
				return a[0] == "chmod" && a[1] == "AGENTS.md" || a[0] == "list" && a[1] == ".ssh"
			})
		}
		for i, said := range r.acts(acts) {
			assert.NotEmpty(t, said, "%v succeeded", acts[i])
		}
		assert.Equal(t, before, r.snapshot(), "an act left a trace")
	})
}

// listeners starts three servers outside the container. They listen on a Unix socket in the project,
// on an abstract Unix socket, and on TCP.
func (r *rig) listeners() (path, abstract, tcp string) {
	path, abstract = "allowed.sock", "@nod-contain-"+strconv.Itoa(os.Getpid())+filepath.Base(r.top)
	for _, at := range [][2]string{{"unix", r.project + "/" + path}, {"unix", abstract}, {"tcp", "127.0.0.1:0"}} {
		l, err := net.Listen(at[0], at[1])
		require.NoError(r.t, err)
		r.t.Cleanup(func() { l.Close() })
		tcp = l.Addr().String()
	}
	return path, abstract, tcp
}

func TestPermittedActsWork(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		r := dangerous(t)
		r.level = level
		r.file("src/a.txt", "a")
		acts := [][]string{
			{"read", "main.txt"}, {"append", "main.txt"}, {"write", "src/new"}, {"rename", "src/new", "src/new2"}, {"link", "src/new2", "src/new3"}, {"mkdir", "src/dir"}, {"tmpfile", "src", "src/unnamed"},
			{"read", ".claude/settings.json"}, {"read", "AGENTS.md"}, {"read", "tools/clean.sh"}, {"read", "/etc/passwd"}, {"read", "/proc/self/status"}, {"write", "/dev/null"}, {"remove", "src/dir"},
		}
		if level == Namespaces {
			acts = append(acts, []string{"write", "new.txt"}, []string{"write", "/tmp/x"}, []string{"write", r.home + "/x"}, []string{"read", ".git/config"}, []string{"read", r.home + "/.gitconfig"})
		}
		for i, said := range r.acts(acts) {
			assert.Empty(t, said, "%v failed", acts[i])
		}
		assert.NoFileExists(t, r.home+"/x")
		data, err := os.ReadFile(r.project + "/src/new2")
		require.NoError(t, err)
		assert.Equal(t, "bad", string(data))
	})
}

// No program in a container can print a secret. The test tries two secrets by default, and six with
// the flag -long.
func TestNoProgramPrintsASecret(t *testing.T) {
	secrets := []string{".env", "deep/key.pem"}
	if *long {
		secrets = append(secrets, "deep/er/.env", "copy-of-env", "config/prod", ".git/config")
	}
	eachLevel(t, func(t *testing.T, level Level) {
		programs := []string{
			"cat %s", "head %s", "tail %s", "grep . %s", "sed p %s", "awk 1 %s", "dd if=%s status=none", "od -c %s | tr -d ' \\n0123456789'", "cp %s /dev/stdout", "tar cf - %s", "gzip -c %s | gzip -dc",
			"base64 %s | base64 -d", "sort %s", "cut -c1- %s", "tee < %s", "rev %s | rev", "paste %s", "nl %s", "fold -w 100 %s", "diff %s /dev/null", "cmp -l %s /dev/null; cat < %[1]s", "xargs < %s",
			"while read -r l; do echo \"$l\"; done < %s; read l < %[1]s; echo $l", "find %s -exec cat {} +", "python3 -c 'print(open(\"%s\").read())'", "perl -pe 1 %s", "node -e 'console.log(require(\"fs\").readFileSync(\"%s\",\"utf8\"))'",
			"git diff --no-index /dev/null %s", "git add -f %s; git show :%[1]s", "ln -s %s allowed-l; cat allowed-l", "cd $(dirname %s); cat ./$(basename %[1]s)", "grep -r . $(dirname %s) | grep %[1]s",
		}
		r := dangerous(t)
		r.level = level
		r.file("open.txt", marker)
		script := func(file string) string {
			var all strings.Builder
			for _, p := range programs {
				all.WriteString("(" + strings.ReplaceAll(strings.ReplaceAll(p, "%s", file), "%[1]s", file) + ") 2>/dev/null; echo\n")
			}
			return all.String()
		}
		plain := r.sh(script("open.txt"))
		assert.GreaterOrEqual(t, strings.Count(plain.out, marker), 24, "the programs do read: %s %s", plain.out, plain.err)
		for _, secret := range secrets {
			require.NoError(t, os.Remove(r.project+"/open.txt"))
			for i, p := range strings.Split(r.sh(script(secret)).out, "\n") {
				assert.NotContains(t, p, marker, "%s: line %d", secret, i)
			}
			r.file("open.txt", marker)
		}
		res := r.sh("env; cat ~/.gitconfig; cat /proc/*/environ; git config --list; git log; find / -xdev -name id 2>/dev/null | xargs cat")
		assert.NotContains(t, res.out, marker)
		assert.Contains(t, res.out, "user.name=Ann")
	})
}

// A mount can protect only a file that exists. Run therefore takes away protected files that the
// command created.
func TestNewProtectedFilesAreTakenAway(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		r := dangerous(t)
		r.level = level
		require.NoError(t, os.RemoveAll(r.project+"/.vscode"))
		require.NoError(t, os.Symlink("main.txt", r.project+"/sub/.mcp.json"))
		res := r.sh(`mkdir .vscode new new/er; echo x > .vscode/tasks.json; echo x > new/er/.envrc; mkdir sub2; mv sub sub3; mkdir sub; echo x > sub/AGENTS.md
			echo x > .git/commondir; echo y > .git/config.worktree; git init -q fine; git init -q new/bad; git -C new/bad config core.fsmonitor ./x; git init -q --bare new/bare; echo ok > new/ok.txt`)
		if level == LandlockAlone { // the project's top directory contains protected names, so the command can create nothing in it
			before := r.snapshot()
			r.file("src/a.txt", "a")
			res = r.sh(`mkdir src/.vscode src/er; echo x > src/.vscode/tasks.json; echo x > src/er/.envrc; git init -q src/fine; git init -q src/bad; git -C src/bad config core.fsmonitor ./x; echo ok > src/ok.txt`)
			require.Zero(t, res.code, res.err)
			for _, gone := range []string{"src/.vscode", "src/er/.envrc", "src/bad/.git"} {
				assert.NoDirExists(t, r.project+"/"+gone)
				assert.NoFileExists(t, r.project+"/"+gone)
				assert.Contains(t, res.Undone, r.project+"/"+gone)
			}
			assert.FileExists(t, r.project+"/src/ok.txt")
			require.NoError(t, os.RemoveAll(r.project+"/src"))
			assert.Equal(t, before, r.snapshot())
			return
		}
		require.Zero(t, res.code, res.err)
		for _, gone := range []string{".vscode", "new/er/.envrc", "sub/AGENTS.md", ".git/commondir", ".git/config.worktree", "new/bad/.git", "new/bare/HEAD"} {
			_, err := os.Lstat(r.project + "/" + gone)
			assert.ErrorIs(t, err, os.ErrNotExist, gone)
			assert.Contains(t, res.Undone, r.project+"/"+gone)
		}
		for _, stays := range []string{"fine/.git/HEAD", "new/ok.txt", ".git/HEAD", ".git/hooks/pre-commit"} {
			assert.FileExists(t, r.project+"/"+stays)
		}
		link, err := os.Readlink(r.project + "/sub/.mcp.json")
		require.NoError(t, err)
		assert.Equal(t, "main.txt", link)
		assert.Contains(t, res.Changed, "new/ok.txt")
	})
}

// Some files are secret because of their path. A command cannot move such a file so that a later
// command sees it.
func TestASecretIsHiddenFromLaterCommandsToo(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		r := dangerous(t)
		r.level = level
		for _, name := range []string{".docker/config.json", "app/.docker/config.json", ".config/gh/hosts.yml", "shared/dev.txt", "shared/more/prod.txt", "deep/plain.txt"} {
			r.file(name, marker)
		}
		r.file("deep/plain.txt", "plain")
		r.file("dk/config.json", marker)
		r.file("conf/gh/hosts.yml", marker)
		require.NoError(t, os.Symlink("../dk", r.project+"/deep/.docker"))
		require.NoError(t, os.Symlink(r.project+"/conf", r.project+"/app/.config"))
		require.NoError(t, os.Symlink("../shared/dev.txt", r.project+"/app/.env"))
		require.NoError(t, os.Symlink("shared/more", r.project+"/by"))
		require.NoError(t, os.Symlink("by/prod.txt", r.project+"/.env.prod"))
		for _, line := range []string{
			"true", "mv .docker a; mv app/.docker b; mv .config c; mv .config/gh d; mv shared e; mv shared/more f; mv app g; mv config h; mv deep i",
			"rm -f app/.env .env.prod by deep/er/x.pem deep/.docker app/.config; mv dk dk2; mv conf conf2",
			"ln -sf /dev/null app/.env; ln -sfn tools by; echo x > .env.prod; mv app/.env j; mkdir -p k/l/m; mv app k/l/m; mv deep/er k",
			"rm -rf app/.docker .docker .config shared",
		} {
			r.sh(line)
			res := r.sh("grep -Rsl " + marker + " .")
			assert.Empty(t, res.out, "files with the secret that a command sees after %s", line)
		}
		res := r.sh("mkdir -p here; cp deep/plain.txt here; mv here there; cat there/plain.txt")
		if level == Namespaces { // with Landlock alone, the command can create nothing in this project
			assert.Equal(t, "plain", res.out, res.err)
		}
	})
}

// A command may run for hours. Run does not wait for its end to move away new protected files.
func TestALongCommandIsReviewedWhileItRuns(t *testing.T) {
	r := dangerous(t)
	r.file("shared/dev.txt", marker)
	require.NoError(t, os.Mkdir(r.project+"/was", 0o755))
	require.NoError(t, os.Symlink("../shared/dev.txt", r.project+"/was/.env.prod"))
	r.change = func(o *order) { o.Spec.ReviewEvery, o.Spec.Limits.Time = 50*time.Millisecond, 20*time.Second }
	cmd, file := r.nod("sh", "-c", `mkdir -p new/.claude; echo bad > new/.claude/settings.json; echo bad > new/AGENTS.md; rm was/.env.prod; echo good > new/made.txt
		until [ ! -e new/.claude/settings.json ] && [ ! -e new/AGENTS.md ] && [ -L was/.env.prod ]; do sleep 0.02; done; echo gone; cat was/.env.prod; echo again > new/AGENTS.md
		until [ ! -e new/AGENTS.md ]; do sleep 0.02; done; echo gone again`)
	res := r.finish(cmd, file)
	assert.Equal(t, "gone\ngone again\n", res.out, res.err)
	for _, gone := range []string{"new/AGENTS.md", "new/.claude/settings.json"} {
		assert.NoFileExists(t, r.project+"/"+gone)
	}
	assert.FileExists(t, r.project+"/new/made.txt")
	assert.Contains(t, res.Undone, r.project+"/new/AGENTS.md")
	assert.Contains(t, res.Changed, "new/made.txt")
}

// A command cannot rename a mount point, but can rename a directory above it. The mount must
// still protect its file.
func TestProtectedFilesCannotBeReplacedByWayOfTheirDirectories(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		r := dangerous(t)
		r.level = level
		r.file("far/a/.claude/settings.json", "{}")
		r.file("far/a/AGENTS.md", "good")
		r.file("other/workflows/ci.yml", "evil")
		r.file("swap/.github/workflows/ci.yml", "good")
		r.file("swap/tmpl/workflows/ci.yml", "evil")
		out, err := osexec.Command("git", "init", "-q", r.project+"/far/repo").CombinedOutput()
		require.NoError(t, err, string(out))
		before := r.snapshot()
		res := r.sh(`mv far gone; mkdir -p far/a/.claude far/repo; echo evil > far/a/.claude/settings.json; echo evil > far/a/AGENTS.md
			cp -r gone/repo/.git far/repo/.git; echo evil > far/repo/.git/hooks/pre-commit; mv swap/.github swap/gone; mv swap/tmpl swap/.github`)
		if level == LandlockAlone { // with Landlock alone, the command cannot rename files in a directory that contains protected names at any depth
			assert.Equal(t, before, r.snapshot())
			return
		}
		for _, gone := range []string{"far/a/.claude", "far/a/AGENTS.md", "far/repo/.git"} {
			assert.NoFileExists(t, r.project+"/"+gone)
			assert.NoDirExists(t, r.project+"/"+gone)
			assert.Contains(t, res.Undone, r.project+"/"+gone, res.err)
		}
		if data, err := os.ReadFile(r.project + "/swap/.github/workflows/ci.yml"); err == nil {
			assert.NotContains(t, string(data), "evil")
		}
	})
}

func TestARepositoryCanBeCommittedTo(t *testing.T) {
	r := dangerous(t)
	res := r.sh(`git add main.txt && git commit -qm one --no-verify && git checkout -qb other && git log --format=%an && git stash list && git status --short | head -2`)
	require.Zero(t, res.code, res.err)
	assert.Contains(t, res.out, "Ann")

	tree := r.top + "/projects/tree"
	out, err := osexec.Command("git", "-C", r.project, "worktree", "add", "-q", tree, "-b", "linked").CombinedOutput()
	require.NoError(t, err, string(out))
	main := r.project
	r.project = tree
	res = r.sh(`echo x > f && git add f && git commit -qm two --no-verify && git log --format=%s && git branch
		echo bad >> ` + main + `/.git/config; echo bad > ` + main + `/.git/hooks/x; echo bad > ` + main + `/main.txt; git config user.name bad; cat ` + main + `/.env ` + main + `/.git/config; rm -f .git; echo gitdir: /x > .git`)
	assert.Contains(t, res.out, "two\none\n", res.err)
	assert.NotContains(t, res.out, marker)
	assert.NoFileExists(t, main+"/.git/hooks/x")
	for _, f := range []string{main + "/.git/config", main + "/main.txt", tree + "/.git"} {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		assert.NotContains(t, string(data), "bad")
	}
}

func TestAReadOnlyProjectIsNotChanged(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		r := dangerous(t)
		r.level = level
		r.change = func(o *order) { o.Spec.ReadOnly = true }
		before := r.snapshot()
		works := "git status --short"
		if level == LandlockAlone { // the command cannot read git's configuration, because the file contains a password
			works = "ls"
		}
		res := r.sh("cat main.txt; echo x > new; echo x >> main.txt; rm -rf sub; mkdir d; " + works + " > $TMPDIR/s && echo ok; cat .env")
		assert.Contains(t, res.out, "plain\n")
		assert.Contains(t, res.out, "ok\n", res.err)
		assert.NotContains(t, res.out, marker)
		assert.Equal(t, before, r.snapshot())
	})
}

func TestADirectoryAsAStreamIsRefused(t *testing.T) {
	eachLevel(t, func(t *testing.T, level Level) {
		r := newRig(t)
		r.level = level
		dir, err := os.Open("/")
		require.NoError(t, err)
		defer dir.Close()
		cmd, file := r.nod("true")
		cmd.Stdin = dir
		res := r.finish(cmd, file)
		assert.Equal(t, agents.CodeRefused, res.code)
		assert.Contains(t, res.err, "a standard stream is a directory")
	})
}

// A command could leave a symbolic link in the session's /tmp. nod still has the host's file system mounted
// while it builds the file system of the next command. The link must not lead nod to a path of the host.
func TestALinkInTmpDoesNotLeadOutside(t *testing.T) {
	r := newRig(t)
	r.change = func(o *order) { o.Spec.Scratch = r.top + "/scratch" }
	dir, err := os.MkdirTemp("/tmp", "nod-contain-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	r.project = dir + "/project"
	require.NoError(t, os.Mkdir(r.project, 0o755))
	require.NoError(t, os.MkdirAll(r.top+"/scratch/tmp", 0o700))
	require.NoError(t, os.Symlink("/.old"+r.outside, r.top+"/scratch/tmp/"+filepath.Base(dir)))
	res := r.sh("echo it ran")
	assert.Equal(t, agents.CodeRefused, res.code)
	entries, err := os.ReadDir(r.outside)
	require.NoError(t, err)
	assert.Empty(t, entries)
}
