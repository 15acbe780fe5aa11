package main

import (
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

func parserOf(t *testing.T) (*kong.Kong, *cli) {
	t.Helper()
	var c cli
	parser, err := newParser(&c, io.Discard, io.Discard, func(int) {})
	require.NoError(t, err)
	return parser, &c
}

// Every command has an example in its help, and nod parses every example without an error.
func TestEveryCommandHasExamplesThatParse(t *testing.T) {
	parser, _ := parserOf(t)
	for _, leaf := range parser.Model.Leaves(true) {
		path := strings.TrimPrefix(leaf.FullPath(), "nod ")
		require.NotEmpty(t, examples[path], "%s has no example", path)
		require.Contains(t, leaf.Detail, "Examples:")
	}
	redirection := regexp.MustCompile(` *[<>]+ .*|source <\(|\)$`)
	t.Chdir(t.TempDir())
	require.NoError(t, exec.Command("touch", "cases.txt").Run())
	for path, text := range examples {
		for line := range strings.SplitSeq(text, "\n") {
			line = redirection.ReplaceAllString(strings.ReplaceAll(line, "~/.claude/projects", "."), "")
			words, err := exec.Command("sh", "-c", `printf '%s\n' `+strings.TrimPrefix(line, "nod ")).Output()
			require.NoError(t, err)
			parser, _ := parserOf(t)
			parsed, err := parser.Parse(strings.Split(strings.TrimSuffix(string(words), "\n"), "\n"))
			require.NoError(t, err, line)
			require.Equal(t, path, strings.TrimPrefix(parsed.Selected().FullPath(), "nod "), line)
		}
	}
}

// The completion scripts are valid in each shell, and bash completes commands with its script.
func TestCompletionScriptsWork(t *testing.T) {
	parser, _ := parserOf(t)
	words := completions(parser.Model.Node)
	script := bashScript(words)
	for line, want := range map[string]string{
		"nod sett": "settings", "nod settings ap": "apply", "nod allow --al": "--always", "nod -v stat": "status",
	} {
		complete := script + "COMP_WORDS=(" + line + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _nod; echo ${COMPREPLY[@]}"
		out, err := exec.Command("bash", "-c", complete).CombinedOutput()
		require.NoError(t, err, string(out))
		require.Equal(t, want, strings.TrimSpace(string(out)), line)
	}
	require.Contains(t, fishScript(words), "complete -c nod -n '__fish_use_subcommand' -a allow -d 'Allow a request.'")
	require.NotContains(t, fishScript(words), "\n\n")
}
