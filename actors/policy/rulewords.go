package policy

import (
	"net/url"
	"strings"
)

// coversArgv reports whether the command's words match. In an allow rule a *
// is one word and nothing else; elsewhere it is any number of them.
func (r *rule) coversArgv(argv []string, allow bool) bool {
	if r.argv == nil {
		return true
	}
	return argvMatch(r.argv, argv, r.prefix, allow)
}

func argvMatch(pattern, argv []string, prefix, strict bool) bool {
	switch {
	case len(pattern) == 0:
		return prefix || len(argv) == 0
	case !strict && pattern[0] == "*":
		return argvMatch(pattern[1:], argv, prefix, strict) || len(argv) > 0 && argvMatch(pattern, argv[1:], prefix, strict)
	case len(argv) == 0 || argv[0] != pattern[0] && !(strings.Contains(pattern[0], "*") && match(pattern[0], argv[0])):
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
