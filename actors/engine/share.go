package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

const notHeldMessage = "You can only grant permissions you already have."

// maxShared bounds the grants that a session may receive from other sessions, because all grants of a
// session must fit into one message.
const maxShared = 256

// share grants permissions of one session to another session of the same agent. The shared grant ends
// when the first of its source grants ends. Agents rely on the order of the checks and on the error
// texts.
func (e *holdings) share(ctx context.Context, c *caller, s *schemas.Share) (schemas.Grants, error) {
	g, err := e.sharedGrant(ctx, c.name, s)
	if err != nil {
		return schemas.Grants{}, err
	}
	if err := e.matchShared(ctx, g); err != nil {
		return schemas.Grants{}, err
	}
	if err := e.addAnswer(ctx, g, s.SessionID); err != nil {
		return schemas.Grants{}, fmt.Errorf("store the grant that %s shares: %w", s.SessionID, err)
	}
	if err := e.verifyShared(ctx, g); err != nil {
		return schemas.Grants{}, err
	}
	return schemas.Grants{Type: schemas.TypeGrants, Grants: []schemas.StandingAnswer{*g}}, nil
}

// sharedGrant checks a share and returns the grant to store, after it has confirmed the
// permissions of the sharing session at the store.
func (e *holdings) sharedGrant(ctx context.Context, agent string, s *schemas.Share) (*schemas.StandingAnswer, error) {
	if strings.TrimSpace(s.Reason) == "" {
		return nil, schemas.Errorf(schemas.CodeValidation, "Reason is required.")
	}
	if err := e.refuseFrozen(ctx, agent, s.SessionID); err != nil {
		return nil, err
	}
	perms, err := parsePermissions(s.Permissions)
	if err != nil {
		return nil, err
	}
	if _, err := e.requireSession(ctx, agent, s.SessionID, ""); err != nil {
		return nil, err
	}
	giver, err := e.entitlementsOf(ctx, agent, s.SessionID)
	if err != nil {
		return nil, err
	}
	if err := refuseLaterSession(&giver.session); err != nil {
		return nil, err
	}
	sources, until, err := giver.shares(perms)
	if err != nil {
		return nil, err
	}
	if _, err := e.sessionOf(ctx, agent, s.AgentID); err != nil {
		return nil, err
	}
	rests := giver.basisOf(func(set schemas.SessionPermissions) bool {
		missing, err := policy.Missing(&set, perms, asWritten)
		return err == nil && len(missing) == 0
	})
	if err := e.requireBasis(ctx, basis{s.SessionID, rests.revision, rests.answers}); err != nil {
		return nil, err
	}
	return &schemas.StandingAnswer{
		GrantID: bus.NewID(), Scope: schemas.ScopeSession, SessionID: s.AgentID, Agent: agent, Permissions: tags(perms),
		DerivedFrom: sources, By: schemas.By{Kind: schemas.ByAgent, Name: s.SessionID}, CreatedAt: e.clock.now(), ExpiresAt: until,
	}, nil
}

// matchShared replaces g by the grant of an earlier equal share, if that grant is in force, so that
// sharing again changes nothing. The error is FORBIDDEN if the session has too many shared grants.
func (e *holdings) matchShared(ctx context.Context, g *schemas.StandingAnswer) error {
	given, err := e.answersOf(ctx, sessionKey(g.SessionID))
	if err != nil {
		return err
	}
	shared, now := 0, g.CreatedAt
	for _, old := range given.byID {
		if old.By.Kind != schemas.ByAgent {
			continue
		}
		shared++
		if old.Live(now) && slices.Equal(old.Permissions, g.Permissions) && slices.Equal(old.DerivedFrom, g.DerivedFrom) && old.By == g.By {
			*g = old.StandingAnswer
			return nil
		}
	}
	if shared >= maxShared {
		return schemas.Errorf(schemas.CodeForbidden, "%s has %d grants from other sessions, which is the limit: ask a person instead", g.SessionID, maxShared)
	}
	return nil
}

// verifyShared checks a new shared grant after it is stored, because an engine that has just revoked a
// source of the grant may have missed the new grant. If so, verifyShared ends the new grant, and the
// share fails.
func (e *holdings) verifyShared(ctx context.Context, g *schemas.StandingAnswer) error {
	if len(g.DerivedFrom) == 0 {
		return nil
	}
	h, err := e.entitlementsOf(ctx, g.Agent, g.SessionID)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(h.perms, func(held *standingEntry) bool { return held.GrantID == g.GrantID }) {
		return nil
	}
	if _, err := e.endGrant(ctx, &schemas.Revoke{GrantID: g.GrantID, SessionID: g.SessionID, Agent: g.Agent}, g.By.Name); err != nil {
		return fmt.Errorf("end the grant that %s has shared and no longer holds: %w", g.By.Name, err)
	}
	return schemas.Errorf(schemas.CodeForbidden, notHeldMessage)
}

// withLiveSources returns the answers in perms that are in force together with all answers from which
// they were shared. When such a source ends, the answers that were shared from it end at once. A source
// that is no longer stored counts as ended. The result sources has the sources by the grant_id of the
// shared answer.
func (e *holdings) withLiveSources(ctx context.Context, perms []*standingEntry) (held []*standingEntry, sources map[string][]*standingEntry, err error) {
	now := e.clock.now()
	live := map[string]*standingEntry{}
	queue, read := perms, map[string]bool{}
	for i := 0; i < len(queue); i++ { // the loop appends to queue, because a source may itself be shared
		s := queue[i]
		if s.Live(now) {
			live[s.GrantID] = s
		}
		giver := s.By.Name
		if len(s.DerivedFrom) == 0 || read[giver] {
			continue
		}
		read[giver] = true
		given, err := e.answersOf(ctx, sessionKey(giver))
		if err != nil {
			return nil, nil, err
		}
		queue = append(slices.Clone(queue), given.perms...)
	}
	sources = map[string][]*standingEntry{}
	for _, s := range perms {
		if from, ok := restsOn(s, live, map[string]bool{}); ok {
			held, sources[s.GrantID] = append(held, s), from
		}
	}
	return held, sources, nil
}

// restsOn returns all direct and indirect sources of an answer. The result ok means that the answer
// and all its sources are in force.
func restsOn(s *standingEntry, live map[string]*standingEntry, seen map[string]bool) (from []*standingEntry, ok bool) {
	if live[s.GrantID] == nil {
		return nil, false
	}
	seen[s.GrantID] = true
	for _, id := range s.DerivedFrom {
		if seen[id] {
			continue
		}
		source := live[id]
		if source == nil {
			return nil, false
		}
		more, ok := restsOn(source, live, seen)
		if !ok {
			return nil, false
		}
		from = append(append(from, source), more...)
	}
	return from, true
}

func parsePermissions(named []string) ([]policy.Permission, error) {
	if len(named) == 0 {
		return nil, schemas.Errorf(schemas.CodeValidation, "Permission is required.")
	}
	perms := make([]policy.Permission, len(named))
	for i, tag := range named {
		var err error
		if perms[i], err = policy.ParsePermission(tag); err != nil {
			return nil, err
		}
	}
	return perms, nil
}

// shares returns the ids of the grants that contain the given permissions, and the time at which the
// first of these grants ends. A zero time means that none of them ends. Permissions that nod's owner
// has set come from no grant. The error is FORBIDDEN if the session lacks a permission.
func (h *entitlements) shares(perms []policy.Permission) (sources []string, until time.Time, err error) {
	lacks := func(set schemas.SessionPermissions) bool {
		missing, err := policy.Missing(&set, perms, asWritten)
		return err != nil || len(missing) > 0
	}
	if lacks(h.set()) {
		return nil, until, schemas.Errorf(schemas.CodeForbidden, notHeldMessage)
	}
	var used []schemas.StandingAnswer
	for _, g := range h.perms {
		if !lacks(policy.Held(h.session.Permissions, used)) {
			break
		}
		used = append(used, g.StandingAnswer)
		sources = append(sources, g.GrantID)
		if !g.ExpiresAt.IsZero() && (until.IsZero() || g.ExpiresAt.Before(until)) {
			until = g.ExpiresAt
		}
	}
	return sources, until, nil
}

// sessionOf returns the entitlements of an agent's session. The error is NOT_FOUND if the agent has no
// such session.
func (e *holdings) sessionOf(ctx context.Context, agent, session string) (entitlements, error) {
	unknown := schemas.Errorf(schemas.CodeNotFound, "Agent not found: %s", session)
	if !schemas.ValidID(session) {
		return entitlements{}, unknown
	}
	h, err := e.entitlementsOf(ctx, agent, session)
	if err != nil {
		return entitlements{}, err
	}
	if h.session.Agent != agent { // the session belongs to no agent, or to another agent
		return entitlements{}, unknown
	}
	return h, nil
}

// endDerived ends the grants that were directly or indirectly shared from a grant. It also ends those
// shared from a grant that has already ended, because an earlier call may have stopped halfway.
func (e *holdings) endDerived(ctx context.Context, from, by string) error {
	ended := map[string]bool{from: true}
	for more := true; more; {
		more = false
		keys, err := e.store.Sessions.ListKeys(ctx, standingFilter("session.*"))
		if err != nil {
			return err
		}
		entries, _, err := e.readEntries(ctx, keys)
		if err != nil {
			return err
		}
		for _, g := range entries {
			if ended[g.GrantID] || !slices.ContainsFunc(g.DerivedFrom, func(id string) bool { return ended[id] }) {
				continue
			}
			if _, err := e.endGrantAlone(ctx, &schemas.Revoke{GrantID: g.GrantID, SessionID: g.SessionID, Agent: g.Agent}, by); err != nil {
				return err
			}
			ended[g.GrantID], more = true, true
		}
	}
	return nil
}

// gate replies to a scheduled task with the permissions that its session lacks. The session gets a
// notice about these permissions. No person is asked. Even if permissions are missing, nod does not
// stop the task.
func (e *holdings) gate(ctx context.Context, c *caller, g *schemas.Gate) (schemas.GateReply, error) {
	agent := c.name
	if _, err := e.requireSession(ctx, agent, g.SessionID, ""); err != nil {
		return schemas.GateReply{}, err
	}
	h, err := e.entitlementsOf(ctx, agent, g.SessionID)
	if err != nil {
		return schemas.GateReply{}, err
	}
	set := h.set()
	reply := schemas.GateReply{Type: schemas.TypeGateReply, Missing: []string{}}
	for _, tag := range g.Permissions {
		p, err := policy.ParsePermission(tag)
		if err != nil || !policy.Covers(&set, p, asWritten) {
			reply.Missing = append(reply.Missing, tag)
		}
	}
	if len(reply.Missing) > 0 {
		text := fmt.Sprintf("Cron gate permissions not allowed for %q (%s): %s. The gate check was skipped and the task ran anyway.",
			g.Name, g.GateID, strings.Join(reply.Missing, ", "))
		if err := e.notify(ctx, agent, g.SessionID, "", schemas.NoticeGate, text); err != nil {
			return schemas.GateReply{}, err
		}
	}
	return reply, nil
}
