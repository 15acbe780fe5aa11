package web

import (
	"context"
	"slices"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const historyLimit = 200 // maximum number of decisions in one reply of permissions.history

// listHistory replies with past decisions, the newest first.
func (c *client) listHistory(ctx context.Context, m clientMessage, a actionPayload) {
	prompts, err := c.opts.Records.History(ctx, a.SessionID)
	if err != nil {
		c.fail(m, failureOf(err))
		return
	}
	slices.SortStableFunc(prompts, func(x, y schemas.Prompt) int { return y.Decision.DecidedAt.Compare(x.Decision.DecidedAt) })
	if a.Limit <= 0 || a.Limit > historyLimit {
		a.Limit = historyLimit
	}
	now := c.clock.now()
	reply := historyReply{Permissions: []decidedView{}, ServerTime: now}
	if a.SessionID != "" {
		reply.Runs = people.RunsText(prompts)
	}
	size := 0
	for i := range prompts {
		if len(reply.Permissions) == a.Limit || size > pageBytes {
			reply.More = true
			break
		}
		size += len(prompts[i].Request.ActionDetails)
		reply.Permissions = append(reply.Permissions, newDecidedView(&prompts[i], now))
	}
	c.reply(m, reply)
}

// listGrants replies with the standing answers, the newest first.
func (c *client) listGrants(ctx context.Context, m clientMessage, a actionPayload) {
	all, err := c.opts.Records.Grants(ctx, a.SessionID)
	if err != nil {
		c.fail(m, failureOf(err))
		return
	}
	people.SortNewestFirst(all)
	now := c.clock.now()
	reply := grantsReply{Grants: []grantView{}, ServerTime: now}
	for i := range all {
		reply.Grants = append(reply.Grants, newGrantView(&all[i], now))
	}
	c.reply(m, reply)
}

func newGrantView(g *schemas.StandingAnswer, now time.Time) grantView {
	s := people.DescribeStanding(g, now)
	return grantView{
		GrantID: g.GrantID, Scope: g.Scope, SessionID: g.SessionID, Agent: g.Agent,
		Text: s.Covers, Lasts: people.ScopeAndTerm(g), By: s.By,
		CreatedAt: g.CreatedAt, ExpiresAt: g.ExpiresAt, RevokedAt: g.RevokedAt, RevokedBy: people.Line(g.RevokedBy), Live: g.Live(now),
		Effect: s.Effect, Where: s.Where, Uses: s.Uses, Until: s.Until, Question: s.From, Message: s.Message, Undo: s.Undo,
	}
}

// revokeGrant ends the standing answer with the payload's grant id.
func (c *client) revokeGrant(ctx context.Context, m clientMessage, a actionPayload) {
	all, err := c.opts.Records.Grants(ctx, "")
	i := slices.IndexFunc(all, func(g schemas.StandingAnswer) bool { return g.GrantID == a.GrantID })
	if err == nil && i < 0 {
		err = schemas.Errorf(schemas.CodeNotFound, "no grant %s is known", people.Line(a.GrantID))
	}
	if err == nil {
		err = c.opts.Records.Revoke(ctx, &all[i], c.user)
	}
	if err != nil {
		c.fail(m, answerFailureOf(err, c.clock.now()))
		return
	}
	c.reply(m, map[string]bool{"success": true})
}
