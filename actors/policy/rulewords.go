package policy

import (
	"net/url"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
)

// coversArgv reports whether the command's words match. In an allow rule a * stands for
// exactly one word, elsewhere for any number of them.
func (r *rule) coversArgv(argv []string, allow bool) bool {
	if r.argv == nil {
		return true
	}
	return argvMatch(r.argv, argv, r.prefix, allow) && !(allow && r.addsHarmfulFlag(argv))
}

// gitHarmfulFlags make any command of git write a file of any name, or start a program.
var gitHarmfulFlags = []string{"--output", "--ext-diff", "--textconv", "--open-files-in-pager", "--exec", "--upload-pack", "--receive-pack"}

// addsHarmfulFlag reports whether the command has such a flag that the rule does not
// spell out; git accepts abbreviations too. An allow rule for git log is not written
// for these flags.
func (r *rule) addsHarmfulFlag(argv []string) bool {
	if r.argv[0] != "git" {
		return false
	}
	for _, w := range argv {
		if w == "--" {
			return false
		}
		if slices.Contains(r.argv, w) {
			continue
		}
		name, _, _ := strings.Cut(w, "=")
		long := len(name) > 2 && slices.ContainsFunc(gitHarmfulFlags, func(flag string) bool { return strings.HasPrefix(flag, name) })
		if long || slices.Contains(argv, "grep") && len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.Contains(w, "O") {
			return true
		}
	}
	return false
}

func argvMatch(pattern, argv []string, prefix, strict bool) bool {
	switch {
	case len(pattern) == 0:
		return prefix || len(argv) == 0
	case !strict && pattern[0] == "*":
		return argvMatch(pattern[1:], argv, prefix, strict) || len(argv) > 0 && argvMatch(pattern, argv[1:], prefix, strict)
	case len(argv) == 0 || argv[0] != pattern[0] && !(strings.Contains(pattern[0], "*") && pathname.Match(pattern[0], argv[0])):
		return false
	}
	return argvMatch(pattern[1:], argv[1:], prefix, strict)
}

func (r *rule) coversURL(raw string, allow bool) bool {
	if r.domain == "" {
		return true
	}
	u, err := url.Parse(raw)
	if err != nil {
		return !allow
	}
	if allow && (u.User != nil || u.Scheme != "https" && u.Scheme != "http") {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if rest, ok := strings.CutPrefix(r.domain, "*."); ok {
		return strings.HasSuffix(host, "."+rest)
	}
	return host == r.domain
}
