package commands

import (
	"slices"
	"strings"
	"unicode"

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

// codeFlags are the flags that make a runner run code or a program that need not be part of the
// project, such as --eval. They include basetemp: pytest deletes the directory that this
// flag names.
var codeFlags = wordSet("exec toolexec vettool overlay eval E e c upload-pack receive-pack script-shell node-options init-script I config python-executable plugin load-path override execute execute-print execute-continue basetemp")

// bringsCode reports whether w is one of codeFlags or may be read as one of them. A long flag
// may be abbreviated. A one-letter flag may be followed by its value, as in -cCODE, and may stand
// behind other letters, as in -pe. In go commands, a flag such as -ldflags may contain
// -extld, which sets a program to run.
func bringsCode(program, w string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
	switch {
	case program == "go" && (strings.Contains(w, "extld") || strings.Contains(w, "extar")):
		return true
	case !strings.HasPrefix(w, "-") || name == "":
		return false
	case strings.HasPrefix(w, "--"):
		for code := range codeFlags {
			if strings.HasPrefix(code, name) {
				return true
			}
		}
		return false
	case Entry(program).oneDash:
		return codeFlags[name]
	}
	letters := strings.IndexFunc(name+"=", func(r rune) bool { return !unicode.IsLetter(r) })
	return codeFlags[name] || strings.ContainsFunc(name[:letters], func(r rune) bool { return codeFlags[string(r)] })
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
// words rest after it: these words fit the command's entry, set no variable, add no target and
// supply no code.
func Bounded(shown, rest []string) bool {
	if c := Entry(strings.Join(shown, " ")); c.level == levelApproved {
		if _, why := c.Check(shown[0], word.Literals(rest), nil); why != "" {
			return false
		}
	}
	return !addsTarget(shown, rest) && !slices.ContainsFunc(rest, func(w string) bool {
		return bringsCode(shown[0], w) || !strings.HasPrefix(w, "-") && strings.Contains(w, "=")
	})
}

func wordSet(names string) map[string]bool {
	out := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		out[n] = true
	}
	return out
}
