package policy

import (
	"slices"
	"strings"
	"unicode"
)

// checkRemote refuses addresses: what is fetched comes from the project's own
// remotes and registry.
func checkRemote(_ *commandLine, a *args) string {
	if slices.ContainsFunc(a.operands, func(o word) bool { return strings.Contains(o.text, ":") }) {
		return "names an address"
	}
	return ""
}

func checkGh(_ *commandLine, a *args) string {
	if slices.ContainsFunc(a.flags, func(f flag) bool { return (f.name == "q" || f.name == "jq") && jqReads.MatchString(f.value) }) {
		return "its filter may read the environment"
	}
	return ""
}

// otherCode are flags by which runners take code, or a program, that is not the
// project's, or delete what they name.
var codeFlags = wordSet("exec toolexec vettool overlay eval E e c upload-pack receive-pack script-shell node-options init-script I config python-executable plugin load-path override execute execute-print execute-continue basetemp")

// bringsCode reports whether a word is a flag of otherCode, or may be taken for
// one: a long one may be written as its beginning, and one of a letter with
// others before it or its value behind it. Go's linker is named by a flag within
// a flag.
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
	case commands().entry(program).oneDash:
		return codeFlags[name]
	}
	letters := strings.IndexFunc(name+"=", func(r rune) bool { return !unicode.IsLetter(r) })
	return codeFlags[name] || codeFlags[name[:1]] || strings.Contains(name[:letters], "E")
}

// nextTarget reports whether one of a runner's further words is one more thing
// to run, besides the one that was shown.
func addsTarget(shown, rest []string) bool {
	c := commands().entry(shown[0])
	for i, w := range rest {
		chosen := i > 0 && c.chooser != "" && rest[i-1] == c.chooser
		if c.manyTargets && len(shown) > 1 && !chosen && !strings.HasPrefix(w, "-") && !isCount("-"+w) {
			return true
		}
	}
	return false
}

// further reports whether the words that a prefix leaves open keep to what was
// shown: they name nothing outside the project, set no variable, run no other
// target and bring no code of their own.
func keepsToAnswer(a *Always, loc *location, rest []string) bool {
	argv := a.Argv
	if argv[0] == "rtk" && len(argv) > 1 {
		argv = argv[1:]
	}
	if c := commands().entry(strings.Join(argv, " ")); c.level == levelApproved {
		args, why := c.parse(argv[0], literalWords(rest))
		if why != "" || c.check != nil && c.check(nil, &args) != "" {
			return false
		}
	}
	return !addsTarget(argv, rest) && !slices.ContainsFunc(rest, func(w string) bool { return leadsOut(argv[0], w, loc) })
}

// strays reports whether a further word of a runner leads out of what it runs,
// or to a file that says what else may run, such as a hook.
func leadsOut(program, w string, loc *location) bool {
	flag := strings.HasPrefix(w, "-")
	if bringsCode(program, w) || !flag && strings.Contains(w, "=") {
		return true
	}
	parts := pieces(w)
	if flag && len(w) > 2 && w[1] != '-' {
		parts = append(parts, w[2:]) // -C/DIR
	}
	return slices.ContainsFunc(parts, func(p string) bool {
		out := isAbs(slashes(p)) || strings.HasPrefix(p, "~") || strings.Contains("/"+slashes(p)+"/", "/../")
		return out && p != "/dev/null" && !loc.inProject(p) || slices.ContainsFunc(splitPath(nil, p), func(seg string) bool {
			return len(seg) > 1 && seg[0] == '.' && fixedNames.has(seg, true)
		})
	})
}
