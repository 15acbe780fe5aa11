package commands

import (
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// gitOption matches a line about an option in git's help. The line has the option's letter, its
// name or both, and the form of its value.
var gitOption = regexp.MustCompile(`(?m)^    (?:-(\w)(\[?[^\s,]*)(?:, )?)?(?:--((?:\[no-\])?[a-z0-9-]+))?(.*)$`)

// gitActs matches the help of an option that may make git start a program, write a file, sign, or
// use another configuration or repository.
var gitActs = regexp.MustCompile(`(?i)\b(?:exec\w*|command|program|gpg|sign\b|signed|signature|template-dir\w*|specific file|to this file|<file>.*output|config|pack>|gitdir|helper|external|pager|write\w*|strategy>|mailbox|editor|hook\w*)\b`)

// reviewedGit are options on the lists for git rules that are harmless although gitActs matches their help.
var reviewedGit = "signoff no-verify verify edit no-post-rewrite write-fetch-head write-commit-graph signature"

// The lists for git rules must agree with git's own help on which flags take the next word as their value.
// If a flag starts a program, signs, or writes a named file according to the help, no list may have it.
func TestRulesForGitAgreeWithGitsHelp(t *testing.T) {
	missing(t, "git")
	dir := repository(t)
	checked := 0
	for name, rule := range gitRules() {
		cmd := exec.Command("git", name, "-h")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C", "HOME="+dir)
		out, _ := cmd.CombinedOutput() // git exits with an error after printing its help
		for _, m := range gitOption.FindAllStringSubmatch(string(out), -1) {
			letter, attached, long, rest := m[1], m[2], strings.TrimPrefix(m[3], "[no-]"), m[4]
			form := attached + rest
			if long == "" && letter == "" {
				continue
			}
			if strings.HasPrefix(letter, "N") && strings.HasPrefix(attached, "UM") {
				continue
			}
			value, says, _ := strings.Cut(form, "  ")
			mandatory := strings.HasPrefix(value, " <") || strings.HasPrefix(value, " (") || strings.HasPrefix(value, " [(") || strings.HasPrefix(value, " ...")
			for _, flag := range []string{"-" + letter, "--" + long} {
				if flag == "-" || flag == "--" || slices.Contains(strings.Fields("--chmod --show-current-patch"), flag) {
					continue
				}
				known, next := rule.takes(flag)
				if !known {
					continue
				}
				checked++
				assert.True(t, mandatory || !next || flag == "--max-count", "git %s %s does not take the next word: %q", name, flag, form)
				if gitActs.MatchString(value+" "+says) && !slices.Contains(strings.Fields(reviewedGit), long) && !slices.Contains(strings.Fields(reviewedGit), flag) {
					t.Errorf("git %s %s is listed as harmless: %s", name, flag, form)
				}
			}
		}
	}
	assert.Greater(t, checked, 450)
}

func TestRulesForGitCoverListedFlags(t *testing.T) {
	bare := func(string) bool { return false }
	for _, line := range []string{
		"commit -m x", "commit -am x", "commit -m -x", "commit --message=-S", "push -u origin main", "push --force-with-lease", "log -5 --oneline --graph", "log -O.order -p", "log --bisect", "stash pop", "stash push -m x", "stash -u",
		"worktree add -b x ../x", "submodule update --init --recursive", "rebase -i HEAD~3", "rebase --no-stat", "clone --depth 1 https://x/y", "diff --no-color", "remote add x https://x/y", "--no-pager log", "bisect start", "tag -a v1 -m x", "fetch -pq", "grep -n x",
	} {

		assert.True(t, GitBounded(strings.Fields(line), bare), line)
	}
	for _, line := range []string{
		"-c a=b log", "-C /x log", "log --output=x", "log --outp=x", "diff --ext-diff", "diff --no-index a b", "log --show-signature", "commit -S", "commit -aS", "commit --gpg-sign", "clone -u x y", "clone -ux y", "clone --upload-pack=x y", "clone -c a=b x", "clone --template=x y",
		"rebase -x make", "rebase --exec make", "rebase -xmake", "rebase -s x", "merge -s x", "archive -o x HEAD", "archive --output=x", "archive --remote=x", "format-patch -o x", "bisect run make", "submodule foreach make", "submodule --quiet foreach make", "bundle create x", "config a b",
		"grep -O x", "grep --open-files-in-pager x", "tag -s x", "tag -u k x", "tag -v x", "push --receive-pack=x", "push --exec=x", "push --signed", "pull --upload-pack x", "fetch --upload-pack x", "fetch --up x", "difftool", "mergetool", "send-email x", "lfs pull", "x", "init --template=x", "init --separate-git-dir x",
		"log --decorate-refs -- --output=f", "log -- --output=f", "cherry-pick -S x", "cherry-pick --strategy=x", "am --directory=x -S", "cat-file --textconv x", "cat-file --filters x", "apply --unsafe-paths x", "apply --build-fake-ancestor x", "notes x", "worktree x", "hook run x", "maintenance run", "filter-branch", "daemon", "credential fill",
		"commit -m x -S", "commit --file x --gpg-sign=k",
	} {
		assert.False(t, GitBounded(strings.Fields(line), bare), line)
	}
	assert.True(t, GitBounded([]string{"log", "--output=x"}, func(w string) bool { return w == "--output=x" }), "the rule contains the flag")
}

// A git command whose subcommand has no list is covered only by a rule with all words of the command.
func TestRulesForGitKnowTheirSubcommands(t *testing.T) {
	missing(t, "git")
	out, err := exec.Command("git", "--list-cmds=main,others").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(out))
	for name := range maps.Keys(gitRules()) {
		if name != "reflog show" {
			assert.Contains(t, names, name)
		}
	}
	for _, name := range names {
		if _, ok := gitRules()[name]; !ok {
			assert.False(t, GitBounded([]string{name, "x"}, func(string) bool { return false }), name)
		}
	}
}
