package policy

import (
	"slices"
	"strings"
	"unicode"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell/word"
)

// checkRemote refuses addresses: the project's own remotes and registry are the only
// sources.
func checkRemote(_ *commandLine, a *args) string {
	if slices.ContainsFunc(a.operands, func(o word.Word) bool { return strings.Contains(o.Text, ":") }) {
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

// codeFlags make a runner take code or a program from outside the project, or delete
// the files that they name.
var codeFlags = wordSet("exec toolexec vettool overlay eval E e c upload-pack receive-pack script-shell node-options init-script I config python-executable plugin load-path override execute execute-print execute-continue basetemp")

// bringsCode reports whether a word is a flag of codeFlags, or may be read as one: a
// long flag may be abbreviated, and a letter may follow other letters or precede its
// value. Go's linker is named by a flag within a flag.
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

// addsTarget reports whether one of a runner's further words is another target to run,
// besides the one that the person saw.
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

// keepsToAnswer reports whether the words that a prefix leaves open keep to the answer:
// they name nothing outside the project, set no variable, run no other target and bring
// no code of their own.
func keepsToAnswer(a *Always, loc *pathname.Location, rest []string) bool {
	argv := a.Argv
	if argv[0] == "rtk" && len(argv) > 1 {
		argv = argv[1:]
	}
	if c := commands().entry(strings.Join(argv, " ")); c.level == levelApproved {
		args, why := c.parse(argv[0], word.Literals(rest))
		if why != "" || c.check != nil && c.check(nil, &args) != "" {
			return false
		}
	}
	return !addsTarget(argv, rest) && !slices.ContainsFunc(rest, func(w string) bool { return leadsOut(argv[0], w, loc) })
}

// leadsOut reports whether a further word of a runner leads out of the project, or to a
// file that decides what else runs, such as a hook.
func leadsOut(program, w string, loc *pathname.Location) bool {
	flag := strings.HasPrefix(w, "-")
	if bringsCode(program, w) || !flag && strings.Contains(w, "=") {
		return true
	}
	parts := pathname.Pieces(w)
	if flag && len(w) > 2 && w[1] != '-' {
		parts = append(parts, w[2:]) // -C/DIR
	}
	return slices.ContainsFunc(parts, func(p string) bool {
		out := pathname.IsAbs(pathname.Slashes(p)) || strings.HasPrefix(p, "~") || strings.Contains("/"+pathname.Slashes(p)+"/", "/../")
		return out && p != "/dev/null" && !loc.InProject(p) || slices.ContainsFunc(pathname.Split(nil, p), func(seg string) bool {
			return len(seg) > 1 && seg[0] == '.' && pathname.Fixed.Has(seg, true)
		})
	})
}

func wordSet(names string) map[string]bool {
	out := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		out[n] = true
	}
	return out
}
