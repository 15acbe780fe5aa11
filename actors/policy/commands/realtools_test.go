package commands

import (
	"context"
	"encoding/json"
	flags "flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// probe tells the tests how to check with a real program whether a flag takes the next word as its
// value. The words 7 and 8 follow the flag. If the program complains about 7 as an operand, the flag
// has not taken 7. If the program complains only about 8, the flag has taken 7.
type probe struct {
	before []string          // words between the command's name and the flag
	after  []string          // words after the word 8
	value  map[string]string // the word to use in place of 7, for flags that accept only certain values
	waits  []string          // flags that make the program wait for files
	fewest int               // the smallest number of the entry's flags that the program must know
}

// complaint matches a program's complaint about one of the words 7, 8 and 9. refusal matches
// the complaint about an unknown flag. badValue matches go's complaint about a flag's value.
var (
	complaint = regexp.MustCompile(`(?:cannot open file .|ambiguous argument '|pathspec '|bad revision '|no such path '|can't read |Could not open (?:file )?|cannot read: |cannot open '?|cannot access '?|cannot stat '?|No rule to make target '|paths must precede expression: .|(?:package|directory) |invalid object name '?|extra operand .|stat: |not found: |failed to open '|failed to resolve '|Not a valid object name |unable to find )(x?[789])\b|(?m:^|: |')(x?[789])(?:  \[error opening dir|'?: (?:IO error for operation on .*: )?(?:No such file|stat: No such|No such file or directory|cannot open))`)
	refusal   = regexp.MustCompile(`(?i)unrecognized|invalid option|unknown option|unknown switch|unexpected argument|found argument|illegal option|unknown predicate|not defined|unknown option`)
	badValue  = regexp.MustCompile(`invalid value "7" for flag|flag needs an argument`)
)

// takes runs a program with a flag, and reports whether the flag takes the next word. If the program
// does not know the flag or does not mention the words, known is false.
func takes(t *testing.T, dir string, argv []string, word string) (next, known bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_PAGER=cat", "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir, "GOFLAGS=-mod=mod", "GOWORK=off", "NO_COLOR=1")
	out, _ := cmd.CombinedOutput() // most runs fail, because the words are no files
	text := string(out)
	about := map[string]bool{}
	for _, m := range complaint.FindAllStringSubmatch(text, -1) {
		about[m[1]+m[2]] = true
	}
	switch {
	case refusal.MatchString(text) && !about[word] && !about["8"]:
		return false, false
	case strings.Contains(text, "extra operand"):
		return false, true
	case about[word]:
		return false, true
	case about["8"] || about["9"] || badValue.MatchString(text):
		return true, true
	}
	return false, false
}

// long is the test flag -long. With -long, the tests try all flags of the tables with the real
// tools, as .ci/run does.
var long = flags.Bool("long", false, "try the flags of git, npm, the text tools and the runners with the tools themselves")

// onlyLong skips the test without -long.
func onlyLong(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("left out: it starts a program for each flag of the tables; -long runs it, as in .ci/run")
	}
}

// missing skips the test if a program is not installed; in CI, it fails the test.
func missing(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed: .ci/run installs it", program)
		}
		t.Skipf("left out: %s is not installed", program)
	}
}

// flagWords returns the flags of an entry as a user writes them. The map's value tells whether,
// according to the entry, the flag takes the next word as its value.
func (c *Command) flagWords() map[string]bool {
	out := map[string]bool{}
	for _, l := range c.short + c.tail {
		out["-"+string(l)] = false
	}
	for _, l := range c.value {
		out["-"+string(l)] = true
	}
	for name, kind := range c.longs {
		dashes := "--"
		if c.oneDash {
			dashes = "-"
		}
		out[dashes+name] = kind == ':' || kind == '!'
	}
	return out
}

func checkFlags(t *testing.T, dir string, name []string, c *Command, p probe) {
	t.Helper()
	words := c.flagWords()
	known := 0
	for _, flag := range slices.Sorted(maps.Keys(words)) {
		word := "7"
		if slices.Contains(p.waits, flag) {
			continue
		}
		if v, ok := p.value[flag]; ok {
			word = v
		}
		argv := slices.Concat(name, p.before, []string{flag, word, "8"}, p.after)
		next, sure := takes(t, dir, argv, word)
		if !sure {
			continue
		}
		known++
		assert.Equal(t, words[flag], next, "%s takes the next word", strings.Join(argv, " "))
	}
	t.Logf("%s: %d of %d flags", strings.Join(name, " "), known, len(words))
	assert.GreaterOrEqual(t, known, p.fewest, "%s: too few flags could be tried", strings.Join(name, " "))
}

func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("a\n"), 0o644))
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@x", "commit", "-q", "-m", "one"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "git %v: %s", args, out)
	}
	return dir
}

// The table and git must agree on which flags take the next word as their value. Otherwise nod and
// git would disagree on which words are files.
func TestGitTakesTheWordsThatTheTableSays(t *testing.T) {
	onlyLong(t)
	missing(t, "git")
	dir := repository(t)
	for sub, fewest := range map[string]int{"diff": 60, "log": 110, "show": 110, "shortlog": 8, "reflog show": 60, "rev-list": 20, "ls-tree": 5, "blame": 15, "grep": 25, "status": 0, "stash show": 0} {
		p := probe{fewest: fewest, value: map[string]string{"--diff-algorithm": "myers", "--diff-filter": "A", "--date": "iso", "--color-moved-ws": "no", "--diff-merges": "off", "--ws-error-highlight": "none", "--word-diff-regex": "7", "--since": "7"}}
		if sub == "grep" {
			p.before = []string{"-e", "x"}
		}
		checkFlags(t, dir, append([]string{"git"}, strings.Fields(sub)...), newTable()["git "+sub], p)
	}
}

// The table must agree with the tools that process text or describe files on which flags take the
// next word as their value.
func TestToolsTakeTheWordsThatTheTableSays(t *testing.T) {
	onlyLong(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("a\n"), 0o644))
	for name, p := range map[string]probe{
		"grep": {before: []string{"-e", "x"}, fewest: 40, value: map[string]string{"--binary-files": "text", "-e": "7"}}, "sed": {before: []string{"-e", "p"}, fewest: 12}, "rg": {before: []string{"-e", "x"}, fewest: 50, value: map[string]string{"-E": "utf8", "--encoding": "utf8", "--engine": "auto", "--color": "never", "--colors": "path:none", "--sort": "path", "--sortr": "path", "-t": "go", "--type": "go", "-T": "go", "--type-not": "go"}},
		"sort": {fewest: 20, value: map[string]string{"-k": "1", "--key": "1"}}, "cut": {fewest: 4}, "head": {fewest: 7}, "tail": {fewest: 5, waits: []string{"-f", "-F", "--follow", "--retry"}}, "wc": {fewest: 9}, "uniq": {fewest: 8, after: nil}, "nl": {fewest: 8, value: map[string]string{"-b": "a", "--body-numbering": "a", "-f": "a", "--footer-numbering": "a", "-h": "a", "--header-numbering": "a", "-n": "ln", "--number-format": "ln"}}, "tac": {fewest: 3}, "paste": {fewest: 3}, "fold": {fewest: 4}, "expand": {fewest: 3},
		"cat": {fewest: 10}, "ls": {fewest: 50, value: map[string]string{"--block-size": "1", "--format": "long", "--indicator-style": "none", "--quoting-style": "literal", "--sort": "size", "--time": "atime"}}, "stat": {fewest: 5}, "od": {fewest: 8, value: map[string]string{"-A": "d", "--address-radix": "d", "-t": "x1", "--format": "x1"}}, "du": {fewest: 20, value: map[string]string{"-B": "1", "--block-size": "1"}}, "readlink": {fewest: 0}, "realpath": {fewest: 2},
		"comm": {after: []string{"9"}, fewest: 4}, "cmp": {after: []string{"9"}, fewest: 2}, "diff": {after: []string{"9"}, fewest: 30}, "jq": {before: []string{"."}, fewest: 12}, "md5sum": {fewest: 2}, "tree": {fewest: 20}, "strings": {fewest: 3, value: map[string]string{"-t": "x", "--radix": "x"}}, "file": {fewest: 0},
	} {
		t.Run(name, func(t *testing.T) {
			missing(t, name)
			checkFlags(t, dir, []string{name}, newTable()[name], p)
		})
	}
}

// The lists must agree with make, go and npm on which flags take the next word as their value,
// because flags of these programs may follow the words of a remembered rule.
func TestRunnersTakeTheWordsThatTheListsSay(t *testing.T) {
	onlyLong(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Makefile"), []byte("all:\n\t@true\n"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n\ngo 1.26\n"), 0o644))
	t.Run("make", func(t *testing.T) {
		missing(t, "make")
		checkFlags(t, dir, []string{"make"}, runnerFlags()["make"], probe{fewest: 20, value: map[string]string{"-j": "x7", "-l": "x7", "-O": "x7", "--jobs": "x7", "--output-sync": "x7", "--debug": "x7", "--trace": "7"}})
	})
	for name, fewest := range map[string]int{"go test": 20, "go build": 8, "go list": 8} {
		t.Run(name, func(t *testing.T) {
			missing(t, "go")
			checkFlags(t, dir, strings.Fields(name), runnerFlags()[name], probe{fewest: fewest, value: map[string]string{"-timeout": "7s", "-mod": "mod", "-vet": "off", "-covermode": "set", "-buildmode": "exe", "-shuffle": "on", "-tags": "x7", "-f": "x7", "-benchtime": "7x"}})
		})
	}
}

// The entry of awk must agree with two versions of awk that only the flag -F takes a value. nod can
// then tell which word is the program.
func TestAwkTakesTheWordsThatTheTableSays(t *testing.T) {
	c := newTable()["awk"]
	require.Equal(t, "F", c.value)
	require.Empty(t, c.short+c.tail+c.long)
	for _, name := range []string{"mawk", "gawk"} {
		missing(t, name)
		for _, before := range [][]string{{"-F", "7"}, {"-F7"}, {"--"}, nil} {
			argv := slices.Concat([]string{name}, before, []string{`{print "p"}`, "7", "8"})
			next, known := takes(t, t.TempDir(), argv, "7")
			assert.True(t, known && !next, "%v reads 7 as a file", argv)
		}
	}
}

// The list must agree with npm on which flags take the next word, because npm passes all other words
// to the script.
func TestNpmTakesTheWordsThatTheListSays(t *testing.T) {
	onlyLong(t)
	missing(t, "npm")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name":"x","scripts":{"test":"echo took"},"workspaces":["w"]}`), 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "w"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "w", "package.json"), []byte(`{"name":"w","version":"1.0.0","scripts":{"test":"echo took"}}`), 0o644))
	tried := 0
	for flag, next := range runnerFlags()["npm"].flagWords() {
		cmd := exec.Command("npm", "test", flag, "w", "x8")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "NO_UPDATE_NOTIFIER=1", "npm_config_offline=true")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "took") {
			continue
		}
		tried++
		assert.Equal(t, next, !strings.Contains(string(out), "took w x8"), "npm test %s takes the next word: %s", flag, out)
	}
	assert.Greater(t, tried, 4)
}

// The list must agree with pytest on which flags take the next word. One process asks pytest's
// parser about all flags.
func TestPytestTakesTheWordsThatTheListSays(t *testing.T) {
	missing(t, "pytest")
	program, err := exec.LookPath("pytest")
	require.NoError(t, err)
	script, err := os.ReadFile(program)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(script), "\n")
	python := strings.Fields(strings.TrimPrefix(first, "#!")) // the Python that runs pytest
	words := runnerFlags()["pytest"].flagWords()
	raw, err := json.Marshal(slices.Sorted(maps.Keys(words)))
	require.NoError(t, err)
	require.NotEmpty(t, python)
	cmd := exec.Command(python[0], append(python[1:], "-c", `
import json, sys
from _pytest.config import get_config
from _pytest.config.exceptions import UsageError
out = {}
for flag in json.loads(sys.argv[1]):
    parser = get_config()._parser
    try:
        out[flag] = [str(x) for x in parser.parse([flag, "7", "8"]).file_or_dir]
    except (UsageError, SystemExit, Exception):
        pass
print(json.dumps(out))
`, string(raw))...)
	out, err := cmd.Output()
	require.NoError(t, err)
	var got map[string][]string
	require.NoError(t, json.Unmarshal(out, &got))
	for flag, operands := range got {
		assert.Equal(t, words[flag], !slices.Contains(operands, "7"), "pytest %s takes the next word", flag)
	}
	assert.Greater(t, len(got), 30)
}
