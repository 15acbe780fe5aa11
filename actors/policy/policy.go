// Package policy decides, without I/O and without state, what needs asking: a
// tool call goes in, a verdict comes out, always the same one.
//
// Rules are tried deny, then ask, then allow; the first list with a match
// decides, and only where none matches does the built-in table. Whatever the
// package does not know, it asks.
package policy

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/nodbus/nod/schemas"
)

// Effect is what a verdict does with a call.
type Effect string

// The effects. The zero Effect is none of them and must be treated as Ask.
const (
	Allow Effect = "allow"
	Ask   Effect = "ask"
	Deny  Effect = "deny"
)

// Call is a tool call to judge.
type Call struct {
	ToolName   string
	ActionType schemas.ActionType
	Input      json.RawMessage // the tool's input, an object
	Cwd        string
}

// Verdict is the judgement of a call.
type Verdict struct {
	Effect  Effect
	Rule    string // the rule that decided, as the user would write it; "default" for the table
	Risk    schemas.Risk
	Reasons []string // why the risk is what it is
}

// Policy is a compiled set of rules. It is immutable and safe for concurrent
// use.
type Policy struct {
	deny, ask, allow map[string]bool
}

var toolName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// New compiles rules. A rule that cannot be understood is an error that names
// it: a rule that is silently ignored would let something through.
func New(p schemas.Permissions) (*Policy, error) {
	var pol Policy
	for _, list := range []struct {
		name  string
		rules []string
		into  *map[string]bool
	}{{"deny", p.Deny, &pol.deny}, {"ask", p.Ask, &pol.ask}, {"allow", p.Allow, &pol.allow}} {
		*list.into = make(map[string]bool, len(list.rules))
		for i, rule := range list.rules {
			if !toolName.MatchString(rule) {
				return nil, fmt.Errorf("permissions.%s[%d]: %q is not a rule: expected a tool's name, such as \"Bash\"", list.name, i, rule)
			}
			(*list.into)[rule] = true
		}
	}
	return &pol, nil
}

// table is what each known tool does by default; every other tool asks.
var table = map[string]Verdict{
	"Read":         {Effect: Allow, Risk: schemas.RiskLow},
	"Glob":         {Effect: Allow, Risk: schemas.RiskLow},
	"Grep":         {Effect: Allow, Risk: schemas.RiskLow},
	"WebSearch":    {Effect: Allow, Risk: schemas.RiskLow},
	"WebFetch":     {Effect: Allow, Risk: schemas.RiskLow},
	"Write":        {Effect: Ask, Risk: schemas.RiskMedium, Reasons: []string{"writes a file"}},
	"Edit":         {Effect: Ask, Risk: schemas.RiskMedium, Reasons: []string{"writes a file"}},
	"NotebookEdit": {Effect: Ask, Risk: schemas.RiskMedium, Reasons: []string{"writes a file"}},
	"Bash":         {Effect: Ask, Risk: schemas.RiskMedium, Reasons: []string{"runs a command"}},
}

// Check judges a call.
func (p *Policy) Check(c Call) Verdict {
	v, known := table[c.ToolName]
	if !known {
		v = Verdict{Effect: Ask, Risk: schemas.RiskMedium, Reasons: []string{"unknown tool"}}
	}
	v.Rule = "default"
	switch {
	case p.deny[c.ToolName]:
		v.Effect, v.Rule = Deny, "deny "+c.ToolName
	case p.ask[c.ToolName]:
		v.Effect, v.Rule = Ask, "ask "+c.ToolName
	case p.allow[c.ToolName]:
		v.Effect, v.Rule = Allow, "allow "+c.ToolName
	}
	return v
}
