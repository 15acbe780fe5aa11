// Package rules parses and matches permission rules, such as "Bash(git status:*)", and layers of
// rules for certain agents, hosts and projects. It also imports the rules of hosts.
package rules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/internal/lazyregexp"
	"github.com/nodbus/nod/schemas"
)

// Rule is one compiled rule of the settings.
type Rule struct {
	Text string // the rule as the user wrote it
	tool string // the tool's name in rules, or an MCP server or MCP tool
	mcp  bool   // the tool is an MCP server, and the rule covers all tools of the server

	argv   []string // for Bash: the command's words; nil covers every command
	prefix bool     // for Bash: further words may follow the words in argv
	paths  []string // for file tools: the segments of the path pattern; nil covers every path
	root   byte     // the directory in which paths begin: '/', '~', 'p' for the project, '*' for any directory
	dir    string   // the directory of the project whose settings contain the rule; "" for the user's own rules
	domain string   // for WebFetch: the domain of the URL
	url    string   // for WebFetch: the whole URL; only an allow rule has it

	// Placed is the rule in parsed form if the rule names its project, as nod prints remembered
	// rules. Otherwise Placed is nil. Only an allow rule names its project, and it covers the calls
	// that a remembered rule covers.
	Placed *schemas.RememberedRule
}

// HasPath reports whether the rule covers only certain files.
func (r *Rule) HasPath() bool { return r.paths != nil }

// HasCommand reports whether the rule covers only certain commands.
func (r *Rule) HasCommand() bool { return r.argv != nil }

var toolPattern = lazyregexp.New(`^([A-Za-z_][A-Za-z0-9_.-]*)(?:\((.*)\))?$`)

// Parse compiles a rule. The error names the fault and the right form.
func Parse(text string) (Rule, error) {
	m := toolPattern.FindStringSubmatch(text)
	if m == nil {
		if placedPattern.MatchString(text) {
			return parsePlaced(text)
		}
		if strings.HasPrefix(text, "mcp__") && strings.HasSuffix(text, "*") && toolPattern.MatchString(strings.TrimRight(text, "*")) {
			m = []string{text, text, ""}
		} else {
			return Rule{}, fmt.Errorf("%q is not a rule: expected a tool's name, such as \"Bash\", or a tool with a pattern, such as \"Bash(git status:*)\"", text)
		}
	}
	r := Rule{Text: text, tool: m[1]}
	if strings.HasPrefix(r.tool, "mcp__") {
		if strings.Contains(text, "(") {
			return Rule{}, fmt.Errorf("%q: a rule for an MCP tool has no pattern: name the tool, or its server for all of its tools", text)
		}
		r.tool = strings.TrimSuffix(strings.TrimSuffix(r.tool, "*"), "__")
		r.mcp = strings.Count(r.tool, "__") == 1
		if !r.mcp && strings.HasSuffix(text, "*") {
			return Rule{}, fmt.Errorf("%q: * cannot stand for a part of a tool's name: name one tool, or the server for all of its tools", text)
		}
		return r, nil
	}
	t := tools.Named(r.tool)
	r.tool = t.Name
	if !strings.Contains(text, "(") || m[2] == "*" {
		return r, nil
	}
	var err error
	switch t.Kind {
	case tools.Shell:
		err = r.command(m[2])
	case tools.File, tools.Search, tools.Edit:
		err = r.pathPattern(m[2])
	case tools.Web:
		var ok bool
		if strings.HasPrefix(m[2], "https://") || strings.HasPrefix(m[2], "http://") {
			r.url = m[2]
			break
		}
		if r.domain, ok = strings.CutPrefix(m[2], "domain:"); !ok || r.domain == "" || strings.ContainsAny(strings.TrimPrefix(r.domain, "*."), "*/:@ ") {
			err = fmt.Errorf("expected domain:example.com, domain:*.example.com or, to allow one address, all of it with https://")
		}
		r.domain = strings.ToLower(r.domain)
	default:
		err = fmt.Errorf("nod knows no patterns for this tool: name the tool alone")
	}
	if err != nil {
		return Rule{}, fmt.Errorf("%q: %w", text, err)
	}
	return r, nil
}

func (r *Rule) command(s string) error {
	s = strings.TrimSpace(s) // a space after :* would be part of another word of the command
	if rest, ok := strings.CutSuffix(s, ":*"); ok {
		s, r.prefix = rest, true
	} else if rest, ok := strings.CutSuffix(s, " *"); ok {
		s, r.prefix = rest, true
	}
	argv, err := shell.SplitCommand(s)
	if err != nil {
		return err
	}
	r.argv = argv
	return nil
}

func (r *Rule) pathPattern(s string) error {
	below := strings.HasSuffix(s, "/")
	switch {
	case strings.HasPrefix(s, "//"):
		r.root, s = '/', s[2:]
	case strings.HasPrefix(s, "~/"):
		r.root, s = '~', s[2:]
	case len(s) > 2 && s[1] == ':':
		r.root, s = '/', pathname.Slashes(s)
	case strings.HasPrefix(s, "/"):
		r.root, s = 'p', s[1:]
	case strings.HasPrefix(s, "./"):
		r.root, s = 'p', s[2:]
	case strings.Contains(strings.TrimSuffix(s, "/"), "/"):
		r.root = 'p'
	default:
		r.root = '*'
	}
	if strings.ContainsAny(s, "{}!") {
		return fmt.Errorf("the pattern has {}, or !, which nod does not know: write one rule for each")
	}
	for seg := range strings.SplitSeq(s, "/") {
		switch {
		case seg == "..":
			return fmt.Errorf("the pattern holds ..: write the path in full, as //abs/path")
		case seg != "" && seg != ".":
			r.paths = append(r.paths, seg)
		}
	}
	if below || len(r.paths) == 0 {
		r.paths = append(r.paths, "**")
	}
	return nil
}

// CoversTool reports whether the rule covers this tool. A Read rule with a path also covers tools that
// search. An Edit rule with a path also covers every tool that writes. If the argument strict is false, Read
// and Edit rules without a path also cover these tools.
func (r *Rule) CoversTool(t tools.Tool, strict bool) bool {
	if r.tool == t.Name {
		return true
	}
	if r.mcp {
		return strings.HasPrefix(t.Name, r.tool+"__")
	}
	if strict && r.paths == nil {
		return false
	}
	return r.tool == "Read" && t.Kind == tools.Search || r.tool == "Edit" && t.Kind == tools.Edit
}

// bases returns the directories in which the rule's paths may begin, and whether these directories
// are known. Relative paths of an allow rule begin in the project. Relative paths of a deny or ask
// rule may also begin in the project whose settings contain the rule, and in every directory of the
// call outside the project.
func (r *Rule) bases(loc *pathname.Location, allow bool) ([]string, bool) {
	switch {
	case r.root == '/' && len(r.paths[0]) == 2 && r.paths[0][1] == ':':
		return []string{""}, true
	case r.root == '/':
		return []string{"/"}, true
	case r.root == '~':
		return []string{loc.Home}, loc.Home != ""
	case loc.Project == "" || allow:
		return []string{loc.Project}, loc.Project != ""
	}
	out := append(make([]string, 0, 4), loc.Project)
	if r.dir != "" {
		out = append(out, r.dir)
	}
	for _, d := range loc.Dirs {
		if !loc.InTree(d) {
			out = append(out, d)
		}
	}
	return out, true
}

// CoversPath reports whether the rule covers p. An allow rule must match every path that p may mean, and p
// must contain no wildcards. A deny or ask rule must match one of these paths, or a directory above one.
func (r *Rule) CoversPath(p string, loc *pathname.Location, allow bool) bool {
	if r.paths == nil {
		return true
	}
	bases, known := r.bases(loc, allow)
	all := loc.Resolve(p)
	switch {
	case len(all) == 0:
		return !allow && r.matchesEnd(p)
	case !known:
		return !allow && slices.ContainsFunc(all, r.matchesFromSome)
	}
	for _, full := range all {
		covers := func(base string) bool { return r.matchesFrom(base, full, allow) }
		if ok := slices.ContainsFunc(bases, covers); ok != allow {
			return ok
		}
	}
	return allow
}

// matchesFrom reports whether the rule matches the full path p if the rule's pattern begins in the
// directory base.
func (r *Rule) matchesFrom(base, p string, allow bool) bool {
	rel, ok := strings.CutPrefix(p, strings.TrimSuffix(base, "/"))
	if !ok || rel != "" && rel[0] != '/' && base != "" {
		return false
	}
	return r.segments(strings.Split(strings.Trim(rel, "/"), "/"), allow)
}

// matchesFromSome reports whether a deny or ask rule matches the full path p if the rule's pattern begins in
// some directory above p.
func (r *Rule) matchesFromSome(p string) bool {
	segs := strings.Split(strings.Trim(p, "/"), "/")
	for i := range segs {
		if r.segments(segs[i:], false) {
			return true
		}
	}
	return false
}

// MayLieBelow reports whether files that the rule covers may exist below p.
func (r *Rule) MayLieBelow(p string, loc *pathname.Location) bool {
	bases, known := r.bases(loc, false)
	if r.root == '*' || !known {
		return true
	}
	all := loc.Resolve(p)
	return len(all) == 0 || slices.ContainsFunc(bases, func(start string) bool {
		for _, seg := range r.paths {
			if pathname.IsGlob(seg) {
				break
			}
			start = path.Join(start, seg)
		}
		return slices.ContainsFunc(all, func(full string) bool { return pathname.Within(strings.ToLower(start), strings.ToLower(full)) })
	})
}

// SpellsOut reports whether the rule contains the unusual segments of p, such as hidden names. The
// segments matter, because the author of a rule for all files did not mean hooks and settings.
func (r *Rule) SpellsOut(p string, loc *pathname.Location) bool {
	for _, full := range loc.Resolve(p) {
		for _, seg := range pathname.Unusual(loc.Relative(full)) {
			if !slices.ContainsFunc(r.paths, func(own string) bool { return strings.EqualFold(own, seg) }) {
				return false
			}
		}
	}
	return true
}

// matchesEnd reports whether the rule may match p, a relative path in an unknown directory.
func (r *Rule) matchesEnd(p string) bool {
	return r.segments(append([]string{"**"}, pathname.Split(nil, p)...), false) || r.root == '*' && r.segments(pathname.Split(nil, p), false)
}

func (r *Rule) segments(segs []string, allow bool) bool {
	pattern := r.paths
	if r.root == '*' {
		pattern = append([]string{"**"}, pattern...)
	}
	if allow {
		return slices.IndexFunc(segs, pathname.IsGlob) < 0 && segmentsMatch(pattern, segs, true)
	}
	for n := len(segs); n > 0; n-- {
		if segmentsMatch(pattern, segs[:n], false) {
			return true
		}
	}
	return false
}

// segmentsMatch reports whether a path's segments match a pattern, segment by segment. In the pattern, **
// matches any number of segments. The parameter strict is false for deny and ask rules. Then wildcards in
// the path match too, and case does not matter.
func segmentsMatch(pattern, segs []string, strict bool) bool {
	switch {
	case len(pattern) > 0 && pattern[0] == "**":
		return segmentsMatch(pattern[1:], segs, strict) || len(segs) > 0 && segmentsMatch(pattern, segs[1:], strict)
	case !strict && len(segs) > 0 && segs[0] == "**":
		return segmentsMatch(pattern, segs[1:], strict) || len(pattern) > 0 && segmentsMatch(pattern[1:], segs, strict)
	case len(pattern) == 0 || len(segs) == 0:
		return len(pattern) == len(segs)
	}
	if strict {
		ok, err := path.Match(pattern[0], segs[0])
		return err == nil && ok && segmentsMatch(pattern[1:], segs[1:], strict)
	}
	return pathname.Overlap(strings.ToLower(segs[0]), strings.ToLower(pattern[0]), true) && segmentsMatch(pattern[1:], segs[1:], strict)
}
