package rules

import (
	"net/url"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/actors/policy/weburl"
)

// CoversArgv reports whether the rule covers a command with these words. The word * matches
// exactly one word in an allow rule, and any number of words in a deny or ask rule.
func (r *Rule) CoversArgv(argv []string, allow bool, loc *pathname.Location) bool {
	if r.argv == nil {
		return true
	}
	return argvMatch(r.argv, argv, r.prefix, allow) && (!allow || r.bounded(argv, loc))
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

// CoversCommand reports whether a deny or ask rule covers one of a line's commands. If a command
// begins with the path of a program, CoversCommand also compares the rule with the program's name.
func (r *Rule) CoversCommand(f *shell.Facts) bool {
	if r.argv == nil {
		return true
	}
	for _, argv := range f.Commands {
		if r.CoversArgv(argv, false, nil) || r.coversProgram(commands.ProgramName(argv[0]), argv[1:]) {
			return true
		}
		// git -C DIR push is also a push. Before the subcommand are flags and their values. Each
		// round leaves out one more of these words, and compares the rule with the remaining words.
		for i := 1; i < len(argv) && (strings.HasPrefix(argv[i], "-") || i > 1 && strings.HasPrefix(argv[i-1], "-")); i++ {
			if r.coversProgram(commands.ProgramName(argv[0]), argv[i+1:]) {
				return true
			}
		}
	}
	return false
}

// coversProgram reports whether a deny or ask rule covers the program with these arguments. A rule
// never begins with the word *.
func (r *Rule) coversProgram(program string, args []string) bool {
	return argvMatch(r.argv[:1], []string{program}, false, false) && argvMatch(r.argv[1:], args, r.prefix, false)
}

// CoversPathIn reports whether a word of a command line may mean a path that the rule covers.
func (r *Rule) CoversPathIn(f *shell.Facts, line *shell.Line) bool {
	loc := line.Location
	if len(loc.Dirs) == 0 {
		loc = *f.Location
	}
	for _, list := range [][]string{f.Words, f.Writes} {
		for _, w := range list {
			for _, at := range pathname.Pieces(w) {
				if at != "" && r.CoversPath(at, &loc, false) {
					return true
				}
			}
		}
	}
	return false
}

// CoversURL reports whether the rule covers a URL.
func (r *Rule) CoversURL(raw string, allow bool) bool {
	if r.url != "" {
		return r.url == raw
	}
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

// Names tells how exactly the rule, which covers a call of the tool t, names the call's URL. A rule for one
// tool of an MCP server cannot name a URL, and counts as exact.
func (r *Rule) Names(t tools.Tool) weburl.Naming {
	switch {
	case r.url != "", t.Kind == tools.Unknown && !r.mcp:
		return weburl.WholeCall
	case strings.HasPrefix(r.domain, "*."):
		return weburl.DomainOf
	case r.domain != "":
		return weburl.HostOf
	}
	return weburl.AnyURL
}

// NamesCommand reports whether the rule names a command with all its words and without wildcards.
func (r *Rule) NamesCommand(argv []string) bool {
	if r.Placed != nil {
		return !r.Placed.Prefix
	}
	return !r.prefix && slices.Equal(r.argv, argv)
}
