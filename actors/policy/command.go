package policy

import (
	"slices"

	"github.com/nodbus/nod/schemas"
)

// shell judges a command line.
func (j *judge) shell(in input) {
	src, dir, why := in.command()
	if dir != "" {
		j.place.dirs = nil
		if all := newPlace(&Call{Cwd: dir}).dirs; len(all) > 0 {
			j.place.dirs = all
			if j.place.project == "" {
				j.place.project = all[0]
			}
		} else {
			why = "its directory is not a full path"
		}
	}
	j.place.lead = j.pol.secrets.leads(j.place.dirs)
	line, file := j.pol.read(src, *j.place)
	j.line = line
	if why != "" {
		line.refuse(why)
	}
	if line.harmless() && !j.shellRules() {
		j.v = Verdict{Effect: Allow, Risk: schemas.RiskLow}
		return
	}
	j.facts = j.pol.gather(line, file, src[:min(len(src), maxCommand)], j.place)
	j.v = Verdict{Effect: Ask, Why: line.reason()}
	j.v.Risk, j.v.Reasons = j.facts.risk(line)
	if j.facts.own != "" {
		j.v.Effect, j.v.Rule, j.v.Why = Deny, "default nod", j.facts.own
		return
	}
	if r := j.find(denyRules, false, j.facts.covered); r != nil {
		j.decide(Deny, "deny "+r.text)
		return
	}
	if j.pathRule(Deny) {
		return
	}
	if r := j.find(askRules, false, j.facts.covered); r != nil {
		j.v.Why = ""
		j.decide(Ask, "ask "+r.text)
		return
	}
	if j.pathRule(Ask) {
		return
	}
	if line.touches() {
		j.v.Rule = "default secrets"
		return
	}
	if line.harmless() {
		j.v = Verdict{Effect: Allow, Risk: schemas.RiskLow}
		return
	}
	if rule := j.allowedParts(); rule != "" {
		j.decide(Allow, rule)
	}
}

// shellRules reports whether some deny or ask rule may concern a shell
// command, or a path in it.
func (j *judge) shellRules() bool {
	for i := range j.pol.layers {
		for _, list := range [][]rule{j.pol.layers[i].deny, j.pol.layers[i].ask} {
			for k := range list {
				if list[k].coversTool(j.tool, false) || list[k].paths != nil {
					return true
				}
			}
		}
	}
	return false
}

// pathRule holds the deny or the ask rules about files against every word of
// the line, and reports whether one decided: a file that may not be read by
// Read may not be read by cat either.
func (j *judge) pathRule(effect Effect) bool {
	for i := range j.pol.layers {
		l := &j.pol.layers[i]
		rules := l.deny
		if effect == Ask {
			rules = l.ask
		}
		if !j.under(l, true) {
			continue
		}
		for k := range rules {
			if r := &rules[k]; r.paths != nil && j.facts.names(r, j.line) {
				j.v.Why = ""
				return j.decide(effect, string(effect)+" "+r.text)
			}
		}
	}
	return false
}

// allowedParts is the rule that allows the line: every part must be harmless
// or covered, alone and whole, and nothing around the parts may do more.
func (j *judge) allowedParts() string {
	if !j.mayAllow() || j.line.notes || j.line.lost || j.line.why != "" || len(j.line.parts) == 0 || !j.line.standsInProject() {
		return ""
	}
	found := ""
	for i := range j.line.parts {
		p := &j.line.parts[i]
		if p.why == "" {
			continue
		}
		if p.bad || p.touch || j.line.anySecret(p.words[1:], false) {
			return ""
		}
		rule := j.allowsPart(p)
		if rule == "" {
			return ""
		}
		found = rule
	}
	return found
}

// mayAllow reports whether there is any rule that could allow something.
func (j *judge) mayAllow() bool {
	return len(j.pol.grants) > 0 || slices.ContainsFunc(j.pol.layers, func(l layer) bool { return len(l.allow) > 0 })
}

func (j *judge) allowsPart(p *part) string {
	argv := make([]string, len(p.words))
	for i, w := range p.words {
		if w.glob {
			return "" // what it stands for is not what the rule showed
		}
		argv[i] = w.text
	}
	if r := j.find(allowRules, true, func(r *rule) bool { return r.coversArgv(argv, true) }); r != nil {
		return "allow " + r.text
	}
	if p.fed {
		return "" // its input was no part of what the answer showed, and may be code
	}
	g, which := j.pol.rememberedCommand(argv, func(g *Always) bool { return coversArgv(g, j, argv) })
	if g == nil {
		return ""
	}
	j.v.Remembered = append(j.v.Remembered, which)
	return "always " + g.String()
}
