package engine

import (
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// judge is the policy's verdict. Whoever cannot be sure that its settings are
// the ones in force, or which rules its project has, asks instead of allowing.
func (e *Engine) judge(a *asked) policy.Verdict {
	if a.request.Kind == schemas.KindQuestion {
		return policy.Verdict{Effect: policy.Ask, Risk: schemas.RiskLow, Reasons: []string{"an answer grants nothing"}}
	}
	if a.request.Kind != schemas.KindToolCall {
		return policy.Verdict{Effect: policy.Ask, Risk: schemas.RiskMedium, Reasons: []string{"asks for " + string(a.request.Kind)}}
	}
	a.call = policy.CallOf(a.agent, &a.request)
	rules, err := a.under.policy, error(nil)
	if e.Host != "" && (a.call.Host == "" || a.call.Host == e.Host) {
		if a.call.Home = e.Home; e.Projects != nil {
			rules, err = e.Projects.Tighten(rules, rules.Dirs(a.call)...)
		}
	}
	if err != nil {
		v := a.under.policy.Check(a.call)
		if v.Effect != policy.Deny {
			v.Effect, v.Reasons = policy.Ask, append(v.Reasons, err.Error())
		}
		return v
	}
	v := rules.Check(a.call)
	switch {
	case v.Effect == policy.Deny:
	case time.Since(a.under.read) >= staleAfter, time.Since(e.freezes.now().read) >= staleAfter:
		v.Effect = policy.Ask
	case v.Effect != policy.Allow:
		v.Effect, a.rules = policy.Ask, rules
	default:
		a.rules = rules
		if a.under.settings.Permissions.HardenGit {
			a.updated, _ = rules.HardenInput(a.call)
		}
	}
	return v
}
