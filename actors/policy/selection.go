package policy

import (
	"slices"

	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

// Selection is a set of rules that selects calls, such as the calls for a condition, without deciding them. A
// Selection is immutable and safe for concurrent use.
type Selection struct{ pol *Policy }

// NewSelection compiles rules. If it cannot parse a rule, the error contains the argument at, which names the
// setting with the rules.
func NewSelection(at string, lines []string) (*Selection, error) {
	pol, err := New(schemas.Permissions{Preset: PresetDesign})
	if err != nil {
		return nil, err
	}
	layer, err := rules.Compile(at, schemas.PolicyLayer{Permissions: schemas.Rules{Ask: lines}})
	if err != nil {
		return nil, err
	}
	pol.layers = append(pol.layers, layer)
	return &Selection{pol}, nil
}

// Covers reports whether one of the rules covers a call as an ask rule would. Covers also returns true if nod
// cannot compare all of a command line with the rules, and one of the rules is for the call's tool or for
// paths.
func (s *Selection) Covers(c Call) bool {
	ev := s.pol.evaluate(c)
	if ev.verdict.Effect == Ask && ev.verdict.Rule != Default && ev.verdict.Rule != secretsRule {
		return true
	}
	if ev.verdict.Effect == Deny { // the call would change nod itself; the built-in denial ends the check before the rules are tried
		return true
	}
	unread := ev.facts != nil && ev.facts.Incomplete || ev.line != nil && len(ev.line.Parts) == 0
	return ev.tool.Kind == tools.Shell && unread && slices.ContainsFunc(s.pol.layers, func(l rules.Layer) bool {
		return slices.ContainsFunc(l.Ask, func(r rules.Rule) bool { return r.CoversTool(ev.tool, false) || r.HasPath() })
	})
}
