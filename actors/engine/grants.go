package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// endedKept is how long an ended grant is kept: longer than bus.Retention, for
// which the record of the decision that made it could bring it back.
const endedKept = 48 * time.Hour

func agentKey(agent string) string { return "agent." + agent }

// grant is what an answer allows beyond the call it is about, or nil.
func grant(entry *bus.Entry, r *schemas.Request, a *schemas.Answer, d *schemas.Decision) (*schemas.StandingAnswer, error) {
	scope := a.Scope
	if r.Kind == schemas.KindPermission && (scope == "" || scope == schemas.ScopeOnce) {
		scope = schemas.ScopeSession // what is asked for is to hold it
	}
	if scope == "" || scope == schemas.ScopeOnce || d.Outcome != schemas.Allowed {
		return nil, nil
	}
	g := &schemas.StandingAnswer{
		GrantID: d.DecisionID, Scope: scope, SessionID: cmp.Or(entry.Record.Holder, r.SessionID), Agent: entry.Record.Agent,
		By: d.By, CreatedAt: d.DecidedAt,
	}
	if a.ForSeconds > 0 {
		g.ExpiresAt = d.DecidedAt.Add(time.Duration(a.ForSeconds) * time.Second)
	}
	switch reaches := entry.Record.Remember; {
	case len(reaches) == 0:
		return nil, schemas.Errorf(schemas.CodeValidation, "scope: nod cannot say what a rule that allows this again would allow besides; allow it once")
	case a.Reach >= len(reaches):
		return nil, schemas.Errorf(schemas.CodeValidation, "reach: there are %d to choose from, counted from 0", len(reaches))
	default:
		g.Rules, g.Permissions = reaches[a.Reach].Rules, reaches[a.Reach].Permissions
	}
	return g, nil
}

// effects has what follows from a decision happen before anybody hears of it:
// "granted" is never heard before the grant is there. It may be called again.
func (e *Engine) effects(ctx context.Context, entry bus.Entry) error {
	d := entry.Record.Decision
	if d == nil {
		return nil
	}
	err := e.rememberDenial(ctx, entry)
	if err != nil || d.Grant == nil || d.Outcome != schemas.Allowed {
		return err
	}
	g := *d.Grant
	err = e.changeGrants(ctx, g.Scope, g.SessionID, g.Agent, func(all *[]schemas.StandingAnswer) bool {
		if slices.ContainsFunc(*all, func(old schemas.StandingAnswer) bool { return old.GrantID == g.GrantID }) {
			return false
		}
		*all = append(*all, g)
		return true
	})
	if err != nil {
		return fmt.Errorf("store the grant of %s: %w", entry.Key, err)
	}
	return e.logGrant(ctx, schemas.LogGranted, &g, g.CreatedAt, actorOf(d))
}

func (e *Engine) logGrant(ctx context.Context, kind schemas.LogKind, g *schemas.StandingAnswer, at time.Time, actor string) error {
	_, _, err := e.store.Log.Append(ctx, "grant:"+g.GrantID+":"+string(kind), schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: at, Kind: kind, SessionID: g.SessionID, Actor: actor, Rule: g.Reach(),
	})
	return err
}

func endedBefore(g *schemas.StandingAnswer, at time.Time) bool {
	end := g.RevokedAt
	switch {
	case !end.IsZero():
	case g.Once != nil && !g.Once.UsedAt.IsZero():
		end = g.Once.UsedAt
	default:
		end = g.ExpiresAt
	}
	return !end.IsZero() && end.Before(at)
}

// keeper is the key that keeps grants: a session's or an agent's.
type keeper struct {
	key    string
	kept   time.Duration // how long the broker keeps it; 0 is for good
	noun   any
	grants *[]schemas.StandingAnswer // of the noun
}

// keeperOf is empty until it is read.
func keeperOf(scope schemas.Scope, session, agent string, now time.Time) keeper {
	if scope != schemas.ScopeAgent {
		s := &schemas.Session{Type: schemas.TypeSession, SessionID: session, Agent: agent, CreatedAt: now, ActiveAt: now}
		return keeper{sessionKey(session), sessionKept, s, &s.Grants}
	}
	g := &schemas.Grants{Type: schemas.TypeGrants}
	return keeper{agentKey(agent), 0, g, &g.Grants}
}

// changeGrants changes what a key keeps by compare-and-set, for as long as
// change says that there is something to change. Grants that ended long ago go
// on the way.
func (e *Engine) changeGrants(ctx context.Context, scope schemas.Scope, session, agent string, change func(*[]schemas.StandingAnswer) bool) error {
	for {
		now := e.clock.now()
		k := keeperOf(scope, session, agent, now)
		revision, err := e.store.Sessions.Get(ctx, k.key, k.noun)
		if err != nil && !errors.Is(err, bus.ErrNotFound) {
			return err
		}
		if !change(k.grants) {
			return nil
		}
		*k.grants = slices.DeleteFunc(*k.grants, func(g schemas.StandingAnswer) bool { return endedBefore(&g, now.Add(-endedKept)) })
		_, err = e.putSession(ctx, k.key, k.noun, revision, k.kept)
		if !errors.Is(err, bus.ErrMoved) {
			return err
		}
	}
}

// grants lists what has been allowed beyond one call, ended grants too.
func (e *Engine) grants(ctx context.Context, c *bus.Call, q *schemas.Query) error {
	if !schemas.Inbox(c.Tokens[0]) { // a carrier is shown what was routed to it, and no more
		return schemas.Errorf(schemas.CodeForbidden, "a connector that carries questions to people may not list grants")
	}
	keys, err := e.store.Sessions.Listed(ctx, "session."+cmp.Or(q.SessionID, "*"))
	if err == nil && q.SessionID == "" {
		var agents []string
		agents, err = e.store.Sessions.Listed(ctx, "agent.*")
		keys = append(keys, agents...)
	}
	if err != nil {
		return err
	}
	page := schemas.Grants{Type: schemas.TypeGrants, Grants: []schemas.StandingAnswer{}}
	keys, page.Next = pageOf(keys, q)
	found, err := e.grantsUnderAll(ctx, keys)
	if err != nil {
		return err
	}
	page.Grants = append(page.Grants, found...)
	c.Reply(page)
	return nil
}

func (e *Engine) grantsUnderAll(ctx context.Context, keys []string) ([]schemas.StandingAnswer, error) {
	found := make([][]schemas.StandingAnswer, len(keys))
	errs := make([]error, len(keys))
	each(len(keys), func(i int) { found[i], errs[i] = e.grantsUnder(ctx, keys[i]) })
	return slices.Concat(found...), errors.Join(errs...)
}

func (e *Engine) grantsUnder(ctx context.Context, key string) ([]schemas.StandingAnswer, error) {
	scope := schemas.ScopeAgent
	if strings.HasPrefix(key, "session.") {
		scope = schemas.ScopeSession
	}
	k := keeperOf(scope, "", "", time.Time{})
	if _, err := e.store.Sessions.Get(ctx, key, k.noun); err != nil && !errors.Is(err, bus.ErrNotFound) {
		return nil, err
	}
	return *k.grants, nil
}

// revoke ends a grant, and what was shared of it. It answers when that is
// stored: whoever asks afterwards is judged by what is read then.
func (e *Engine) revoke(ctx context.Context, c *bus.Call) error {
	var r schemas.Revoke
	if err := schemas.Decode(c.Data, &r); err != nil {
		return err
	}
	by := c.Tokens[0]
	if r.From != nil {
		approver, err := e.approver(ctx, c.Tokens[0], r.From.UserID)
		if err != nil {
			return err
		}
		by = approver.Name
	}
	g, err := e.endGrant(ctx, &r, by)
	if err != nil {
		return err
	}
	c.Reply(schemas.Grants{Type: schemas.TypeGrants, Grants: []schemas.StandingAnswer{g}})
	return nil
}

// endGrant ends a grant, and then what was shared of it. It may be called again
// for what an earlier call has not done.
func (e *Engine) endGrant(ctx context.Context, r *schemas.Revoke, by string) (schemas.StandingAnswer, error) {
	g, err := e.endOne(ctx, r, by)
	if err == nil && len(g.Permissions) > 0 {
		err = e.endDerived(ctx, g.GrantID, by)
	}
	return g, err
}

func (e *Engine) endOne(ctx context.Context, r *schemas.Revoke, by string) (schemas.StandingAnswer, error) {
	scope := schemas.ScopeAgent
	if r.SessionID != "" {
		scope = schemas.ScopeSession
	}
	var ended schemas.StandingAnswer
	err := e.changeGrants(ctx, scope, r.SessionID, r.Agent, func(all *[]schemas.StandingAnswer) bool {
		i := slices.IndexFunc(*all, func(g schemas.StandingAnswer) bool { return g.GrantID == r.GrantID })
		if ended = (schemas.StandingAnswer{}); i < 0 {
			return false
		}
		g := &(*all)[i]
		change := g.RevokedAt.IsZero()
		if change {
			g.RevokedAt, g.RevokedBy = e.clock.now(), by
		}
		ended = *g
		return change
	})
	switch {
	case err != nil:
		return ended, err
	case ended.GrantID == "":
		return ended, schemas.Errorf(schemas.CodeNotFound, "no grant %s is known", r.GrantID)
	}
	return ended, e.logGrant(ctx, schemas.LogRevoked, &ended, ended.RevokedAt, by)
}
