package engine

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

func (e *intake) checkFrozen(_ context.Context, s *askState) (result, error) {
	if s.frozen = s.freezes.Of(s.agent, s.request.SessionID); s.frozen == nil {
		return result{}, nil
	}
	return decide(policy.Verdict{Effect: policy.Deny, Rule: "frozen by " + s.frozen.By.Name, Risk: schemas.RiskMedium}), nil
}

// checkRules applies the policy. A denial is final in every session; an allow is final unless
// the session is managed.
func (e *intake) checkRules(_ context.Context, s *askState) (result, error) {
	s.rules = e.evaluatePolicy(s)
	v := s.rules.verdict
	if v.Effect == policy.Deny || v.Effect == policy.Allow && !s.managed {
		return decide(v), nil
	}
	return result{verdict: v}, nil
}

// evaluatePolicy returns the verdict of the policy. An allow becomes an ask if this engine's
// settings or freezes may be out of date, or if the project's rules cannot be read.
func (e *intake) evaluatePolicy(s *askState) rulesResult {
	r := &s.request
	if plan, ok := r.Plan(); ok {
		return rulesResult{verdict: s.settings.policy.CheckPlan(policy.CallOf(s.agent, r), plan)}
	}
	if r.Kind == schemas.KindQuestion {
		return rulesResult{verdict: policy.Verdict{Effect: policy.Ask, Risk: schemas.RiskLow, Reasons: []string{"an answer grants nothing"}}}
	}
	if r.Kind != schemas.KindToolCall {
		return rulesResult{verdict: policy.Verdict{Effect: policy.Ask, Risk: schemas.RiskMedium, Reasons: []string{"asks for " + string(r.Kind)}}}
	}
	out := rulesResult{call: policy.CallOf(s.agent, r)}
	rules, err := s.settings.policy, error(nil)
	local := e.isLocal(r)
	if local {
		if bytes.Contains(r.ActionDetails, []byte("git")) {
			out.call.Tops = policy.ThisDisk{}.Tops(out.call.Project)
		}
		out.call.Home, out.call.Changeable = e.Home, s.changesGit(local) && !s.ignores
		out.call.Seen = e.exposed.look(rules, out.call)
		if e.Projects != nil {
			tight, unread := e.Projects.Tighten(rules, rules.Dirs(out.call)...)
			if err = unread; err == nil && tight != rules {
				rules, out.call.Seen = tight, e.exposed.look(tight, out.call) // the project may have rules about further paths
			}
		}
	}
	if err != nil {
		v := s.settings.policy.Check(out.call)
		if v.Effect != policy.Deny {
			v.Effect, v.Reasons = policy.Ask, append(v.Reasons, err.Error())
		}
		out.verdict = v
		return out
	}
	v := rules.Check(out.call)
	switch {
	case v.Effect == policy.Deny:
	case s.settings.stale(), time.Since(e.freezes.now().read) >= staleAfter:
		v.Effect = policy.Ask
	case s.later:
		v.Effect, v.Reasons = policy.Ask, append(slices.Clip(v.Reasons), "a later version of nod has limits for this session that this engine does not know")
	case v.Effect == policy.Contain, v.Effect == policy.Allow && v.Containment != nil && s.containable():
		out.policy = rules
		if v = s.contain(&out, v); v.Effect == policy.Allow && out.run == nil {
			s.hardenGit(&out, local, nil)
		}
	case v.Effect != policy.Allow:
		v.Effect, out.policy = policy.Ask, rules
		if v.Containment != nil {
			v.Reasons = append(slices.Clip(v.Reasons), v.Why)
		}
	default:
		out.policy = rules
		s.hardenGit(&out, local, v.LeavesOut)
		if len(v.LeavesOut) > 0 && out.updated == nil {
			v.Effect, v.Why = policy.Ask, "nod cannot leave the secrets that git tracks out of this line"
			v.Reasons = append(slices.Clip(v.Reasons), v.Why)
		}
	}
	out.call.Changeable = false // from here on, no stage changes the call
	out.verdict = v
	return out
}

// hardenGit changes an allowed call so that git runs no program from its configuration, and leaves
// out the files with secrets that the parameter leavesOut names. If the settings do not say whether
// to do so, hardenGit changes only calls on this machine whose hosts accept changed inputs, and only
// if there is such a program or file. The decision then names what git leaves out.
func (s *askState) hardenGit(out *rulesResult, local bool, leavesOut []string) {
	if !s.changesGit(local) {
		return
	}
	var programs []string
	if s.settings.settings.Permissions.HardenGit == nil {
		if programs = (policy.ThisDisk{}).GitPrograms(out.call); len(programs) == 0 && len(leavesOut) == 0 {
			return
		}
	}
	changed := false
	if out.updated, changed = out.policy.HardenInput(out.call); !changed {
		return
	}
	var notes []string
	if len(leavesOut) > 0 {
		notes = append(notes, "git leaves out "+strings.Join(leavesOut, ", ")+", because of secrets")
	}
	if len(programs) > 0 {
		notes = append(notes, "git runs without "+strings.Join(programs, ", ")+"; \"harden_git\": false in nod's permissions lets git use what its configuration names")
	}
	out.note = strings.Join(notes, "; ")
}

// changesGit reports whether nod may change the git reads of a call. The field Contain of a request
// is set if the request's host accepts changed inputs.
func (s *askState) changesGit(local bool) bool {
	on := s.settings.settings.Permissions.HardenGit
	return on != nil && *on || on == nil && local && s.request.Contain != ""
}
