package web

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const historyLimit = 200 // the largest number of decisions in one reply of permissions.history

// listHistory replies with past decisions, the newest first. If the payload names an outcome, the reply
// contains only decisions with that outcome. If the payload has a query, the reply contains only
// requests whose texts contain all words of the query.
func (c *client) listHistory(ctx context.Context, m clientMessage, a actionPayload) {
	if a.Limit <= 0 || a.Limit > historyLimit {
		a.Limit = historyLimit
	}
	words := strings.Fields(strings.ToLower(a.Query))
	newest := people.Newest{Most: a.Limit, Keep: func(p *schemas.Prompt) bool {
		return (a.Outcome == "" || p.Decision.Outcome == a.Outcome) && mentions(p, words)
	}}
	var runs people.RunTally
	err := c.opts.Records.EachDecided(ctx, a.SessionID, func(page []schemas.Prompt) error {
		return errors.Join(runs.Add(page), newest.Add(page))
	})
	if err != nil {
		c.fail(m, failureOf(err))
		return
	}
	now := c.clock.now()
	reply := historyReply{Permissions: []decidedView{}, More: newest.More, ServerTime: now}
	if a.SessionID != "" {
		reply.Runs = runs.Text()
	}
	size, prompts := 0, newest.Prompts()
	for i := range prompts {
		if size > pageBytes {
			reply.More = true
			break
		}
		size += len(prompts[i].Request.ActionDetails)
		reply.Permissions = append(reply.Permissions, newDecidedView(&prompts[i], now))
	}
	c.reply(m, reply)
}

// mentions reports whether the texts of a decided request contain all words, which are in
// lower case.
func mentions(p *schemas.Prompt, words []string) bool {
	if len(words) == 0 {
		return true
	}
	r := &p.Request
	text := strings.ToLower(strings.Join([]string{
		people.Summary(p, searchWidth), people.Outcome(p.Decision, p), p.Agent, r.AgentName, p.SessionID, r.SessionLabel,
		r.Project, r.Host, r.ToolName, r.Title, p.PendingID, string(r.ActionDetails),
	}, "\n"))
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// searchWidth is the width, in columns, of the summary in which a search looks for words. The
// search also looks in the whole input.
const searchWidth = 1000

// listSessions replies with the sessions of the requests that are stored.
func (c *client) listSessions(ctx context.Context, m clientMessage) {
	now := c.clock.now()
	tally := people.NewSessionTally(now)
	err := c.opts.Records.EachDecided(ctx, "", tally.Add)
	if err == nil {
		err = c.opts.Desk.EachPending(ctx, schemas.Query{Recipient: c.user}, tally.Add)
	}
	if err != nil {
		c.fail(m, failureOf(err))
		return
	}
	grants, err := c.opts.Records.Grants(ctx, "")
	if err != nil {
		c.fail(m, failureOf(err))
		return
	}
	holds := map[string]int{}
	for i := range grants {
		if grants[i].Live(now) && grants[i].Scope == schemas.ScopeSession {
			holds[grants[i].SessionID]++
		}
	}
	reply := sessionsReply{Sessions: []sessionView{}, ServerTime: now}
	for _, s := range tally.Sessions() {
		s.Name, s.Label, s.Host, s.Project = people.Line(s.Name), people.Line(s.Label), people.Line(s.Host), people.ProjectName(s.Project)
		reply.Sessions = append(reply.Sessions, sessionView{s, holds[s.ID]})
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

// revokeGrant ends the standing answer whose id is in the payload.
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
