package web

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	historyLimit = 200 // the largest number of requests in one reply of permissions.history
	// logPages and logWithin limit the work for one reply: the number of pages that are read from the
	// log, and the time after which no further page is read.
	logPages  = 20
	logWithin = 2 * time.Second
)

// decidedView is a request with its decision, for the history.
type decidedView struct {
	*requestView
	Decision *schemas.Decision `json:"decision"` // null if the log has no decision
	Text     string            `json:"text"`
	// Logged means that the request comes from the log, which does not keep the whole request.
	Logged bool `json:"logged,omitempty"`
}

func newDecidedView(p *schemas.Prompt, now time.Time) decidedView {
	q := newRequestView(p, now)
	q.ServerTime = now
	return decidedView{requestView: q, Decision: p.Decision, Text: people.Outcome(p.Decision, p)}
}

// newLoggedView returns the view of a request from the log, without risk, options and deadline.
func newLoggedView(l *schemas.LoggedRequest, now time.Time) decidedView {
	p, known := people.FromLog(l)
	r := &p.Request
	q := &requestView{
		PendingID: l.PendingID, SessionID: l.SessionID, TaskID: r.TaskID, ToolCallID: r.ToolCallID, Title: r.Title,
		Options: []option{}, ActionType: r.ActionType, ActionDetails: r.ActionDetails, CreatedAt: l.AskedAt,
		AgentName: people.Line(r.AgentName), SessionLabel: people.Line(r.SessionLabel), Project: people.ProjectName(r.Project),
		Kind: r.Kind, ToolName: r.ToolName, Agent: l.Agent, Digest: l.Digest, ServerTime: now,
		Summary: people.LoggedSummary(l, summaryWidth), Remember: []string{}, Takes: []string{},
		Parts: partsIn(people.LoggedParts(l)), Exact: []part{},
	}
	if known && l.Redacted == 0 {
		q.Exact = partsIn(people.Exact(&p))
	}
	return decidedView{requestView: q, Decision: p.Decision, Text: people.LoggedOutcome(l), Logged: true}
}

// historyReply is the reply to permissions.history. The newest decision is first.
type historyReply struct {
	Permissions []decidedView `json:"permissions"`
	// Next is the cursor of the next page, which a client sends as "before". Older stored requests come
	// first, then those of the log. Next is empty at the beginning of the log.
	Next string `json:"next,omitempty"`
	// Reach says how far the log was read, or when it begins. It is empty for a reply without requests
	// from the log.
	Reach *reach `json:"reach,omitempty"`
	// Runs sums up all contained runs of the session, including those that this page of the history
	// leaves out. If the session has no contained run, or the history covers several sessions, Runs is
	// empty.
	Runs       string    `json:"runs,omitempty"`
	ServerTime time.Time `json:"server_time"`

	size int
}

type reach struct {
	Begins  time.Time `json:"begins,omitzero"`  // the oldest entry of the log; absent if the log is empty
	Reached time.Time `json:"reached,omitzero"` // the oldest entry that was read
}

func (r *historyReply) add(v decidedView) {
	r.size += len(v.ActionDetails)
	r.Permissions = append(r.Permissions, v)
}

// Each cursor in historyReply.Next begins with one of these texts. The time and the key of the last
// stored request follow storedCursor. A cursor of the log follows logCursor.
const (
	storedCursor = "stored."
	logCursor    = "log."
)

// listHistory replies with past requests, the newest first. If the payload names an outcome, the reply
// contains only decisions with that outcome. If the payload has a query, the reply contains only
// requests whose texts contain all words of the query.
func (c *client) listHistory(ctx context.Context, m clientMessage, a actionPayload) {
	if a.Limit <= 0 || a.Limit > historyLimit {
		a.Limit = historyLimit
	}
	reply := &historyReply{Permissions: []decidedView{}, ServerTime: c.clock.now()}
	var err error
	if after, log := strings.CutPrefix(a.Before, logCursor); log {
		err = c.addLogged(ctx, reply, a, after)
	} else {
		err = c.addStored(ctx, reply, a)
	}
	if err != nil {
		c.fail(m, failureOf(err))
		return
	}
	c.reply(m, reply)
}

func (c *client) addStored(ctx context.Context, reply *historyReply, a actionPayload) error {
	at, key, err := lastStored(a.Before)
	if err != nil {
		return err
	}
	search := people.NewSearch(a.Query, a.Outcome)
	newest := people.Newest{Most: a.Limit, Keep: func(p *schemas.Prompt) bool {
		return (key == "" || people.DecidedBefore(p, at, key)) && search.Finds(p)
	}}
	var runs people.RunTally
	err = c.opts.Records.EachDecided(ctx, a.SessionID, func(page []schemas.Prompt) error {
		return errors.Join(runs.Add(page), newest.Add(page))
	})
	if err != nil {
		return err
	}
	if a.SessionID != "" {
		reply.Runs = runs.Text()
	}
	reply.Next = logCursor
	more, prompts := newest.More, newest.Prompts()
	for i := range prompts {
		if reply.size > pageBytes {
			more = true
			break
		}
		reply.add(newDecidedView(&prompts[i], reply.ServerTime))
	}
	if n := len(reply.Permissions); more && n > 0 {
		last := &prompts[n-1]
		reply.Next = storedCursor + strconv.FormatInt(last.Decision.DecidedAt.UnixNano(), 10) + "." + last.Key()
	}
	return nil
}

// errNoCursor is the error for a payload whose field before is not the next of a reply.
var errNoCursor = schemas.Errorf(schemas.CodeValidation, "before: it is not the next of a reply: list from the beginning")

// lastStored returns the time and the key in a cursor of a stored request. For an empty cursor, which
// asks for the newest requests, the key is empty.
func lastStored(before string) (at time.Time, key string, err error) {
	if before == "" {
		return at, "", nil
	}
	rest, stored := strings.CutPrefix(before, storedCursor)
	nanos, key, _ := strings.Cut(rest, ".")
	n, err := strconv.ParseInt(nanos, 10, 64)
	if !stored || err != nil || key == "" {
		return at, "", errNoCursor
	}
	return time.Unix(0, n), key, nil
}

// readLog calls add with pages of the log, until add reports that the reply is full, or the work for one
// reply has reached its limits. It returns the cursor of the next page, and how far the log was read.
func (c *client) readLog(ctx context.Context, session, after string, add func([]schemas.LoggedRequest) (full bool)) (next string, read *reach, err error) {
	until := time.Now().Add(logWithin)
	for range logPages {
		page, err := c.opts.Records.Logged(ctx, session, "", after)
		if err != nil {
			return "", nil, err
		}
		full := add(page.Logged)
		read = &reach{page.Log.Begins, page.Log.Reached}
		if after = page.Next; after == "" {
			return "", read, nil
		}
		if next = logCursor + after; full || time.Now().After(until) {
			break
		}
	}
	return next, read, nil
}

// addLogged adds matching requests of the log.
func (c *client) addLogged(ctx context.Context, reply *historyReply, a actionPayload, after string) (err error) {
	search := people.NewSearch(a.Query, a.Outcome)
	full := func() bool { return len(reply.Permissions) == a.Limit || reply.size > pageBytes }
	var last *schemas.LoggedRequest // the end of the reply, if it is inside a page
	reply.Next, reply.Reach, err = c.readLog(ctx, a.SessionID, after, func(page []schemas.LoggedRequest) bool {
		for i := range page {
			l := &page[i]
			if !search.FindsLogged(l) {
				continue
			}
			if full() {
				last = &page[i-1] // i is at least 1, because no page is read if the reply is full
				return true
			}
			reply.add(newLoggedView(l, reply.ServerTime))
		}
		return full()
	})
	if last != nil {
		reply.Next, reply.Reach.Reached = logCursor+strconv.FormatUint(last.Sequence, 10), last.AskedAt
		if last.Decided != nil {
			reply.Reach.Reached = last.Decided.At
		}
	}
	return err
}
