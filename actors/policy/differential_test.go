package policy_test

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/internal/testprogram"
)

// scratch makes a home directory and a project directory. The project is a repository with the files that the
// allowed commands read.
func scratch(t *testing.T) (dir, homeDir string) {
	t.Helper()
	root := t.TempDir()
	dir, homeDir = filepath.Join(root, "work"), filepath.Join(root, "home")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "src", "docs"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "docs"), 0o755))
	require.NoError(t, os.MkdirAll(homeDir, 0o755))
	for _, name := range []string{"README.md", "main.go", "go.mod", "go.sum", "app.log", "a", "b", "a b", "src/main.go", "src/a.go", "docs/a b.md", "a.json", "file with spaces.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("{\"a\": 1}\nfunc x() {}\n"), 0o644))
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"commit", "-q", "-m", "one"}, {"branch", "feature"}, {"commit", "-q", "--allow-empty", "-m", "two"}, {"tag", "v1.2.3"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, environ(homeDir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "git %v: %s", args, out)
	}
	return dir, homeDir
}

// environ returns the environment of the commands. It turns git's optional locks off, so that git
// status does not write the index.
func environ(homeDir string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + homeDir, "GIT_OPTIONAL_LOCKS=0", "GIT_CONFIG_NOSYSTEM=1", "TMPDIR=" + homeDir,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x"}
}

// snapshot lists every file below dir with its mode and a hash of its content.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		fmt.Fprintf(&b, "%s %v %x\n", path, info.Mode(), sha256.Sum256(content))
		return nil
	}))
	return b.String()
}

// long is the test flag -long, with which the test runs every allowed command. .ci/run sets it.
var long = flag.Bool("long", false, "run all allowed commands, and not every third")

// No command that nod allows may change a file. The test runs the allowed commands of the corpus, of the fuzz
// seeds, of the harmless reads and of the traps, without network, in Bash and, if installed, in Zsh. Without
// -long it runs only every third command. At the end it runs a command that writes, to show that it would
// notice a change.
func TestAllowedCommandsChangeNothing(t *testing.T) {
	bashPath, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("left out: bash is not installed")
	}
	if exec.Command("unshare", "-rn", "true").Run() != nil {
		t.Skip("left out: this machine lets no test run without network (unshare -rn)")
	}
	shells := []string{bashPath}
	if zsh, err := exec.LookPath("zsh"); err == nil {
		shells = append(shells, zsh)
	} else {
		t.Log("Zsh is left out: it is not installed")
	}
	dir, homeDir := scratch(t)
	run := func(shell, command string) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, "unshare", "-rn", shell, "-c", command)
		cmd.Dir, cmd.Env, cmd.WaitDelay = dir, environ(homeDir), time.Second
		_ = cmd.Run() // the command may fail, because the test only looks for changed files
	}
	commands := append([]string(nil), seeds...)
	for _, c := range corpusCommands(t) {
		commands = append(commands, c.command)
	}
	commands = append(commands, reads()...)
	for _, trap := range traps() {
		commands = append(commands, trap.allow...)
	}
	p := preset(t, policy.PresetReaders)
	before := snapshot(t, filepath.Dir(dir))
	ran := 0
	for i, c := range commands {
		if !*long && i%3 > 0 {
			continue
		}
		raw := bash(t, c)
		raw.Cwd, raw.Project, raw.Home = dir, dir, homeDir
		if p.Check(raw).Effect != policy.Allow {
			continue
		}
		for _, shell := range shells {
			run(shell, c)
			ran++
		}
		if after := snapshot(t, filepath.Dir(dir)); after != before {
			assert.Fail(t, "files are changed", "%s: %v", c, changed(before, after))
			before = after
		}
	}
	t.Logf("ran %d commands", ran)
	require.Greater(t, ran, 10)
	run(bashPath, "touch pwned")
	assert.NotEqual(t, before, snapshot(t, filepath.Dir(dir)), "a change is not noticed")
}

// nod adds options to a git command that it allows, so that git runs no program that the repository's
// configuration names. The test checks this for every subcommand that a preset allows. It also checks that
// git does run the test's programs if the options are missing.
func TestHardenedGitReadsRunNoConfiguredProgram(t *testing.T) {
	dir, homeDir := scratch(t)
	ran := filepath.Join(homeDir, "ran")
	program := filepath.Join(homeDir, "program")
	testprogram.Write(t, program, "#!/bin/sh\necho \"$0 $*\" >> "+ran+"\ncat \"$1\" 2>/dev/null\nexit 0\n")
	run := func(command string) string {
		cmd := exec.Command("bash", "-c", command)
		cmd.Dir = dir
		cmd.Env = slices.DeleteFunc(environ(homeDir), func(e string) bool { return strings.HasPrefix(e, "GIT_OPTIONAL_LOCKS") })
		out, _ := cmd.CombinedOutput() // some commands fail, such as git stash show without a stash
		return string(out)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte("changed\n"), 0o644))
	run("git checkout -q -b side HEAD~1; echo side > a; git commit -qam side; git checkout -q main; echo main > a; git commit -qam main; git merge -q side; echo both > a; git commit -qam merge")
	run("git stash push -q; git stash apply -q")
	hooks := filepath.Join(dir, ".git", "hooks")
	for _, hook := range []string{"post-index-change", "fsmonitor-watchman"} {
		run("cp " + program + " " + filepath.Join(hooks, hook))
	}
	for _, setting := range []string{"core.fsmonitor " + program, "core.pager " + program, "diff.external " + program, "diff.go.textconv " + program, "log.showSignature true", "gpg.program " + program, "pager.log true", "log.diffMerges remerge", "merge.own.driver " + program} {
		run("git config " + setting)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".git", "info", "attributes"), []byte("*.go diff=go\na merge=own\n"), 0o644))
	p := preset(t, policy.PresetReaders)
	reads := []string{"git status", "git status -sb", "git diff", "git diff HEAD~1", "git log -1 -p", "git log -1 --stat", "git show HEAD", "git show HEAD:main.go", "git blame main.go", "git reflog show -p", "git reflog", "git stash show -p", "git stash list", "git shortlog HEAD", "git grep -n x", "git ls-files -m", "git ls-tree HEAD",
		"git cat-file -p HEAD:main.go", "git rev-list HEAD", "git rev-parse HEAD", "git branch -vv", "git tag -l", "git describe --always --dirty", "git for-each-ref", "git worktree list", "git merge-base HEAD main", "git name-rev HEAD", "git remote -v", "git count-objects", "git check-ignore x", "git log -p -1 -- main.go", "git log -m -1", "git log -m -p -1", "git show -m HEAD", "git show --diff-merges=on HEAD", "git reflog show -p -m", "git diff --stat", "git diff --cached"}
	bare := 0
	found := strings.Join(policy.ThisDisk{}.GitPrograms(policy.Call{Tops: []string{dir}, Home: homeDir}), ", ")
	for _, name := range []string{"core.fsmonitor", "the pager", "diff.external", "a textconv", "log.showSignature", "log.diffMerges", "the hook"} {
		assert.Contains(t, found, name)
	}
	for _, read := range reads {
		c := bash(t, read)
		c.Cwd, c.Project, c.Home = dir, dir, homeDir
		line, changed := p.Harden(c)
		require.True(t, changed, read)
		run("touch main.go")
		out := run(line)
		assert.NotContains(t, out, "unknown option", line)
		assert.NotContains(t, out, "usage:", line)
		assert.NoFileExists(t, ran, "%s runs a configured program", line)
		_ = os.Remove(ran) // remove the file before the next line is checked
		run("touch main.go")
		run(read)
		if os.Remove(ran) == nil {
			bare++
		}
	}
	t.Logf("without hardening, %d of %d reads run a configured program", bare, len(reads))
	assert.Greater(t, bare, 5, "the test would not notice a program")
}

func changed(before, after string) (lines []string) {
	for _, l := range strings.Split(after, "\n") {
		if !strings.Contains(before, l+"\n") {
			lines = append(lines, l)
		}
	}
	return lines
}

// corpusCommands returns the commands of the corpus, or nil if there is no corpus.
func corpusCommands(t *testing.T) []shellCase {
	t.Helper()
	if _, err := os.Stat(filepath.Join(corpusDir(), "shell.tsv")); err != nil {
		t.Logf("the corpus is left out: %v", err)
		return nil
	}
	return shellCases(t)
}

func TestFishReadsAllowedWordsAsBashDoes(t *testing.T) {
	if _, err := exec.LookPath("fish"); err != nil {
		t.Skip("left out: fish is not installed")
	}
	p := preset(t, policy.PresetReaders)
	pieces := []string{`'`, `"`, `\`, `x`, ` `, `;`, `2e`, `n`}
	var words []string
	for i := range 8 * 8 * 8 * 8 {
		words = append(words, pieces[i%8]+pieces[i/8%8]+pieces[i/64%8]+pieces[i/512])
	}
	words = append(words, `'x\' 'y; echo z; echo '`, `'x\'; echo z; echo '`, `'a\\' 'b; echo z; '`, `a\x2eb`, `'\\n'`, `"\\n"`, `"a\nb"`, `'a\.b'`, `"it's"`, `'"'`)
	var allowed []string
	for _, w := range words {
		if line := "printf '%s,' a" + w; verdict(p, line).Effect == policy.Allow {
			allowed = append(allowed, line)
		}
	}
	require.Greater(t, len(allowed), 100)
	home := t.TempDir()
	run := func(shell, script string) string {
		cmd := exec.Command(shell, "-c", script)
		cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LC_ALL=C.UTF-8"}, home
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	script := strings.Join(allowed, "\necho\n")
	inBash, inFish := strings.Split(run("bash", script), "\n"), strings.Split(run("fish", script), "\n")
	for i := range min(len(inBash), len(inFish)) {
		require.Equal(t, inBash[i], inFish[i], "near line %d of %d", i, len(allowed))
	}
	require.Len(t, inFish, len(inBash))
	t.Logf("%d allowed lines", len(allowed))
	assert.NotEqual(t, run("bash", `printf '%s' 'x\' 'y'`), run("fish", `printf '%s' 'x\' 'y'`), "the test would not notice a difference")
}
