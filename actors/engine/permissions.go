package engine

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// needsOf returns the permissions that each tool needs: the defaults, changed by the settings.
func needsOf(s *schemas.Settings) map[string]policy.Access {
	needs := policy.DefaultNeeds()
	for _, t := range s.Permissions.Tools {
		if needs[t.Name] = policy.Access(t.Needs); t.Needs == schemas.NeedsNothing {
			delete(needs, t.Name)
		}
	}
	return needs
}

func (h *entitlements) set() schemas.SessionPermissions {
	return policy.Held(h.session.Permissions, answersIn(h.perms))
}

func (h *entitlements) managed() bool { return h.session.Permissions != nil }

func answersIn(entries []*standingEntry) []schemas.StandingAnswer {
	all := make([]schemas.StandingAnswer, len(entries))
	for i, s := range entries {
		all[i] = s.StandingAnswer
	}
	return all
}

// resolver returns a policy.Resolver that follows symbolic links on the machine of a request. The
// Resolver for another machine fails, because this engine cannot read links there.
func (e *intake) resolver(host string) policy.Resolver {
	if host != "" && host == e.Host {
		return policy.OnDisk
	}
	return func(string) (string, error) { return "", errOtherHost }
}

var errOtherHost = errors.New("its path is on another machine, whose links cannot be followed here")

func (e *intake) disk(host string) policy.Disk {
	if host != "" && host == e.Host {
		return policy.ThisDisk{}
	}
	return otherHostDisk{}
}

// otherHostDisk stands for another machine's files, which this engine cannot read. All its
// methods fail.
type otherHostDisk struct{}

func (otherHostDisk) Links(string) ([]string, error)  { return nil, errOtherHost }
func (otherHostDisk) WorkTree(string) (string, error) { return "", errOtherHost }

// asWritten is a Resolver that follows no links.
func asWritten(p string) (string, error) { return path.Clean(p), nil }

// permissionsResult is the result of comparing a request with the permissions of the request's
// session.
type permissionsResult struct {
	missing []policy.Permission      // the permissions that the call needs and the session lacks; an answer may grant them
	holder  string                   // the id of the session that gets the permissions, if the request asks for permissions
	unclear bool                     // nod cannot tell which permissions the call needs, so an answer allows only this call
	asks    bool                     // a person must be asked even if grants allow the call
	covered []schemas.RememberedRule // rules for this call, made from the session's permissions
	basis   basis                    // the stored entries from which the rules for this call were made
}

func (e *intake) checkPermissions(ctx context.Context, s *askState) (result, error) {
	switch s.request.Kind {
	case schemas.KindToolCall:
		return e.checkCallPermissions(s), nil
	case schemas.KindPermission:
		return e.checkPermissionRequest(ctx, s)
	}
	return result{}, nil
}

// checkCallPermissions compares a tool call with the session's permissions. In a managed session a
// person is asked about each call without permission, even if a rule allows it. A call with permission
// is allowed if the policy allows it. If the policy asks, the stage "grants" decides. Deny rules, ask
// rules, and the protection of secrets and of nod's own files outrank permissions.
func (e *intake) checkCallPermissions(s *askState) result {
	if s.rules.policy == nil {
		return result{}
	}
	set := s.held.set()
	resolve := e.resolver(s.request.Host)
	perms, err := policy.ToolNeeds(s.settings.needs, s.request.ToolName, s.request.ActionDetails)
	if errors.Is(err, policy.ErrOtherTool) && s.held.managed() && s.verdict.Effect == policy.Allow && s.verdict.Rule == policy.Default {
		perms, err = s.rules.policy.ShellNeeds(s.rules.call, e.disk(s.request.Host)) // only the preset allows this command, so the session needs permission for everything that the command may read
	}
	var missing []policy.Permission
	if err == nil {
		missing, err = policy.Missing(&set, perms, resolve)
	}
	out := &s.permissions
	switch {
	case err == nil && len(missing) == 0:
		out.covered = policy.Covered(s.request.ToolName, &set, perms, resolve)
		out.basis = s.held.basisOf(func(set schemas.SessionPermissions) bool {
			missing, err := policy.Missing(&set, perms, resolve)
			return err == nil && len(missing) == 0
		})
	case errors.Is(err, policy.ErrOtherTool):
	case s.held.managed():
		out.missing, out.unclear, out.asks = missing, err != nil, true
		v := s.verdict
		v.Effect, v.Rule = policy.Ask, "default permissions"
		v.Reasons = append(slices.Clone(v.Reasons), lackReason(missing, err))
		return result{verdict: v}
	}
	if s.verdict.Effect == policy.Allow {
		return result{outcome: decided, verdict: s.verdict, basis: out.basis}
	}
	return result{}
}

// checkGrants allows a tool call without asking a person if standing answers or the session's
// permissions cover the call. Deny and ask rules outrank standing answers and permissions.
func (e *intake) checkGrants(_ context.Context, s *askState) (result, error) {
	if s.request.Kind != schemas.KindToolCall || s.rules.policy == nil || s.permissions.asks {
		return result{}, nil
	}
	if e.conditions(s).forTeams {
		return result{}, nil // the conditions demand that people allow each of these calls
	}
	if r := s.containGranted(); r.outcome == decided {
		return r, nil
	}
	own, agents, covered := s.held.own, s.held.agents, s.permissions.covered
	if own.rules.Len()+agents.rules.Len()+len(covered)+len(own.brief) == 0 {
		return result{}, nil
	}
	brief, briefOf := own.sessionRules(s.freezes.Revision)
	v := s.rules.policy.WithLists(policy.NewAnswers(covered), own.rules, agents.rules, brief).Check(s.rules.call)
	if v.Effect != policy.Allow {
		return result{}, nil
	}
	var b basis
	for _, used := range v.Remembered {
		switch used.List {
		case 0:
			b.session, b.revision = s.permissions.basis.session, s.permissions.basis.revision
			b.answers = append(b.answers, s.permissions.basis.answers...)
		case 1:
			b.answers = append(b.answers, own.of[used.Index])
		case 2:
			b.answers = append(b.answers, agents.of[used.Index])
		case 3:
			b.answers = append(b.answers, briefOf[used.Index])
		}
	}
	return result{outcome: decided, verdict: v, basis: b}, nil
}

func lackReason(missing []policy.Permission, err error) string {
	if err != nil {
		return err.Error()
	}
	return "needs " + strings.Join(tags(missing), " and ") + ", which the session does not hold"
}

func tags(perms []policy.Permission) []string {
	all := make([]string, len(perms))
	for i, p := range perms {
		all[i] = p.String()
	}
	return all
}

// offerReaches adds to the prompt the rules and permissions that an answer may allow beyond the call.
// Without them, an answer allows only the call.
func (e *intake) offerReaches(_ context.Context, s *askState) (result, error) {
	s.plan.reaches = nil
	s.plan.run, _ = s.planRun(s.rules.verdict.Containment)
	if e.conditions(s).forTeams && s.request.Kind == schemas.KindToolCall {
		return result{}, nil // an answer about this call covers no later call
	}
	switch {
	case len(s.permissions.missing) > 0:
		s.plan.reaches = withinSize([]schemas.Reach{{Permissions: tags(s.permissions.missing)}})
	case s.plan.run != nil && len(s.plan.run.Container.Permissions) > 0:
		s.plan.reaches = withinSize([]schemas.Reach{{Permissions: s.plan.run.Container.Permissions}})
	case s.plan.run != nil:
	case s.rules.policy != nil && !s.permissions.unclear:
		s.plan.reaches = withinSize(s.rules.policy.Remember(s.rules.call))
	}
	return result{}, nil
}

func complete(r *schemas.Request) error {
	switch {
	case r.Kind != schemas.KindPermission:
	case strings.TrimSpace(r.Reason) == "":
		return schemas.Errorf(schemas.CodeValidation, "Reason is required.")
	case len(r.Permissions) == 0:
		return schemas.Errorf(schemas.CodeValidation, "Permission is required.")
	}
	return nil
}

// checkPermissionRequest checks a request for permissions. It allows the request at once if the session
// has the permissions. Agents rely on the order of the checks and on the error texts.
func (e *intake) checkPermissionRequest(ctx context.Context, s *askState) (result, error) {
	r := &s.request
	id, holder, err := e.holder(ctx, s)
	if err != nil {
		return result{}, err
	}
	s.permissions.holder = id
	if !r.Rejoin { // the text of a repeated request is not checked again, because the request may be pending or decided already
		if _, err := e.chooseForeground(ctx, s); err != nil {
			return result{}, err
		}
		if _, err := e.routes(ctx, s); err != nil {
			return result{}, err
		}
	}
	perms, err := parsePermissions(r.Permissions)
	if err != nil {
		return result{}, err
	}
	set := holder.set()
	resolve := e.resolver(r.Host)
	if r.Host != e.Host {
		resolve = asWritten
	}
	if s.permissions.missing, err = policy.Missing(&set, perms, resolve); err != nil {
		return result{}, schemas.Errorf(schemas.CodeValidation, "%v", err)
	}
	if len(s.permissions.missing) > 0 || schemas.HasLater(&holder.session) {
		return result{}, nil
	}
	rests := holder.basisOf(func(set schemas.SessionPermissions) bool {
		missing, err := policy.Missing(&set, perms, resolve)
		return err == nil && len(missing) == 0
	})
	return result{outcome: decided, verdict: policy.Verdict{Effect: policy.Allow, Rule: "already granted", Risk: schemas.RiskLow}, basis: rests}, nil
}

// holder returns the id and the entitlements of the session that gets requested permissions. It is the
// request's own session, or another session of the same agent if action_details.agent_id names one.
func (e *intake) holder(ctx context.Context, s *askState) (id string, holds entitlements, err error) {
	var details struct {
		AgentID string `json:"agent_id"`
	}
	if err := json.Unmarshal(s.request.ActionDetails, &details); err != nil {
		return "", entitlements{}, schemas.Errorf(schemas.CodeValidation, "action_details.agent_id: must be a string")
	}
	if details.AgentID == "" || details.AgentID == s.request.SessionID {
		return s.request.SessionID, s.held, nil
	}
	if s.held.session.Background {
		return "", entitlements{}, schemas.Errorf(schemas.CodeForbidden, "Background agents cannot request permissions for another agent.")
	}
	other, err := e.holdings.sessionOf(ctx, s.agent, details.AgentID)
	return details.AgentID, other, err
}

// markRouteFailed stores that a prompt could not be shown on one route. The result last is true if the
// request is pending and has no other route on which a person can answer.
func (e *effects) markRouteFailed(ctx context.Context, entry bus.Entry, connector, recipient string) (_ bus.Entry, last bool, err error) {
	left := false
	entry, err = e.life.update(ctx, entry, func(rec *schemas.Record) bool {
		changed := false
		left = false
		rec.Routes = slices.Clone(rec.Routes)
		for i := range rec.Routes {
			r := &rec.Routes[i]
			if r.Connector == connector && r.Recipient == recipient && !r.Failed {
				r.Failed, changed = true, true
			}
			left = left || !r.Failed && !e.outgoing(r.Connector)
		}
		return changed
	})
	return entry, err == nil && !left && !entry.Record.Terminal(), err
}

// cancelUnreachable cancels a request for permissions that no route can show. All other requests stay
// pending, because approvers still find them in an inbox.
func (e *effects) cancelUnreachable(ctx context.Context, entry bus.Entry, reason string) error {
	r, err := requestOf(&entry.Record)
	if err != nil || r.Kind != schemas.KindPermission {
		return err
	}
	d := e.decision(&r, entry.Record.Digest, schemas.Cancelled, schemas.By{Kind: schemas.ByPolicy, Name: schemas.NobodyReached})
	d.Message = "No approver could be shown the question: " + reason
	settled, err := e.life.decide(ctx, entry, d, everyWaiter)
	if err != nil {
		return err
	}
	return e.life.announce(settled)
}
