package policy

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy/commands"
	"github.com/nodbus/nod/actors/policy/pathname"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

// Propose returns rules that would allow a call about which nod asks, the narrowest first. The wider rules
// also allow similar calls. If nod cannot limit the effect of such rules, as for inline code, deletion and
// computed words, Propose returns nil.
func (p *Policy) Propose(c Call) []schemas.RememberedRule {
	if p.Check(c).Effect != Ask {
		return nil
	}
	var out []schemas.RememberedRule
	for _, options := range p.missingRules(c) {
		out = append(out, options...)
	}
	if len(out) == 0 || p.With(out...).Check(c).Effect != Allow {
		return nil
	}
	return out
}

// Remember returns the ways in which a person can allow a call from now on. Each way has all rules that the
// call needs. The first way is the narrowest: it allows only this call, unless every rule for the call also
// allows similar calls. A second way also allows similar calls. A third way also allows further commands that
// only read from the same service. The last way may be for one session only (schemas.Reach.Widest). Remember
// leaves out each way whose effect nod cannot limit, and returns nil if none is left or if nod does not ask
// about the call.
func (p *Policy) Remember(c Call) []schemas.Reach {
	ev := p.evaluate(c)
	if ev.verdict.Effect != Ask {
		return nil
	}
	missing := p.missingRules(c)
	var reaches []schemas.Reach
	for _, pick := range []func([]schemas.RememberedRule) []schemas.RememberedRule{
		func(options []schemas.RememberedRule) []schemas.RememberedRule { return options[:1] },
		func(options []schemas.RememberedRule) []schemas.RememberedRule { return options[len(options)-1:] },
		func(options []schemas.RememberedRule) []schemas.RememberedRule {
			return sameReads(options[len(options)-1])
		},
	} {
		var r schemas.Reach
		for _, options := range missing {
			for _, rule := range pick(options) {
				if !slices.ContainsFunc(r.Rules, func(o schemas.RememberedRule) bool { return o.String() == rule.String() }) {
					r.Rules = append(r.Rules, rule)
				}
			}
		}
		same := len(reaches) > 0 && reaches[len(reaches)-1].String() == r.String()
		if len(r.Rules) > 0 && !same && p.With(r.Rules...).Check(c).Effect == Allow {
			reaches = append(reaches, r)
		}
	}
	if r := ev.sessionReach(reaches); r != nil && p.WithReach(r).Check(c).Effect == Allow {
		reaches = append(reaches, *r)
	}
	return reaches
}

// sameReads returns a rule and the rules for the other commands that only read from the same service.
func sameReads(rule schemas.RememberedRule) []schemas.RememberedRule {
	all := []schemas.RememberedRule{rule}
	if rule.Prefix {
		for _, argv := range commands.OtherReads(rule.Argv) {
			all = append(all, schemas.RememberedRule{Tool: rule.Tool, Argv: argv, Prefix: true, Project: rule.Project})
		}
	}
	return all
}

// missingRules returns one list for each part of a call that is not allowed yet. A list has the rules that
// would allow its part, the narrowest first. If no rule can allow one of the parts, missingRules returns nil.
func (p *Policy) missingRules(c Call) [][]schemas.RememberedRule {
	loc := p.locate(&c)
	t := tools.Named(c.ToolName)
	in, err := tools.ReadInput(c.Input)
	if err != nil {
		return nil
	}
	switch t.Kind {
	case tools.Shell:
		return p.missingShellRules(&c, in, loc)
	case tools.Edit:
		return missingEditRules(in, t, &loc)
	case tools.Notes:
		return [][]schemas.RememberedRule{{{Tool: t.Name, Project: loc.Project}}}
	case tools.Unknown:
		if tools.Rememberable(t.Name) && loc.Project != "" {
			return [][]schemas.RememberedRule{{{Tool: t.Name, Project: loc.Project}}}
		}
	}
	return nil
}

func (p *Policy) missingShellRules(c *Call, in tools.Input, loc pathname.Location) [][]schemas.RememberedRule {
	src, why := p.commandAt(c, in, &loc)
	line, _ := p.shell.Read(src, loc)
	if why != "" || line.Why != "" || line.Comments || loc.Project == "" {
		return nil
	}
	var out [][]schemas.RememberedRule
	for i := range line.Parts {
		part := &line.Parts[i]
		if part.Why == "" {
			continue
		}
		argv, ok := part.Argv()
		if !ok || part.Secret {
			return nil
		}
		// If the part has an unknown number, a rule with any one number would be a rule for another call.
		hasNumber := part.HasUnknownNumber()
		var options []schemas.RememberedRule
		n := commands.RunnerWords(argv)
		if loc.Lost && line.Lost && len(line.Dirs) == 0 { // the directory is unknown, so no rule can name it
			if !hasNumber && !in.KeepsShell() && (n > 0 || commands.Boundable(argv)) {
				options = []schemas.RememberedRule{{Tool: "Bash", Argv: argv, Project: loc.Project, Elsewhere: true}}
			}
		} else if n > 0 {
			options = []schemas.RememberedRule{{Tool: "Bash", Argv: argv[:n], Prefix: true, Project: loc.Project}}
			if !hasNumber {
				options = append([]schemas.RememberedRule{{Tool: "Bash", Argv: argv, Project: loc.Project}}, options...)
			}
		} else if !hasNumber && commands.Boundable(argv) {
			dirs := slices.Sorted(slices.Values(line.Dirs))
			options = []schemas.RememberedRule{{Tool: "Bash", Argv: argv, Project: loc.Project, Dirs: slices.Compact(dirs)}}
		}
		if len(options) == 0 {
			return nil
		}
		out = append(out, options)
	}
	return out
}

func missingEditRules(in tools.Input, t tools.Tool, loc *pathname.Location) [][]schemas.RememberedRule {
	paths, ok := in.FilePaths(t)
	if !ok || loc.Project == "" {
		return nil
	}
	var out [][]schemas.RememberedRule
	for _, p := range paths {
		all := loc.Resolve(p)
		if len(all) != 1 || pathname.IsGlob(p) || pathname.NeverRemembered.Has(loc.Relative(all[0]), true) {
			return nil
		}
		options := []schemas.RememberedRule{{Tool: t.Name, Path: all[0], Project: loc.Project}}
		if dir := editDir(all[0], loc); !loc.AboveHome(dir) {
			options = append(options, schemas.RememberedRule{Tool: t.Name, Path: dir + "/", Project: loc.Project})
		}
		out = append(out, options)
	}
	return out
}

// editDir returns the directory below which a rule may allow edits like an edit of p. Usually this is the top
// of the project or work tree that contains p. If p is in a hidden directory or outside the project, editDir
// returns the directory of p.
func editDir(p string, loc *pathname.Location) string {
	dir := path.Dir(p)
	if !loc.InTree(p) {
		return dir
	}
	top := loc.Main
	if pathname.Within(p, loc.Project) {
		top = p[:len(p)-len(loc.Relative(p))]
	}
	for pathname.Within(dir, top) && len(pathname.Unusual(dir[len(top):])) == 0 {
		if dir == top {
			return top
		}
		dir = path.Dir(dir)
	}
	return dir
}

// Suggestion is a rule that would have saved a user some prompts in earlier calls.
type Suggestion struct {
	Rule   schemas.RememberedRule `json:"rule"`
	Spares int                    `json:"spares"` // the number of prompts that this rule spares, without those that earlier suggestions spare
	Also   []string               `json:"also"`   // the other calls that the rule allows, with their harm
	Risk   schemas.Risk           `json:"risk"`   // the highest risk of the calls to which the rule belongs
}

// String formats the suggestion for a person, with the rule as a line of settings.json.
func (s Suggestion) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  spares %d questions, risk %s\n", s.Rule.Quoted(), s.Spares, s.Risk)
	for _, also := range s.Also {
		fmt.Fprintf(&b, "  also: %s\n", also)
	}
	return b.String()
}

// Suggest returns the rules that would have saved the most prompts for these calls, the best rule first and
// at most limit rules. Each saved prompt counts only for the first rule that saves it.
func (p *Policy) Suggest(calls []Call, limit int) []Suggestion {
	var open []map[string]bool // has one entry for each call about which nod asks: the texts of all rules that would allow a part of the call
	byKey, risks := map[string]schemas.RememberedRule{}, map[string]schemas.Risk{}
	var parts [][][]string
	for _, c := range calls {
		v := p.Check(c)
		if v.Effect != Ask {
			continue
		}
		missing := p.missingRules(c)
		if len(missing) == 0 {
			continue
		}
		all := []schemas.RememberedRule{}
		question, keys := [][]string{}, map[string]bool{}
		for _, options := range missing {
			var names []string
			for _, a := range options {
				byKey[a.String()] = a
				names = append(names, a.String())
				keys[a.String()] = true
			}
			all = append(all, options...)
			question = append(question, names)
		}
		if p.With(all...).Check(c).Effect == Allow {
			parts, open = append(parts, question), append(open, keys)
			for key := range keys {
				risks[key] = schemas.HigherRisk(risks[key], v.Risk)
			}
		}
	}
	chosen := chooseRules(parts, open, byKey, limit)
	for i := range chosen {
		chosen[i].Risk = risks[chosen[i].Rule.String()]
	}
	return chosen
}

// SuggestLike returns a rule that would allow this call and similar calls. It returns false if nod does not
// ask about the call, or if no single rule can allow the call.
func (p *Policy) SuggestLike(c Call) (Suggestion, bool) {
	options := p.Propose(c)
	if len(options) == 0 {
		return Suggestion{}, false
	}
	rule := options[len(options)-1]
	ok := p.With(rule).Check(c).Effect == Allow
	return Suggestion{Rule: rule, Also: alsoAllows(rule), Risk: p.Check(c).Risk}, ok
}

func chooseRules(parts [][][]string, open []map[string]bool, byKey map[string]schemas.RememberedRule, limit int) []Suggestion {
	chosen := map[string]bool{}
	done := make([]bool, len(parts))
	var out []Suggestion
	for len(out) < limit {
		spares := map[string]int{}
		for i := range parts {
			for key := range open[i] {
				if !done[i] && hasRuleForEach(parts[i], chosen, key) {
					spares[key]++
				}
			}
		}
		// Of rules that save the same number of prompts, the rule with the most words is the narrowest, so it
		// comes first.
		best := slices.SortedFunc(maps.Keys(spares), func(a, b string) int {
			return cmp.Or(spares[b]-spares[a], len(byKey[b].Argv)-len(byKey[a].Argv), cmp.Compare(a, b))
		})
		if len(best) == 0 {
			return out
		}
		key := best[0]
		chosen[key] = true
		for i := range parts {
			done[i] = done[i] || hasRuleForEach(parts[i], chosen, "")
		}
		rule := byKey[key]
		out = append(out, Suggestion{Rule: rule, Spares: spares[key], Also: alsoAllows(rule)})
	}
	return out
}

// hasRuleForEach reports whether each part of a call has one of the chosen rules or the rule next.
func hasRuleForEach(parts [][]string, chosen map[string]bool, next string) bool {
	return !slices.ContainsFunc(parts, func(options []string) bool {
		return !slices.ContainsFunc(options, func(o string) bool { return chosen[o] || o == next })
	})
}

// alsoAllows describes the calls that a rule allows besides the call for which nod made it.
func alsoAllows(a schemas.RememberedRule) []string {
	switch {
	case a.Prefix:
		why := commands.Entry(commands.ProgramName(a.Argv[0])).Harm.Why
		for n := 2; n <= len(a.Argv); n++ {
			if h := commands.Entry(strings.Join(a.Argv[:n], " ")).Harm; h != (commands.Harm{}) {
				why = h.Why
			}
		}
		if why == "" {
			why = "runs " + a.Argv[0]
		}
		return []string{"the same command with any further words", why}
	case tools.Rememberable(a.Tool):
		return []string{"the same tool with any input that names no secret, no file outside the project, no address and no act such as delete"}
	case strings.HasSuffix(a.Path, "/"):
		return []string{"every file below it but for .git, agents' and editors' settings and secrets"}
	}
	return nil
}
