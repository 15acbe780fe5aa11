package web

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// listSessions replies with the sessions of all stored requests. If the payload has a cursor, the reply has
// sessions of older requests, from the log.
func (c *client) listSessions(ctx context.Context, m clientMessage, a actionPayload) {
	reply := &sessionsReply{Sessions: []sessionView{}, ServerTime: c.clock.now()}
	var err error
	if a.Before == "" {
		err = c.addStoredSessions(ctx, reply)
	} else {
		err = c.addLoggedSessions(ctx, reply, a.Before)
	}
	if err != nil {
		c.fail(m, failureOf(err))
		return
	}
	c.reply(m, reply)
}

func (c *client) addStoredSessions(ctx context.Context, reply *sessionsReply) error {
	tally := people.NewSessionTally(reply.ServerTime)
	err := c.opts.Records.EachDecided(ctx, "", tally.Add)
	if err == nil {
		err = c.opts.Desk.EachPending(ctx, schemas.Query{Recipient: c.user}, tally.Add)
	}
	if err != nil {
		return err
	}
	grants, err := c.opts.Records.Grants(ctx, "")
	if err != nil {
		return err
	}
	holds := map[string]int{}
	for i := range grants {
		if grants[i].Live(reply.ServerTime) && grants[i].Scope == schemas.ScopeSession {
			holds[grants[i].SessionID]++
		}
	}
	reply.Next = logCursor
	reply.add(tally, holds)
	return nil
}

func (r *sessionsReply) add(tally *people.SessionTally, holds map[string]int) {
	for _, s := range tally.Sessions() {
		s.Name, s.Label, s.Host, s.Project = people.Line(s.Name), people.Line(s.Label), people.Line(s.Host), people.ProjectName(s.Project)
		r.Sessions = append(r.Sessions, sessionView{s, holds[s.ID]})
	}
}

// addLoggedSessions adds the sessions of a bounded part of the log. Other parts of the log may have further
// requests of the same sessions.
func (c *client) addLoggedSessions(ctx context.Context, reply *sessionsReply, before string) (err error) {
	after, log := strings.CutPrefix(before, logCursor)
	if !log {
		return errNoCursor
	}
	tally := people.NewSessionTally(reply.ServerTime)
	reply.Next, reply.Reach, err = c.readLog(ctx, "", after, func(page []schemas.LoggedRequest) (full bool) {
		for i := range page {
			tally.AddLogged(&page[i])
		}
		return false
	})
	reply.add(tally, nil)
	return err
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

// revokeGrant ends the standing answer whose id is in the payload.
func (c *client) revokeGrant(ctx context.Context, m clientMessage, a actionPayload) {
	all, err := c.opts.Records.Grants(ctx, "")
	i := slices.IndexFunc(all, func(g schemas.StandingAnswer) bool { return g.GrantID == a.GrantID })
	if err == nil && i < 0 {
		err = schemas.Errorf(schemas.CodeNotFound, "no grant %s is known", people.Line(a.GrantID))
	}
	if err == nil {
		err = c.revoke(ctx, &all[i])
	}
	if err != nil {
		c.fail(m, answerFailureOf(err, c.clock.now()))
		return
	}
	c.reply(m, map[string]bool{"success": true})
}

func (c *client) revoke(ctx context.Context, g *schemas.StandingAnswer) error {
	if !schemas.IsLoginUser(c.user) {
		return c.opts.Records.Revoke(ctx, g, c.user)
	}
	from, err := c.person(ctx, c.session)
	if err != nil {
		return err
	}
	return c.opts.Logins.RevokeAs(ctx, g, from)
}
