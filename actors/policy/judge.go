package policy

import (
	"slices"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/nodbus/nod/schemas"
)

func parserPool() *sync.Pool {
	return &sync.Pool{New: func() any { return syntax.NewParser(syntax.KeepComments(true), syntax.Variant(syntax.LangBash)) }}
}

// judge is one call on its way to a verdict.
type judge struct {
	pol   *Policy
	call  *Call
	place *place
	tool  tool
	v     Verdict
	facts *facts // of a shell command, once they are needed
	line  *scope
}

// target is what rules are held against besides the tool: one of these.
type target struct {
	paths []string
	url   string
}

// find is the first rule of the matching layers' lists that covers the call.
func (j *judge) find(list func(*layer) []rule, allow bool, covers func(*rule) bool) *rule {
	for i := range j.pol.layers {
		l := &j.pol.layers[i]
		rules := list(l)
		if len(rules) == 0 || !j.under(l, !allow) {
			continue
		}
		for k := range rules {
			if rules[k].coversTool(j.tool, allow) && covers(&rules[k]) {
				return &rules[k]
			}
		}
	}
	return nil
}

// under reports whether a layer is for the call. What tightens is so wherever a
// command line goes to.
func (j *judge) under(l *layer, tightens bool) bool {
	if tightens && j.line != nil {
		return l.applies(j.call, &j.line.place, true)
	}
	return l.applies(j.call, j.place, tightens)
}

func denyRules(l *layer) []rule  { return l.deny }
func askRules(l *layer) []rule   { return l.ask }
func allowRules(l *layer) []rule { return l.allow }

// rules applies deny, then ask, then allow rules to a call that is no shell
// command, and reports whether one decided. A nil target, of an input that
// cannot be read, is covered by every rule that forbids and by none that
// allows.
func (j *judge) rules(t *target) bool {
	covers := func(allow bool) func(*rule) bool {
		return func(r *rule) bool {
			switch {
			case t == nil:
				return !allow
			case allow && j.tool.kind == kindEdit && slices.ContainsFunc(t.paths, func(p string) bool { return !r.spellsOut(p, j.place) }):
				return false
			case r.paths != nil && len(t.paths) == 0:
				return !allow
			case r.paths != nil:
				hit := func(p string) bool { return r.coversPath(p, j.place, allow) }
				if allow {
					return !slices.ContainsFunc(t.paths, func(p string) bool { return !hit(p) })
				}
				return slices.ContainsFunc(t.paths, hit)
			case r.argv != nil:
				return !allow
			}
			return r.coversURL(t.url, allow)
		}
	}
	if r := j.find(denyRules, false, covers(false)); r != nil {
		return j.decide(Deny, "deny "+r.text)
	}
	if r := j.find(askRules, false, covers(false)); r != nil {
		return j.decide(Ask, "ask "+r.text)
	}
	if r := j.searched(t); r != nil {
		j.v.Why = "searches a directory that may hold what the rule " + r.text + " is about"
		return j.decide(Ask, r.text)
	}
	if j.v.Rule != "" {
		return true // a built-in ask stands above every allow
	}
	if r := j.find(allowRules, true, covers(true)); r != nil {
		return j.decide(Allow, "allow "+r.text)
	}
	if t == nil {
		return false
	}
	g, which := j.pol.rememberedTool(func(g *Always) bool { return coversTool(g, j, t) })
	if g == nil {
		return false
	}
	j.v.Remembered = append(j.v.Remembered, which)
	return j.decide(Allow, "always "+g.String())
}

// searched is a rule that forbids or asks about files below a directory that
// Grep searches. What it would print of them is not known, so it asks.
func (j *judge) searched(t *target) *rule {
	if t == nil || j.tool.name != "Grep" {
		return nil
	}
	below := func(r *rule) bool {
		return r.paths != nil && slices.ContainsFunc(t.paths, func(p string) bool { return r.below(p, j.place) })
	}
	if r := j.find(denyRules, false, below); r != nil {
		return r
	}
	return j.find(askRules, false, below)
}

func (j *judge) decide(e Effect, rule string) bool {
	j.v.Effect, j.v.Rule = e, rule
	if e == Allow {
		j.v.Why = ""
	} else if j.v.Why == "" {
		j.v.Why = "the rule " + rule + " says so"
	}
	return true
}

// unknownField asks, above every allow, where the input has a field that tools
// of this kind are not known to have.
func (j *judge) unknownField(in input) {
	if name := in.unknown(j.tool.kind); name != "" {
		j.v.Effect, j.v.Rule, j.v.Why = Ask, "default", "its input has a field that nod does not know, "+name
	}
}

// other judges a tool that is neither a shell nor about files.
func (j *judge) other(in input) {
	url := in.inputURL()
	switch {
	case j.tool.kind == kindWeb:
		j.v = Verdict{Effect: Allow, Risk: schemas.RiskLow, Reasons: []string{"uses the network"}}
		if why := privateURL(url); j.tool.name == "WebFetch" && len(in) > 0 && why != "" {
			j.v = Verdict{Effect: Ask, Risk: schemas.RiskHigh, Reasons: []string{"uses the network", why}, Why: why}
		}
		j.unknownField(in)
	case j.tool.kind == kindNotes && j.pol.level >= levelReaders:
		j.v = Verdict{Effect: Allow, Risk: schemas.RiskLow}
	case j.tool.kind == kindNotes:
		j.v = Verdict{Effect: Ask, Risk: schemas.RiskLow, Reasons: []string{"keeps the agent's own notes"}}
	default:
		j.v = Verdict{Effect: Ask, Risk: schemas.RiskMedium, Reasons: []string{"unknown tool"}}
	}
	j.rules(&target{url: url})
}
