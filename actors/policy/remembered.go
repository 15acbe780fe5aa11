package policy

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

// With returns a copy of p with further remembered rules. A remembered rule allows only calls about
// which nod would otherwise ask. Deny rules, ask rules, and the built-in rules for secrets and nod's
// own commands outrank it.
func (p *Policy) With(grants ...schemas.RememberedRule) *Policy {
	return p.WithLists(NewAnswers(grants))
}

// WithLists works like With, for lists that are too long to copy. The policy keeps the lists
// themselves, and Verdict.Remembered refers to the lists by index.
func (p *Policy) WithLists(lists ...*Answers) *Policy {
	out := *p
	out.answers = append(p.answers[:len(p.answers):len(p.answers)], lists...)
	return &out
}

// WithReach works like With, for the rules of a reach that Remember has returned. If the reach is for one
// session only, the caller must use the resulting policy only for calls of that session.
func (p *Policy) WithReach(r *schemas.Reach) *Policy {
	return p.WithLists(&Answers{all: r.Rules, sessionOnly: r.SessionOnly()})
}

// rememberedCommand returns the first remembered rule for which the function covers returns true, with the
// rule's position. It tries only rules whose command is a beginning of argv, in each list those with fewer
// words first.
func (p *Policy) rememberedCommand(argv []string, covers func(*schemas.RememberedRule) bool) (*schemas.RememberedRule, RememberedRef) {
	return p.remembered(func(a *Answers) []int { return a.commands(argv) }, func(g *schemas.RememberedRule, _ bool) bool { return covers(g) })
}

// rememberedTool returns the first remembered rule for which the function covers returns true, with the
// rule's position. It tries only rules that are not for commands. The argument sessionOnly of covers says
// that the rule was offered for one session only.
func (p *Policy) rememberedTool(covers func(g *schemas.RememberedRule, sessionOnly bool) bool) (*schemas.RememberedRule, RememberedRef) {
	return p.remembered((*Answers).tools, covers)
}

func (p *Policy) remembered(candidates func(*Answers) []int, covers func(*schemas.RememberedRule, bool) bool) (*schemas.RememberedRule, RememberedRef) {
	for l, list := range p.answers {
		for _, i := range candidates(list) {
			if g := &list.all[i]; covers(g, list.sessionOnly) {
				return g, RememberedRef{l, i}
			}
		}
	}
	return nil, RememberedRef{}
}

// inAnswersProject reports whether the call certainly runs in the project of a remembered rule.
func inAnswersProject(a *schemas.RememberedRule, loc *pathname.Location) bool {
	if a.Project == "" {
		return true
	}
	project := pathname.Clean(a.Project)
	if project == "" || len(loc.Dirs) == 0 {
		return false
	}
	return !slices.ContainsFunc(loc.Dirs, func(d string) bool { return !pathname.Within(d, project) })
}

// inUntoldDirectory reports whether the call belongs to the project of a remembered rule, although its agent
// does not tell the directory in which the call runs.
func inUntoldDirectory(a *schemas.RememberedRule, call *pathname.Location) bool {
	return call.Project != "" && len(call.Dirs) == 0 && pathname.Clean(a.Project) == call.Project
}

func coversArgv(a *schemas.RememberedRule, ev *evaluation, argv []string) bool {
	// Compare the words first, because they rule out most rules.
	if len(a.Argv) == 0 || len(argv) < len(a.Argv) || !slices.Equal(a.Argv, argv[:len(a.Argv)]) {
		return false
	}
	if tools.Named(a.Tool).Name != ev.tool.Name {
		return false
	}
	if a.Elsewhere && ev.inUntoldDirectory() && inUntoldDirectory(a, ev.location) {
		return len(argv) == len(a.Argv)
	}
	if !inAnswersProject(a, &ev.line.Location) {
		return false
	}
	if len(a.Dirs) > 0 && slices.ContainsFunc(ev.line.Dirs, func(d string) bool { return !slices.Contains(a.Dirs, d) }) {
		return false
	}
	if a.Prefix && len(argv) > len(a.Argv) {
		return commands.Bounded(a.Argv, argv[len(a.Argv):], &ev.line.Location)
	}
	return len(argv) == len(a.Argv)
}

// coversTool reports whether a remembered rule covers a call that is not a command. The flag sessionOnly
// means that the rule was offered for one session only.
func coversTool(a *schemas.RememberedRule, sessionOnly bool, ev *evaluation, t *ruleSubject) bool {
	// The cheap checks are first, because there may be many rules. No remembered rule covers a web call,
	// because nod asks about the address of such a call, and the rules contain no addresses.
	if len(a.Argv) > 0 || ev.tool.Kind == tools.Shell || ev.tool.Kind == tools.Web {
		return false
	}
	untold := a.Path != "" && inUntoldDirectory(a, ev.location) // a full path means the same file in every directory
	if tools.Named(a.Tool).Name != ev.tool.Name || !untold && !inAnswersProject(a, ev.location) {
		return false
	}
	if ev.tool.Kind == tools.Unknown && a.Path != "" {
		file, why := ev.changedFile()
		return sessionOnly && why == "" && file == a.Path
	}
	if ev.tool.Kind == tools.Unknown && !coversUnknown(a, ev) {
		return false
	}
	if sessionOnly && ev.tool.Kind == tools.Edit && ev.obeyed(t.paths) {
		return false
	}
	if a.Path == "" {
		return ev.tool.Kind != tools.Edit && !slices.ContainsFunc(t.paths, ev.hiddenOutside)
	}
	for _, p := range t.paths {
		for _, full := range ev.location.Resolve(p) {
			if dir, ok := strings.CutSuffix(a.Path, "/"); ok && (!pathname.Within(full, dir) || len(pathname.Unusual(full[len(dir):])) > 0) || !ok && full != a.Path {
				return false
			}
		}
		if len(ev.location.Resolve(p)) == 0 {
			return false
		}
	}
	return len(t.paths) > 0
}

// coversUnknown reports whether a remembered rule without a path covers this call of a tool that nod does not
// know.
func coversUnknown(a *schemas.RememberedRule, ev *evaluation) bool {
	if a.Project == "" { // the rule is a permission of a session, not an answer; other code compares the call's paths with the permissions
		return ev.namesNoSecret()
	}
	return tools.Rememberable(a.Tool) && ev.namesOnlyProject()
}
