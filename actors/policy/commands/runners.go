package commands

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/shell/word"
)

// checkRemote refuses addresses, so that a command uses only the remotes and the registry that
// the project has configured.
func checkRemote(_ Secrets, a *Args) string {
	if slices.ContainsFunc(a.operands, func(o word.Word) bool { return strings.Contains(o.Text, ":") }) {
		return "names an address"
	}
	return ""
}

func checkGh(_ Secrets, a *Args) string {
	if slices.ContainsFunc(a.flags, func(f flag) bool { return (f.name == "q" || f.name == "jq") && jqReads.MatchString(f.value) }) {
		return "its filter may read the environment"
	}
	return ""
}

// addsTarget reports whether rest, the words after the runner command shown, contains a target
// that the runner would run in addition to the target in shown.
func addsTarget(shown, rest []string) bool {
	c := Entry(shown[0])
	for i, w := range rest {
		chosen := i > 0 && c.chooser != "" && rest[i-1] == c.chooser
		if c.manyTargets && len(shown) > 1 && !chosen && !strings.HasPrefix(w, "-") && !IsCount("-"+w) {
			return true
		}
	}
	return false
}

// Bounded reports whether an answer for the command shown also covers the same command with the
// words rest after it: these words fit the lists of flags, set no variable, add no target and
// name no file of further words.
func Bounded(shown, rest []string) bool {
	c, words := runnerOf(shown)
	switch {
	case c == nil:
		return false
	case c.level == levelApproved:
		if _, why := c.Check(shown[0], word.Literals(rest), nil); why != "" {
			return false
		}
	case !keepsToProject(runnerList(shown[:words]), rest), slices.ContainsFunc(rest, func(w string) bool { return strings.HasPrefix(w, "@") }):
		return false
	}
	return !addsTarget(shown, rest) && !slices.ContainsFunc(rest, func(w string) bool {
		return !strings.HasPrefix(w, "-") && strings.Contains(w, "=")
	})
}

// runnerOf returns the entry of the runner with which argv begins, and the number of words of
// its name. It returns nil if argv is no runner.
func runnerOf(argv []string) (*Command, int) {
	for n := min(3, len(argv)); n > 0; n-- {
		name := strings.Join(argv[:n], " ")
		if c := Entry(name); c.runner && strings.Count(name, " ") == n-1 { // the argument "go test" is not the command go test
			return c, n
		}
	}
	return nil, 0
}
