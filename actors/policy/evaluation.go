package policy

import (
	"slices"

	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/actors/policy/shell"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/actors/policy/weburl"
	"github.com/nodbus/nod/schemas"
)

// evaluation is the check of one call, with the verdict so far.
type evaluation struct {
	pol      *Policy
	call     *Call
	location *pathname.Location
	tool     tools.Tool
	verdict  Verdict
	facts    *shell.Facts // facts about the command line; nil until the check needs them
	line     *shell.Line

	showsLines bool                   // the search prints lines of files, not only file names
	onlyGlob   bool                   // the search reads only files whose names match a given pattern
	leavesOut  func(file string) bool // reports whether the search's filters exclude a file
	naming     weburl.Naming          // how precisely an allow rule must name the call's URL
	changed    *changed               // the result of changedFile; nil until it is needed
}

// ruleSubject has the values of a call that nod compares with rules: the paths, or the URL.
type ruleSubject struct {
	paths []string
	url   string
}

// firstRule returns the first rule for which the function covers returns true, or nil. The function list
// selects the deny, ask or allow rules of a layer; the flag allow means that list selects allow rules.
func (ev *evaluation) firstRule(list func(*rules.Layer) []rules.Rule, allow bool, covers func(*rules.Rule) bool) *rules.Rule {
	for i := range ev.pol.layers {
		l := &ev.pol.layers[i]
		some := list(l)
		if len(some) == 0 || !ev.layerApplies(l, !allow) {
			continue
		}
		for k := range some {
			if some[k].CoversTool(ev.tool, allow) && covers(&some[k]) {
				return &some[k]
			}
		}
	}
	return nil
}

// layerApplies reports whether a layer applies to the call. The flag tightens means that deny or ask rules
// are tried. These rules also apply if the command line changes to a directory of the layer's projects.
func (ev *evaluation) layerApplies(l *rules.Layer, tightens bool) bool {
	if tightens && ev.line != nil {
		return l.Applies(ev.call.Agent, ev.call.Host, &ev.line.Location, true)
	}
	return l.Applies(ev.call.Agent, ev.call.Host, ev.location, tightens)
}

func denyRules(l *rules.Layer) []rules.Rule  { return l.Deny }
func askRules(l *rules.Layer) []rules.Rule   { return l.Ask }
func allowRules(l *rules.Layer) []rules.Rule { return l.Allow }

// applyRules applies deny, ask and allow rules, and then remembered rules, to a call that is not a shell
// command. It reports whether a rule decided. If t is nil, the input is unreadable: deny and ask rules then
// cover every call of their tool, and allow rules cover none.
func (ev *evaluation) applyRules(t *ruleSubject) bool {
	covers := func(allow bool) func(*rules.Rule) bool {
		return func(r *rules.Rule) bool {
			switch {
			case t == nil:
				return !allow
			case allow && r.Names(ev.tool) < ev.naming:
				return false
			case r.Placed != nil:
				return coversTool(r.Placed, false, ev, t)
			case allow && slices.ContainsFunc(t.paths, func(p string) bool {
				return (ev.tool.Kind == tools.Edit || ev.hiddenOutside(p)) && !r.SpellsOut(p, ev.location)
			}):
				return false
			case r.HasPath() && len(t.paths) == 0:
				return !allow
			case r.HasPath():
				hit := func(p string) bool { return r.CoversPath(p, ev.location, allow) }
				if allow {
					return !slices.ContainsFunc(t.paths, func(p string) bool { return !hit(p) })
				}
				return slices.ContainsFunc(t.paths, hit)
			case r.HasCommand():
				return !allow
			}
			return r.CoversURL(t.url, allow)
		}
	}
	if r := ev.firstRule(denyRules, false, covers(false)); r != nil {
		return ev.decide(Deny, "deny "+r.Text)
	}
	if r := ev.firstRule(askRules, false, covers(false)); r != nil {
		return ev.decide(Ask, "ask "+r.Text)
	}
	if r := ev.searchRule(t); r != nil {
		ev.verdict.Why = "searches a directory that may hold files that the rule " + r.Text + " covers"
		return ev.decide(Ask, r.Text)
	}
	if ev.verdict.Rule != "" {
		return true // a built-in rule has set the verdict Ask, which no allow rule changes
	}
	if r := ev.firstRule(allowRules, true, covers(true)); r != nil {
		return ev.decide(Allow, "allow "+r.Text)
	}
	if t == nil || ev.naming > weburl.AnyURL {
		return false
	}
	g, which := ev.pol.rememberedTool(func(g *schemas.RememberedRule, sessionOnly bool) bool { return coversTool(g, sessionOnly, ev, t) })
	if g == nil {
		return false
	}
	ev.verdict.Remembered = append(ev.verdict.Remembered, which)
	return ev.decide(Allow, "always "+g.String())
}

// searchRule returns a deny or ask rule for files below a directory that a Grep call searches, or nil. If
// there is such a rule, nod asks about the call, because the output could show these files.
func (ev *evaluation) searchRule(t *ruleSubject) *rules.Rule {
	if t == nil || ev.tool.Name != "Grep" {
		return nil
	}
	below := func(r *rules.Rule) bool {
		return r.HasPath() && slices.ContainsFunc(t.paths, func(p string) bool { return r.MayLieBelow(p, ev.location) })
	}
	if r := ev.firstRule(denyRules, false, below); r != nil {
		return r
	}
	return ev.firstRule(askRules, false, below)
}

func (ev *evaluation) decide(e Effect, rule string) bool {
	ev.verdict.Effect, ev.verdict.Rule = e, rule
	if e == Allow {
		ev.verdict.Why = ""
	} else if ev.verdict.Why == "" {
		ev.verdict.Why = "the rule " + rule + " says so"
	}
	return true
}

// unknownField sets the verdict Ask if the input has a field that nod does not know for a tool of this kind.
func (ev *evaluation) unknownField(in tools.Input) {
	if name := in.UnknownField(ev.tool.Kind); name != "" {
		ev.verdict.Effect, ev.verdict.Rule, ev.verdict.Why = Ask, Default, "its input has a field that nod does not know, "+name
	}
}
