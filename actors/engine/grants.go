package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

func agentKey(agent string) string { return "agent." + agent }

// grant returns the standing answer that a person's answer makes, or nil if the answer allows
// only its own call. The error is VALIDATION_ERROR if the answer names a scope, duration, rule or
// permission that the request does not offer. The parameter freezes is the present revision of the freezes.
func grant(entry *bus.Entry, r *schemas.Request, a *schemas.Answer, d *schemas.Decision, freezes uint64) (*schemas.StandingAnswer, error) {
	scope := a.Scope
	if r.Kind == schemas.KindPermission && (scope == "" || scope == schemas.ScopeOnce) {
		scope = schemas.ScopeSession // an allowed permission always lasts for the session
	}
	if scope == "" || scope == schemas.ScopeOnce || d.Outcome != schemas.Allowed {
		return nil, nil
	}
	g := &schemas.StandingAnswer{
		GrantID: d.DecisionID, Scope: scope, SessionID: cmp.Or(entry.Record.Holder, r.SessionID), Agent: entry.Record.Agent,
		By: d.By, Question: r.PendingID, CreatedAt: d.DecidedAt,
	}
	switch reaches := entry.Record.Remember; {
	case len(reaches) == 0:
		return nil, schemas.Errorf(schemas.CodeValidation, "scope: nod cannot tell what else a lasting rule for this call would allow; allow it once")
	case a.Reach >= len(reaches):
		return nil, schemas.Errorf(schemas.CodeValidation, "reach: there are %d to choose from, counted from 0", len(reaches))
	}
	reach := &entry.Record.Remember[a.Reach]
	seconds, err := reach.Lasts(scope, a.ForSeconds)
	if err != nil {
		return nil, err
	}
	if seconds > 0 {
		g.ExpiresAt = d.DecidedAt.Add(time.Duration(seconds) * time.Second)
	}
	if g.Rules, g.Permissions = reach.Rules, reach.Permissions; reach.SessionOnly() {
		g.SessionOnly = &schemas.SessionOnly{Freezes: freezes}
	}
	return g, nil
}

// applyEffects stores the standing answers that follow from a question's decision. Callers
// publish the decision only afterwards, so that each reported grant is stored. Repeated calls
// change nothing.
func (e *holdings) applyEffects(ctx context.Context, question bus.Entry) error {
	d := question.Record.Decision
	if d == nil || question.Record.Joined != "" || e.clock.now().Sub(d.DecidedAt) > bus.Retention {
		return nil // bus.Retention after the decision, the broker may have removed an ended standing answer, and storing it again would revive it
	}
	if err := e.answerCall(ctx, question); err != nil {
		return fmt.Errorf("store the effects of %s: %w", question.Key, err)
	}
	if d.Grant == nil || d.Grant.Call != nil || d.Outcome != schemas.Allowed {
		return nil
	}
	g := *d.Grant
	if err := e.addAnswer(ctx, &g, actorOf(d)); err != nil {
		return fmt.Errorf("store the standing answer of %s: %w", question.Key, err)
	}
	return nil
}

// addAnswer stores and logs a standing answer, unless an answer with the same id is stored.
func (e *holdings) addAnswer(ctx context.Context, g *schemas.StandingAnswer, actor string) error {
	_, err := e.changeAnswer(ctx, ownerOf(g), g.GrantID, func(old *schemas.StandingAnswer) bool {
		if old.GrantID != "" {
			return false
		}
		*old = *g
		return true
	})
	if err != nil {
		return err
	}
	return e.logAnswer(ctx, schemas.LogGranted, g, g.CreatedAt, actor)
}

func (e *holdings) logAnswer(ctx context.Context, kind schemas.LogKind, g *schemas.StandingAnswer, at time.Time, actor string) error {
	id := fmt.Sprintf("grant:%s:%s:%d", g.GrantID, kind, at.UnixNano())
	_, _, err := e.store.Log.Append(ctx, id, schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: at, Kind: kind, SessionID: g.SessionID, Actor: actor, Rule: g.Reach(),
	})
	return err
}

// listGrants lists the standing answers, including ended ones. For a carrier, it leaves out the answers
// that the recipient may not undo. A page may therefore be short or even empty although another page
// follows.
func (e *holdings) listGrants(ctx context.Context, c *caller, q *schemas.Query) (schemas.Grants, error) {
	mayUndo, err := e.undoFilter(ctx, c.name, schemas.From{UserID: q.Recipient})
	if err != nil {
		return schemas.Grants{}, err
	}
	keys, err := e.store.Sessions.ListKeys(ctx, standingFilter(sessionKey(cmp.Or(q.SessionID, "*"))))
	if err == nil && q.SessionID == "" {
		var agents []string
		agents, err = e.store.Sessions.ListKeys(ctx, standingFilter(agentKey("*")))
		keys = append(keys, agents...)
	}
	if err != nil {
		return schemas.Grants{}, err
	}
	page := schemas.Grants{Type: schemas.TypeGrants, Grants: []schemas.StandingAnswer{}}
	keys, page.Next = pageOf(keys, q)
	found := make([]*standingEntry, len(keys))
	errs := make([]error, len(keys))
	each(len(keys), func(i int) { found[i], errs[i] = e.readEntry(ctx, keys[i]) })
	if err := errors.Join(errs...); err != nil {
		return schemas.Grants{}, err
	}
	for _, s := range found {
		if s != nil && mayUndo(&s.StandingAnswer) {
			page.Grants = append(page.Grants, s.StandingAnswer)
		}
	}
	return page, nil
}

// revoke ends a grant and all grants that were shared from it. The reply comes when the end of these
// grants is stored, so later requests are checked without them. A carrier gets NOT_FOUND for a grant
// that its recipient may not undo.
func (e *holdings) revoke(ctx context.Context, c *caller, r *schemas.Revoke) (schemas.Grants, error) {
	by, from := c.name, schemas.From{}
	if r.From != nil {
		from = *r.From
		approver, err := e.approver(ctx, c.name, &from)
		if err != nil {
			return schemas.Grants{}, err
		}
		if err := e.logVouched(ctx, &approver, c.name, &from, r.SessionID, "", bus.NewID()); err != nil {
			return schemas.Grants{}, err
		}
		by = approver.Name
	}
	mayUndo, err := e.undoFilter(ctx, c.name, from)
	if err != nil {
		return schemas.Grants{}, err
	}
	entry, err := e.readEntry(ctx, standingKey(revokedOwner(r), r.GrantID))
	if err != nil {
		return schemas.Grants{}, err
	}
	if entry == nil || !mayUndo(&entry.StandingAnswer) {
		return schemas.Grants{}, unknownGrant(r.GrantID)
	}
	g, err := e.endGrant(ctx, r, by)
	if err != nil {
		return schemas.Grants{}, err
	}
	return schemas.Grants{Type: schemas.TypeGrants, Grants: []schemas.StandingAnswer{g}}, nil
}

func unknownGrant(id string) error {
	return schemas.Errorf(schemas.CodeNotFound, "no grant %s is known", id)
}

func revokedOwner(r *schemas.Revoke) string {
	if r.SessionID != "" {
		return sessionKey(r.SessionID)
	}
	return agentKey(r.Agent)
}

// endGrant ends a grant, and then the grants that were shared from it. If endGrant fails, the
// next call ends the remaining grants.
func (e *holdings) endGrant(ctx context.Context, r *schemas.Revoke, by string) (schemas.StandingAnswer, error) {
	g, err := e.endGrantAlone(ctx, r, by)
	if err == nil && len(g.Permissions) > 0 {
		err = e.endDerived(ctx, g.GrantID, by)
	}
	return g, err
}

func (e *holdings) endGrantAlone(ctx context.Context, r *schemas.Revoke, by string) (schemas.StandingAnswer, error) {
	ended, err := e.changeAnswer(ctx, revokedOwner(r), r.GrantID, func(g *schemas.StandingAnswer) bool {
		if g.GrantID == "" || !g.RevokedAt.IsZero() {
			return false
		}
		g.RevokedAt, g.RevokedBy = e.clock.now(), by
		return true
	})
	switch {
	case err != nil:
		return ended, err
	case ended.GrantID == "":
		return ended, unknownGrant(r.GrantID)
	}
	return ended, e.logAnswer(ctx, schemas.LogRevoked, &ended, ended.RevokedAt, by)
}
