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

// needsOf is what tools need of permissions, with the settings' own.
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
	return policy.Held(h.session.Permissions, plain(h.perms))
}

func (h *entitlements) managed() bool { return h.session.Permissions != nil }

// plain are entries as the answers that they hold.
func plain(entries []*standingEntry) []schemas.StandingAnswer {
	all := make([]schemas.StandingAnswer, len(entries))
	for i, s := range entries {
		all[i] = s.StandingAnswer
	}
	return all
}

// basisOf is what a set of the session rests on that is enough: its own set, as far
// as it has one, and the first answers that make it enough, each with its sources.
func (h *entitlements) basisOf(enough func(schemas.SessionPermissions) bool) basis {
	b := basis{session: h.session.SessionID}
	if h.managed() {
		b.revision = h.revision
	}
	used := []*standingEntry{}
	for _, s := range h.perms {
		if enough(policy.Held(h.session.Permissions, plain(used))) {
			break
		}
		used = append(used, s)
	}
	for _, s := range used {
		b.answers = append(append(b.answers, s), h.sources[s.GrantID]...)
	}
	return b
}

// resolver follows links on this machine for a request made on it. Of another
// machine's files it can say nothing.
func (e *Engine) resolver(host string) policy.Resolver {
	if host != "" && host == e.Host {
		return policy.OnDisk
	}
	return func(string) (string, error) { return "", errElsewhere }
}

var errElsewhere = errors.New("its path is another machine's, whose links cannot be followed here")

// disk is of the machine that a request was made on.
func (e *Engine) disk(host string) policy.Disk {
	if host != "" && host == e.Host {
		return policy.ThisDisk{}
	}
	return elsewhere{}
}

// elsewhere is the Disk of another machine.
type elsewhere struct{}

func (elsewhere) Links(string) ([]string, error)  { return nil, errElsewhere }
func (elsewhere) WorkTree(string) (string, error) { return "", errElsewhere }

// asWritten is the Resolver of what a person is shown and asked for.
func asWritten(p string) (string, error) { return path.Clean(p), nil }

// basis is what an allow rests on: standing answers, and the session's own set if
// revision is not 0.
type basis struct {
	session  string
	revision uint64
	answers  []*standingEntry
}

// applyEntitlements has remembered answers, and what the session holds, settle a tool
// call, and returns what an allow rests on. A managed session's set decides about the
// tools that permissions are about: what it covers is allowed, for the rest a person
// is asked, whatever policy would allow. Rules that deny or ask, secrets and nod's own
// files stand above it all.
func (e *Engine) applyEntitlements(a *asked) basis {
	if a.rules == nil {
		return basis{}
	}
	set := a.held.set()
	perms, err := policy.ToolNeeds(a.under.needs, a.request.ToolName, a.request.ActionDetails)
	if errors.Is(err, policy.ErrOtherTool) && a.held.managed() && a.verdict.Effect == policy.Allow && a.verdict.Rule == policy.Default {
		perms, err = a.rules.ShellNeeds(a.call, e.disk(a.request.Host)) // no rule of the user's, but the preset: it reads what the set covers
	}
	covered := false
	if err == nil {
		a.missing, err = policy.Missing(&set, perms, e.resolver(a.request.Host))
		covered = err == nil && len(a.missing) == 0
	}
	var covering []schemas.Always
	var rests basis
	switch {
	case covered:
		covering = policy.Covered(a.request.ToolName, &set, perms, e.resolver(a.request.Host))
		rests = a.held.basisOf(func(set schemas.SessionPermissions) bool {
			missing, err := policy.Missing(&set, perms, e.resolver(a.request.Host))
			return err == nil && len(missing) == 0
		})
	case errors.Is(err, policy.ErrOtherTool):
	case a.held.managed():
		a.bare = err != nil
		a.verdict.Effect, a.verdict.Rule = policy.Ask, "default permissions"
		a.verdict.Reasons = append(slices.Clone(a.verdict.Reasons), lacks(a.missing, err))
		return basis{}
	default:
		a.missing = nil
	}
	if a.verdict.Effect == policy.Allow {
		return rests
	}
	return a.applyRemembered(covering, rests)
}

// applyRemembered has remembered answers allow a call, those of the session and of
// its agent and what the set that rests stands for covers.
func (a *asked) applyRemembered(covering []schemas.Always, rests basis) basis {
	own, agents := a.held.own, a.held.agents
	if own.rules.Len()+agents.rules.Len()+len(covering) == 0 {
		return basis{}
	}
	v := a.rules.WithLists(policy.NewAnswers(covering), own.rules, agents.rules).Check(a.call)
	if v.Effect != policy.Allow {
		return basis{}
	}
	a.verdict = v
	var b basis
	for _, used := range v.Remembered {
		switch used.List {
		case 0:
			b.session, b.revision = rests.session, rests.revision
			b.answers = append(b.answers, rests.answers...)
		case 1:
			b.answers = append(b.answers, own.of[used.Index])
		case 2:
			b.answers = append(b.answers, agents.of[used.Index])
		}
	}
	return b
}

func lacks(missing []policy.Permission, err error) string {
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

// remember is what answers beyond once may allow.
func (a *asked) remember() []schemas.Reach {
	switch {
	case len(a.missing) > 0:
		return []schemas.Reach{{Permissions: tags(a.missing)}}
	case a.rules != nil && !a.bare:
		return a.rules.Remember(a.call)
	}
	return nil
}

// complete checks what a request for permissions must say, before anything is
// stored of it.
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

// permission checks a complete request for permissions, in the order and the
// words that agents know, and finds what of them is missing. What is held
// already is granted at once.
func (e *Engine) permission(ctx context.Context, a *asked) (basis, error) {
	r := &a.request
	holder, err := e.holder(ctx, a)
	if err != nil {
		return basis{}, err
	}
	if !r.Rejoin { // else it may have been shown already, or decided: see create
		if err := e.foreground(ctx, a); err != nil {
			return basis{}, err
		}
		if _, err := e.routes(ctx, a); err != nil {
			return basis{}, err
		}
	}
	perms, err := parsePermissions(r.Permissions)
	if err != nil {
		return basis{}, err
	}
	set := holder.set()
	resolve := e.resolver(r.Host)
	if r.Host != e.Host {
		resolve = asWritten
	}
	if a.missing, err = policy.Missing(&set, perms, resolve); err != nil {
		return basis{}, schemas.Errorf(schemas.CodeValidation, "%v", err)
	}
	if len(a.missing) == 0 {
		a.verdict = policy.Verdict{Effect: policy.Allow, Rule: "already granted", Risk: schemas.RiskLow}
		return holder.basisOf(func(set schemas.SessionPermissions) bool {
			missing, err := policy.Missing(&set, perms, resolve)
			return err == nil && len(missing) == 0
		}), nil
	}
	return basis{}, nil
}

// holder is the session that a request for permissions is for: its own, or
// another of the same agent that action_details.agent_id names.
func (e *Engine) holder(ctx context.Context, a *asked) (entitlements, error) {
	a.holder = a.request.SessionID
	var details struct {
		AgentID string `json:"agent_id"`
	}
	if err := json.Unmarshal(a.request.ActionDetails, &details); err != nil {
		return entitlements{}, schemas.Errorf(schemas.CodeValidation, "action_details.agent_id: must be a string")
	}
	if details.AgentID == "" || details.AgentID == a.holder {
		return a.held, nil
	}
	if a.held.session.Background {
		return entitlements{}, schemas.Errorf(schemas.CodeForbidden, "Background agents cannot request permissions for another agent.")
	}
	other, err := e.sessionOf(ctx, a.agent, details.AgentID)
	if err != nil {
		return entitlements{}, err
	}
	a.holder = details.AgentID
	return other, nil
}

// failed notes that a prompt could not be shown on one route, and says whether
// that was the last one.
func (e *Engine) failed(ctx context.Context, entry bus.Entry, connector, recipient string) (_ bus.Entry, last bool, err error) {
	left := false
	entry, err = e.update(ctx, entry, func(rec *schemas.Record) bool {
		changed := false
		left = false
		rec.Routes = slices.Clone(rec.Routes)
		for i := range rec.Routes {
			r := &rec.Routes[i]
			if r.Connector == connector && r.Recipient == recipient && !r.Failed {
				r.Failed, changed = true, true
			}
			left = left || !r.Failed
		}
		return changed
	})
	return entry, err == nil && !left && !entry.Record.Terminal(), err
}

// unreachable ends a request for permissions that nobody can be shown. Any other
// stays open for those who look for themselves.
func (e *Engine) unreachable(ctx context.Context, entry bus.Entry, reason string) error {
	r, err := requestOf(&entry.Record)
	if err != nil || r.Kind != schemas.KindPermission {
		return err
	}
	d := e.decision(&r, entry.Record.Digest, schemas.Cancelled, schemas.By{Kind: schemas.ByPolicy, Name: schemas.NobodyReached})
	d.Message = "Nobody could be shown the question: " + reason
	settled, err := e.decide(ctx, entry, d, all)
	if err != nil {
		return err
	}
	return e.announce(settled)
}
