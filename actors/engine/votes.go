package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// knowWithin is how long a change to settings with votes waits for every running engine to say that it
// knows votes. It is shorter than the caller's timeout.
const knowWithin = 4 * time.Second

// maxVotes bounds the votes in a record. The votes may be for different options.
const maxVotes = 16

// answerConditions returns the conditions for allowing a record's request, and the approver who has the
// identity in the answer. If a condition about people may apply, both results come from confirmed
// settings. The error is FORBIDDEN if the identity belongs to no approver.
func (e *connectors) answerConditions(ctx context.Context, rec *schemas.Record, r *schemas.Request, who schemas.Approver, connector string, from schemas.From) (*conditions, schemas.Approver, error) {
	c := e.conditionsOf(e.settings.now(), rec.Agent, r, rec.Risk)
	if rec.Terminal() || !c.newer && rec.Type != schemas.TeamRecord {
		return c, who, nil
	}
	now, err := e.confirmedSettings(ctx)
	if err != nil {
		return nil, who, err
	}
	who, ok := now.settings.Approver(connector, from)
	if !ok {
		return nil, who, from.NotApprover(connector)
	}
	return e.conditionsOf(now, rec.Agent, r, rec.Risk), who, nil
}

// checkVote returns VALIDATION_ERROR for an allow that several people cannot vote for. Each vote must
// be for the same call, once, so an allow that changes the input or that lasts is refused.
func (c *conditions) checkVote(a *schemas.Answer, option schemas.Option) error {
	lasts := a.Scope != "" && a.Scope != schemas.ScopeOnce
	permission := c.request.Kind == schemas.KindPermission // an allowed permission always lasts for its session
	switch {
	case c.forTeams && lasts && !permission:
		return schemas.Errorf(schemas.CodeValidation, "scope: settings.json demands %s for each such call; allow it once", strings.Join(c.texts(), " and "))
	case c.votes < 2:
		return nil
	case permission && (a.Scope == schemas.ScopeAgent || a.ForSeconds != 0):
		return schemas.Errorf(schemas.CodeValidation, "scope: %d people must allow the same permission; allow it for the session, without an end of its own", c.votes)
	case a.UpdatedInput != nil:
		return schemas.Errorf(schemas.CodeValidation, "updated_input: %d people must allow the same input; deny it, and say what to run instead", c.votes)
	case option.Kind.Remembered():
		return schemas.Errorf(schemas.CodeValidation, "option_id: the agent would remember this allow, and %d people must allow each call; allow it once", c.votes)
	}
	return nil
}

// counting returns the votes that count by these conditions. The identity of a vote must still belong
// to the person who voted, and the settings must still let that person allow the request on that
// connector. Each person counts once.
func (c *conditions) counting(votes []schemas.Vote) (all []schemas.Vote) {
	for _, v := range votes {
		who, ok := c.settings.Approver(v.Connector, schemas.From{UserID: v.UserID, Login: v.Login})
		again := slices.ContainsFunc(all, func(other schemas.Vote) bool { return other.SamePerson(&v) })
		if ok && who.Name == v.Name && !again && c.mayAllow(&who, v.Connector) == nil {
			all = append(all, v)
		}
	}
	return all
}

// enough reports whether these votes allow the request.
func (c *conditions) enough(votes []schemas.Vote) bool {
	return len(c.counting(votes)) >= c.votes
}

// withVote adds the vote v to the votes of a record that count. A person's earlier vote stays if it is
// for the same option and at least as many calls. Otherwise v replaces the earlier vote. The result
// same means that the record already has exactly these votes.
func (c *conditions) withVote(rec *schemas.Record, v schemas.Vote) (votes []schemas.Vote, same bool) {
	votes = c.counting(rec.Votes)
	same = len(votes) == len(rec.Votes)
	i := slices.IndexFunc(votes, func(other schemas.Vote) bool { return other.SamePerson(&v) })
	switch {
	case i < 0:
		return append(votes, v), false
	case votes[i].OptionID == v.OptionID && votes[i].Waiters >= v.Waiters:
		return votes, same
	}
	votes[i] = v
	return votes, false
}

// vote adds a person's allow to a pending question, or decides the question if enough people have
// allowed the same option. One compare-and-set stores votes and decision, so only one of several
// concurrent answers decides. The decision covers the calls that every vote counted. If the deadlines
// of all calls that the new vote counts have passed, vote writes nothing.
func (e *recordLife) vote(ctx context.Context, entry bus.Entry, d *schemas.Decision, v schemas.Vote, c *conditions) (bus.Entry, error) {
	entry, _, err := e.change(ctx, entry, func(next *bus.Entry) (write, error) {
		rec := &next.Record
		now := e.clock.now()
		counted := countedWaiters(v.Waiters, now)
		if rec.Terminal() || !slices.ContainsFunc(rec.Waiters, func(w schemas.Waiter) bool { return w.Open() && counted(&w) }) {
			return nil, nil
		}
		votes, same := c.withVote(rec, v)
		agreeing, places := forOption(votes, v.OptionID)
		if len(agreeing) >= c.votes {
			rec.Votes = []schemas.Vote{}
			return e.decideNow(next, ofAll(d, agreeing), countedWaiters(places, now))
		}
		if len(votes) > maxVotes {
			return nil, schemas.Errorf(schemas.CodeConflict, "%d people have chosen different options: deny it, or choose an option that others chose", maxVotes)
		}
		if same {
			return nil, nil
		}
		rec.Type, rec.Votes = schemas.TeamRecord, votes
		return e.store.Records.Update, nil
	})
	if err != nil || !entry.Record.Terminal() {
		return entry, err
	}
	return entry, e.holdings.applyEffects(ctx, entry)
}

// forOption returns the votes for one option, and the number of calls that all these votes counted.
func forOption(votes []schemas.Vote, option string) (agreeing []schemas.Vote, places int) {
	for _, v := range votes {
		if v.OptionID != option {
			continue
		}
		if agreeing = append(agreeing, v); places == 0 || v.Waiters < places {
			places = v.Waiters
		}
	}
	return agreeing, max(places, 1)
}

// ofAll returns the decision of several people, with their votes and messages. The parameter d is the
// decision of the last voter.
func ofAll(d *schemas.Decision, votes []schemas.Vote) *schemas.Decision {
	all := *d
	all.Votes, all.Message = withoutMessages(votes), cmp.Or(messagesOf(votes), d.Message)
	if d.Grant != nil {
		g := *d.Grant
		g.Votes = all.Votes
		all.Grant = &g
	}
	return &all
}

// withoutMessages returns votes without their messages, which are in the decision. The votes keep
// their logins, because the vote of a person who logged in at an issuer counts only with the login.
// The votes are counted again before a later call or the start of a contained command relies on them.
func withoutMessages(votes []schemas.Vote) []schemas.Vote {
	all := slices.Clone(votes)
	for i := range all {
		all[i].Message = ""
	}
	return all
}

// messagesOf joins the messages of several people, each after its person's name. A single
// message stays as it is.
func messagesOf(votes []schemas.Vote) string {
	var said []schemas.Vote
	for _, v := range votes {
		if v.Message != "" {
			said = append(said, v)
		}
	}
	if len(said) == 1 {
		return said[0].Message
	}
	lines := make([]string, len(said))
	for i, v := range said {
		lines[i] = v.Name + ": " + v.Message
	}
	return strings.Join(lines, "\n")
}

// answerByVote submits an allow as a vote. It returns the decision if enough people have allowed the
// request, and the error VOTED if more people must allow it.
func (e *connectors) answerByVote(ctx context.Context, entry bus.Entry, d *schemas.Decision, a *schemas.Answer, c *conditions) (*schemas.Decision, error) {
	v := schemas.Vote{
		Name: d.By.Name, Connector: d.By.Connector, UserID: a.From.UserID, Login: a.From.Login, OptionID: a.OptionID,
		Waiters: max(a.Waiters, 1), Message: cutBytes(a.Message, schemas.MaxVoteMessage), At: d.DecidedAt,
	}
	entry, err := e.life.vote(ctx, entry, d, v, c)
	if err != nil {
		return nil, err
	}
	rec := &entry.Record
	votes := c.counting(rec.Votes)
	if rec.Terminal() || !slices.ContainsFunc(votes, func(other schemas.Vote) bool { return other.SamePerson(&v) }) {
		return e.replyStored(entry, d, a.Waiters)
	}
	e.life.publish(entry)
	agreeing, _ := forOption(votes, v.OptionID)
	return nil, schemas.Errorf(schemas.CodeVoted, "your vote is stored (%s); nothing is allowed before %d people have voted", schemas.DescribeVotes(agreeing, c.votes), c.votes)
}

// showVotes adds to the prompt of a pending question the votes that count, and the number of people who
// must allow it. The prompt then counts only the calls that every vote covers.
func (c *conditions) showVotes(p *schemas.Prompt, rec *schemas.Record) {
	if c.votes < 2 || rec.Terminal() {
		return
	}
	p.VotesNeeded, p.Votes = c.votes, c.counting(rec.Votes)
	for i := range p.Votes {
		v := &p.Votes[i]
		v.Login = nil // people see who voted, not that person's groups
		p.Waiters = min(p.Waiters, max(v.Waiters, 1))
	}
	p.Waiting = 0
	for i := range rec.Waiters {
		if w := &rec.Waiters[i]; w.Open() && !w.Detached && w.Place < p.Waiters {
			p.Waiting++
		}
	}
}

// logVotes logs each vote once. The votes of a decided question are in its decision.
func (e *effects) logVotes(ctx context.Context, entry bus.Entry, prompt schemas.Prompt) error {
	rec := &entry.Record
	votes := rec.Votes
	if rec.Decision != nil && len(votes) == 0 {
		votes = rec.Decision.Votes
	}
	var errs []error
	for _, v := range votes {
		id := entry.Key + ".voted." + schemas.SubjectToken(v.Connector+"."+v.UserID) + "." + v.At.UTC().Format("20060102150405.000000000")
		_, err := e.appendOnce(ctx, id, schemas.LogEntry{
			Type: schemas.TypeLogEntry, At: v.At, Kind: schemas.LogVoted, SessionID: prompt.SessionID, PendingID: prompt.PendingID,
			Actor: v.Name + "@" + v.Connector, Agent: rec.Agent, ToolName: prompt.Request.ToolName, Digest: rec.Digest,
		}, v.At)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// checkEngines refuses settings about several people while a running engine does not know such
// settings. That engine would keep its earlier settings, and let one person decide alone or let the
// wrong person decide.
func (e *admin) checkEngines(ctx context.Context, s *schemas.Settings) error {
	version := s.TeamsVersion()
	if version == 0 {
		return nil
	}
	late, err := e.laggards(ctx, "votes", version, knowWithin)
	if errors.Is(err, &schemas.Error{Code: schemas.CodeUnavailable}) { // on a busy machine, this engine may be too slow to reply to itself
		live, lerr := e.store.Presence.LiveKeys(ctx, aliveKey("*"))
		if lerr == nil && !slices.ContainsFunc(live, func(key string) bool { return key != aliveKey(e.service.ID()) }) {
			return nil
		}
	}
	if err == nil && len(late) > 0 {
		err = schemas.Errorf(schemas.CodeForbidden, "the settings about several people (permissions.confirm, approvers.groups) need engines that know them, and these do not, or do not reply: %s; update or stop them first", strings.Join(late, ", "))
	}
	return err
}
