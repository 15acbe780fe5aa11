package policy

import (
	"slices"

	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

// Selection is a set of rules that selects calls for other purposes than a verdict. It is
// immutable and safe for concurrent use.
type Selection struct{ pol *Policy }

// NewSelection compiles rules. The argument at is the place of the rules in the settings, for
// the error about a rule that cannot be parsed.
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

// Covers reports whether one of the rules covers a call, as an ask rule would. It also reports
// true for a command line that nod cannot compare whole with a rule about the call's tool.
func (s *Selection) Covers(c Call) bool {
	ev := s.pol.evaluate(c)
	if ev.verdict.Effect == Ask && ev.verdict.Rule != Default && ev.verdict.Rule != secretsRule {
		return true
	}
	if ev.verdict.Effect == Deny { // the call writes nod's own files, and only a denial by a built-in rule comes before these rules
		return true
	}
	unread := ev.facts != nil && ev.facts.Incomplete || ev.line != nil && len(ev.line.Parts) == 0
	return ev.tool.Kind == tools.Shell && unread && slices.ContainsFunc(s.pol.layers, func(l rules.Layer) bool {
		return slices.ContainsFunc(l.Ask, func(r rules.Rule) bool { return r.CoversTool(ev.tool, false) || r.HasPath() })
	})
}
