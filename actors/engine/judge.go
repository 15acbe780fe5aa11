package engine

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// judge is the policy's verdict. Whoever cannot be sure that its settings are
// the ones in force asks instead of allowing.
func (e *Engine) judge(a *asked) policy.Verdict {
	if a.request.Kind != schemas.KindToolCall {
		return policy.Verdict{Effect: policy.Ask, Risk: schemas.RiskMedium, Reasons: []string{"asks for " + string(a.request.Kind)}}
	}
	var where struct {
		Cwd string `json:"cwd"`
	}
	_ = json.Unmarshal(a.request.ActionDetails, &where) // the schema says that it is an object; no cwd is none
	call := policy.Call{
		ToolName: a.request.ToolName, ActionType: a.request.ActionType, Input: a.request.ActionDetails, Cwd: where.Cwd,
		Agent: a.agent, Host: a.request.Host, Project: a.request.Project,
	}
	rules, err := a.under.policy, error(nil)
	if e.Host != "" && (call.Host == "" || call.Host == e.Host) {
		if call.Home = e.Home; e.Projects != nil {
			rules, err = e.Projects.Tighten(rules, cmp.Or(call.Project, call.Cwd))
		}
	}
	if err != nil {
		v := a.under.policy.Check(call)
		if v.Effect != policy.Deny {
			v.Effect, v.Reasons = policy.Ask, append(v.Reasons, err.Error())
		}
		return v
	}
	v := rules.Check(call)
	switch {
	case v.Effect == policy.Deny:
	case v.Effect == policy.Allow && time.Since(a.under.read) < staleAfter:
	default:
		v.Effect = policy.Ask
	}
	return v
}
