package policy

import (
	"slices"

	"github.com/nodbus/nod/actors/policy/rules"
	"github.com/nodbus/nod/actors/policy/tools"
	"github.com/nodbus/nod/schemas"
)

// Selection is a set of rules that selects calls. The rules do not decide the calls. A Selection is
// immutable and safe for concurrent use.
type Selection struct{ pol *Policy }

// NewSelection compiles rules. If a rule cannot be parsed, the error names at, the place of the
// rules in the settings.
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

// Covers reports whether one of the rules covers a call as an ask rule would. It also reports true
// for a command line that nod cannot compare completely with the rules, if one of the rules is for
// the call's tool or for paths.
func (s *Selection) Covers(c Call) bool {
	ev := s.pol.evaluate(c)
	if ev.verdict.Effect == Ask && ev.verdict.Rule != Default && ev.verdict.Rule != secretsRule {
		return true
	}
	if ev.verdict.Effect == Deny { // the call writes nod's own files; the built-in denial hides whether the rules cover the call
		return true
	}
	unread := ev.facts != nil && ev.facts.Incomplete || ev.line != nil && len(ev.line.Parts) == 0
	return ev.tool.Kind == tools.Shell && unread && slices.ContainsFunc(s.pol.layers, func(l rules.Layer) bool {
		return slices.ContainsFunc(l.Ask, func(r rules.Rule) bool { return r.CoversTool(ev.tool, false) || r.HasPath() })
	})
}
