package web

import (
	"context"
	"slices"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// historyLimit is how many decisions a reply of permissions.history holds.
const historyLimit = 200

// history says who decided what, when and where.
func (c *client) history(ctx context.Context, m received, a asked) {
	prompts, err := c.opts.Ledger.History(ctx, a.SessionID)
	if err != nil {
		c.fail(m, failed(err))
		return
	}
	slices.SortStableFunc(prompts, func(x, y schemas.Prompt) int { return y.Decision.DecidedAt.Compare(x.Decision.DecidedAt) })
	if a.Limit <= 0 || a.Limit > historyLimit {
		a.Limit = historyLimit
	}
	now := c.clock.now()
	reply := history{Permissions: []decided{}, ServerTime: now}
	size := 0
	for i := range prompts {
		if len(reply.Permissions) == a.Limit || size > pageBytes {
			reply.More = true
			break
		}
		size += len(prompts[i].Request.ActionDetails)
		reply.Permissions = append(reply.Permissions, newDecided(&prompts[i], now))
	}
	c.answer(m, reply)
}

// grants lists the standing answers, the newest first.
func (c *client) grants(ctx context.Context, m received, a asked) {
	all, err := c.opts.Ledger.Grants(ctx, a.SessionID)
	if err != nil {
		c.fail(m, failed(err))
		return
	}
	people.SortNewestFirst(all)
	now := c.clock.now()
	reply := grants{Grants: []granted{}, ServerTime: now}
	for i := range all {
		reply.Grants = append(reply.Grants, grantOf(&all[i], now))
	}
	c.answer(m, reply)
}

func grantOf(g *schemas.StandingAnswer, now time.Time) granted {
	s := people.DescribeStanding(g, now)
	return granted{
		GrantID: g.GrantID, Scope: g.Scope, SessionID: g.SessionID, Agent: g.Agent,
		Text: s.Covers, Lasts: people.ScopeAndTerm(g), By: s.By,
		CreatedAt: g.CreatedAt, ExpiresAt: g.ExpiresAt, RevokedAt: g.RevokedAt, RevokedBy: people.Line(g.RevokedBy), Live: g.Live(now),
		Effect: s.Effect, Where: s.Where, Uses: s.Uses, Until: s.Until, Question: s.From, Message: s.Message, Undo: s.Undo,
	}
}

// revoke ends a standing answer. It is known by its id alone; where it is kept is read.
func (c *client) revoke(ctx context.Context, m received, a asked) {
	all, err := c.opts.Ledger.Grants(ctx, "")
	i := slices.IndexFunc(all, func(g schemas.StandingAnswer) bool { return g.GrantID == a.GrantID })
	if err == nil && i < 0 {
		err = schemas.Errorf(schemas.CodeNotFound, "no grant %s is known", people.Line(a.GrantID))
	}
	if err == nil {
		err = c.opts.Ledger.Revoke(ctx, &all[i], c.user)
	}
	if err != nil {
		c.fail(m, refused(err, c.clock.now()))
		return
	}
	c.answer(m, map[string]bool{"success": true})
}
