package policy

import (
	"path"
	"slices"
	"strings"
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
	argv  []string
	paths []string
	url   string
}

// find is the first rule of the matching layers' lists that covers the call.
func (j *judge) find(list func(*layer) []rule, allow bool, covers func(*rule) bool) *rule {
	for i := range j.pol.layers {
		l := &j.pol.layers[i]
		rules := list(l)
		if len(rules) == 0 || !l.applies(j.call, j.place, !allow) {
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
	if j.v.Rule != "" {
		return true // a built-in ask stands above every allow
	}
	if r := j.find(allowRules, true, covers(true)); r != nil {
		return j.decide(Allow, "allow "+r.text)
	}
	for i := range j.pol.grants {
		if g := &j.pol.grants[i]; t != nil && g.coversTool(j, t) {
			return j.decide(Allow, "always "+g.String())
		}
	}
	return false
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

// files judges a tool that reads, searches or writes files.
func (j *judge) files(in input) {
	paths, known := in.filePaths(j.tool)
	j.v = Verdict{Effect: Allow, Risk: schemas.RiskLow}
	writes := j.tool.kind == kindEdit
	if writes {
		j.v = Verdict{Effect: Ask, Risk: schemas.RiskMedium, Reasons: []string{"writes a file"}}
	}
	if j.tool.kind == kindSearch {
		for _, k := range []string{"pattern", "glob", "include"} {
			if s, ok := in.text(k); ok && (k != "pattern" || j.tool.name == "Glob") {
				known = known || k == "pattern"
				if k == "pattern" && isAbs(slashes(s)) {
					s, _ = path.Split(slashes(s[:strings.IndexAny(s+"*", "*?[")]))
					paths = append(paths, s)
				} else if p := spelledOut(s); p != "" && j.pol.secret(p, j.place, true) || k != "pattern" && j.secretGlob(s) {
					paths = append(paths, s)
					j.namesSecret(s)
				}
			}
		}
	}
	for _, p := range paths {
		j.path(p, writes)
	}
	if j.v.Effect == Deny {
		return
	}
	if j.rules(&target{paths: paths}) {
		return
	}
	if writes && j.pol.level >= levelProject && known && j.editable(paths) {
		j.v.Effect = Allow
	}
}

// spelledOut is what a pattern of a search says about names: its segments but
// for those that start with a wildcard.
func spelledOut(pattern string) string {
	var out []string
	for seg := range strings.SplitSeq(slashes(pattern), "/") {
		if seg != "" && strings.IndexByte("*?[", seg[0]) < 0 {
			out = append(out, seg)
		}
	}
	return strings.Join(out, "/")
}

// secretGlob reports whether a search's filter is about files that hold
// secrets, one {a,b} in it written out.
func (j *judge) secretGlob(filter string) bool {
	last := filter[strings.LastIndexByte(filter, '/')+1:]
	before, rest, group := strings.Cut(last, "{")
	inside, after, closed := strings.Cut(rest, "}")
	if !group || !closed {
		inside, before, after = last, "", ""
	}
	for one := range strings.SplitSeq(inside, ",") {
		one = before + one + after
		if strings.Trim(one, "*") != "" && !sourceGlob(one) && j.pol.secret(one, j.place, true) {
			return true
		}
	}
	return false
}

func (j *judge) namesSecret(p string) {
	j.v.Effect, j.v.Rule, j.v.Risk, j.v.Why = Ask, "default secrets", schemas.RiskHigh, "names a secret or settings, "+p
	j.reason("touches a secret or settings")
}

// path notes what stands against a path: nod's own files and secrets.
func (j *judge) path(p string, writes bool) {
	switch {
	case visible(p) != "":
		j.v.Effect, j.v.Rule, j.v.Why = Ask, "default secrets", "its path "+visible(p)
	case writes && j.ownPath(p):
		j.v = Verdict{Effect: Deny, Rule: "default nod", Risk: schemas.RiskHigh, Reasons: []string{"changes nod itself"}, Why: "agents may not write nod's own files"}
		return
	case j.pol.secret(p, j.place, false):
		j.namesSecret(p)
	case j.tool.name == "Grep" && j.place.aboveHome(p):
		j.v.Effect, j.v.Rule, j.v.Why = Ask, "default secrets", "searches a home directory"
	}
	if !j.place.inProject(p) && (j.place.project != "" || isAbs(slashes(p))) {
		j.reason("outside the project")
	}
}

func (j *judge) reason(r string) {
	if !slices.Contains(j.v.Reasons, r) {
		j.v.Reasons = append(j.v.Reasons, r)
	}
}

// fixedNames are files of a project that say what may run, or make a directory
// a repository: git reads HEAD, config and hooks wherever it finds them.
var fixedNames = compileNames([]string{
	".git", "head", ".gitmodules", ".gitattributes", ".claude", ".codex", ".cursor", ".gemini", ".qwen", ".copilot", ".opencode", ".augment", ".aider*",
	".github/hooks", ".vscode", ".idea", ".devcontainer", ".husky", ".githooks", ".envrc", ".direnv", ".pre-commit-config.yaml", "lefthook.yml",
	".mise.toml", "mise.toml", ".tool-versions",
})

// editable reports whether every path is one of the project's own files.
func (j *judge) editable(paths []string) bool {
	for _, p := range paths {
		if p == "" || isGlob(p) || !j.place.inProject(p) || fixedNames.has(p, true) {
			return false
		}
		for _, full := range j.place.resolve(p) {
			if rel := strings.TrimPrefix(full, j.place.project); rel == "" || fixedNames.has(rel, true) {
				return false
			}
		}
	}
	return len(paths) > 0
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
	case j.tool.kind == kindNotes && j.pol.level >= levelReaders:
		j.v = Verdict{Effect: Allow, Risk: schemas.RiskLow}
	case j.tool.kind == kindNotes:
		j.v = Verdict{Effect: Ask, Risk: schemas.RiskLow, Reasons: []string{"keeps the agent's own notes"}}
	default:
		j.v = Verdict{Effect: Ask, Risk: schemas.RiskMedium, Reasons: []string{"unknown tool"}}
	}
	j.rules(&target{url: url})
}

// confirm adds what the matching layers want of an answer.
func (j *judge) confirm() {
	if j.v.Effect != Ask {
		return
	}
	for i := range j.pol.layers {
		l := &j.pol.layers[i]
		if len(l.confirms) == 0 || !l.applies(j.call, j.place, true) {
			continue
		}
		for _, c := range l.confirms {
			if riskRank(j.v.Risk) < riskRank(c.MinRisk) || len(c.rules) > 0 && !j.confirmCovers(c.rules) {
				continue
			}
			j.v.Confirm.CodeWord = j.v.Confirm.CodeWord || c.CodeWord
			j.v.Confirm.SecondDevice = j.v.Confirm.SecondDevice || c.SecondDevice
			if slices.Index(schemas.ChannelOrder, c.MinChannel) > slices.Index(schemas.ChannelOrder, j.v.Confirm.MinChannel) {
				j.v.Confirm.MinChannel = c.MinChannel
			}
		}
	}
}

func (j *judge) confirmCovers(rules []rule) bool {
	return slices.ContainsFunc(rules, func(r rule) bool {
		return r.coversTool(j.tool, false) && (r.argv == nil || j.facts == nil || j.facts.covered(&r))
	})
}

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
	if r := j.find(askRules, false, j.facts.covered); r != nil {
		j.v.Why = ""
		j.decide(Ask, "ask "+r.text)
		return
	}
	if r := j.pathRule(); r != "" {
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

// pathRule holds deny and ask rules about files against every word of the
// line: a file that may not be read by Read may not be read by cat either.
func (j *judge) pathRule() string {
	for _, effect := range []Effect{Deny, Ask} {
		for i := range j.pol.layers {
			l := &j.pol.layers[i]
			rules := l.deny
			if effect == Ask {
				rules = l.ask
			}
			if !l.applies(j.call, j.place, true) {
				continue
			}
			for k := range rules {
				if r := &rules[k]; r.paths != nil && j.facts.names(r, j.line) {
					j.v.Why = ""
					j.decide(effect, string(effect)+" "+r.text)
					return r.text
				}
			}
		}
	}
	return ""
}

// allowedParts is the rule that allows the line: every part must be harmless
// or covered, alone and whole, and nothing around the parts may do more.
func (j *judge) allowedParts() string {
	if !j.mayAllow() || j.line.notes || j.line.why != "" || len(j.line.parts) == 0 || !j.line.standsInProject() && len(j.line.dirs) > 1 {
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
	for i := range j.pol.grants {
		if g := &j.pol.grants[i]; g.coversArgv(j, argv) {
			return "always " + g.String()
		}
	}
	return ""
}
