package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// announce publishes to the agents that wait what a question's record decides about
// each of its calls. A lost decision is found by asking again, and so is that about a
// call that no agent waits for: an approval of it is for one request alone.
func (e *Engine) announce(entry bus.Entry) error {
	for i := range entry.Record.Waiters {
		w := &entry.Record.Waiters[i]
		d := entry.Record.Verdict(w.PendingID)
		if d == nil || w.Detached {
			continue
		}
		if err := e.Edge.Publish(schemas.DecisionSubject(entry.Record.Agent, d.SessionID, d.PendingID), d); err != nil {
			return err
		}
	}
	return nil
}

// publish announces what this engine has just decided, and shows it to all who look.
// The outbox does so again, which may take a while if the broker is disturbed.
func (e *Engine) publish(entry bus.Entry) {
	err := e.announce(entry)
	prompt, perr := e.promptOf(entry)
	if perr == nil {
		perr = e.view(prompt)
	}
	if err := errors.Join(err, perr); err != nil {
		e.Log.Warn("engine: a decision was not published; the outbox will", "key", entry.Key, "error", err)
	}
}

// answer takes what a person said.
func (e *Engine) answer(ctx context.Context, c *bus.Call) error {
	connector := c.Tokens[0]
	var a schemas.Answer
	if err := schemas.Decode(c.Data, &a); err != nil {
		return err
	}
	if a.SessionID != c.Tokens[1] || a.PendingID != c.Tokens[2] {
		return schemas.Errorf(schemas.CodeValidation, "session_id, pending_id: the message names other ids than its subject")
	}
	// Names in payloads count for nothing: the connector vouches for the
	// identity, and the settings say whose it is.
	approver, err := e.approver(ctx, connector, a.From.UserID)
	if err != nil {
		return err
	}
	frozen := e.frozenNow(ctx) // beside the record
	entry, err := e.store.Records.Get(ctx, schemas.Key(a.SessionID, a.PendingID))
	if errors.Is(err, bus.ErrNotFound) || err == nil && !routed(&entry.Record, connector, a.From.UserID) {
		return notFound(schemas.Key(a.SessionID, a.PendingID))
	}
	if err != nil {
		return err
	}
	d, err := e.said(&entry, &a, &approver, connector, frozen)
	if err != nil {
		return err
	}
	now, err := e.nowFor(ctx, &entry.Record, a.Waiters)
	if err != nil {
		return err
	}
	// The calls whose deadline has come get the clock's decision, whoever answers.
	if entry, err = e.endOverdue(ctx, entry, now); err != nil {
		return err
	}
	if entry, err = e.decide(ctx, entry, d, counted(a.Waiters, now)); err != nil {
		return err
	}
	if stored := entry.Record.Decision; stored != nil && stored.DecisionID == d.DecisionID {
		e.publish(entry)
	} else if err := otherwise(&entry.Record); err != nil {
		return err
	}
	return e.answered(c, entry, d, a.Waiters)
}

// nowFor is the broker's time as it decides about an answer's calls: read again if it
// may be wrong by what a deadline is away.
func (e *Engine) nowFor(ctx context.Context, rec *schemas.Record, places int) (time.Time, error) {
	for i := range rec.Waiters {
		if w := &rec.Waiters[i]; w.Open() && w.Place < max(places, 1) {
			if _, err := e.clock.late(ctx, w.Deadline); err != nil {
				return time.Time{}, err
			}
		}
	}
	return e.clock.now(), nil
}

func mayNot(connector, userID string) error {
	return schemas.Errorf(schemas.CodeForbidden, "%q on %s is not an approver: add the identity under approvers.people in settings.json and run `nod settings apply`", userID, connector)
}

// routed reports whether the request was to be shown to this person, or on a
// connector whose people look for themselves.
func routed(rec *schemas.Record, connector, userID string) bool {
	if schemas.Inbox(connector) {
		return true
	}
	for _, r := range rec.Routes {
		if r.Connector == connector && r.Recipient == userID {
			return true
		}
	}
	return false
}

// said is the decision that an answer makes of a request, or why it makes none.
func (e *Engine) said(entry *bus.Entry, a *schemas.Answer, who *schemas.Approver, connector string, frozen frozenRead) (*schemas.Decision, error) {
	rec := &entry.Record
	if a.Digest != rec.Digest && rec.Digest != schemas.AnyDigest {
		err := schemas.Errorf(schemas.CodeStale, "the answer is to another request than the one that is open under this id: look again")
		return nil, err.WithDecision(rec.Decision)
	}
	if rec.Joined != "" && !rec.Terminal() {
		return nil, schemas.Errorf(schemas.CodeConflict, "it asks the same as %s, and is answered with that", rec.Joined)
	}
	request, err := requestOf(rec)
	if err != nil {
		return nil, err
	}
	if !mayDecide(who, rec.Agent, &request, rec.Risk) {
		return nil, schemas.Errorf(schemas.CodeForbidden, "%s may not decide about a request of risk %s of this agent, project and host: see for and max_risk of approvers.people in settings.json", who.Name, rec.Risk)
	}
	d := e.decision(&request, rec.Digest, schemas.Cancelled, schemas.By{Kind: schemas.ByHuman, Name: who.Name, Connector: connector})
	d.Message, d.Scope, d.UpdatedInput = a.Message, a.Scope, a.UpdatedInput
	if a.Cancelled {
		if a.UpdatedInput != nil {
			return nil, schemas.Errorf(schemas.CodeValidation, "updated_input: goes with an option that allows")
		}
		return d, nil
	}
	option, ok := request.Option(a.OptionID)
	if !ok {
		return nil, schemas.Errorf(schemas.CodeValidation, "option_id: %q is not one of the options offered", a.OptionID)
	}
	if option.Text && strings.TrimSpace(a.Message) == "" {
		return nil, schemas.Errorf(schemas.CodeValidation, "message: is missing; %q takes an answer in words", option.Name)
	}
	d.OptionID, d.OptionKind = option.OptionID, option.Kind
	if request.Kind == schemas.KindQuestion && d.Message == "" {
		d.Message = option.Name // what was answered
	}
	if d.Outcome = schemas.Denied; option.Kind.Allows() {
		d.Outcome = schemas.Allowed
		if !rec.Terminal() { // one that has ended is told as it is stored: this answer may have counted
			if err := errors.Join(frozen(rec.Agent, request.SessionID), e.confirmed(rec.Risk, connector, a)); err != nil {
				return nil, err
			}
		}
	} else if a.UpdatedInput != nil {
		return nil, schemas.Errorf(schemas.CodeValidation, "updated_input: goes with an option that allows")
	}
	if d.Outcome == schemas.Denied {
		d.Grant, err = e.denialOf(&request, rec.Agent, d)
	} else {
		d.Grant, err = grant(entry, &request, a, d)
	}
	return d, err
}

// requestOf decodes the request in a record.
func requestOf(rec *schemas.Record) (schemas.Request, error) {
	var r schemas.Request
	if err := json.Unmarshal(rec.Request, &r); err != nil {
		return r, fmt.Errorf("decode the request in its record: %w", err)
	}
	r.Rejoin, r.Revision = false, 0
	r.Options = r.Offered()
	return r, nil
}

// expired is what the clock decides at an instant, in the words that the asker reads.
func (e *Engine) expired(rec *schemas.Record, at time.Time) (*schemas.Decision, error) {
	r, err := requestOf(rec)
	if err != nil {
		return nil, err
	}
	d := e.decision(&r, rec.Digest, schemas.TimedOut, schemas.By{Kind: schemas.ByClock})
	if d.DecidedAt.Before(at) { // the broker's clock fired: this reading of it is behind
		d.DecidedAt = at
	}
	waited := time.Duration(timeoutAt(rec, at)) * time.Second
	if d.Message = "Permission request timed out after " + schemas.Words(waited) + "."; r.Kind == schemas.KindPermission {
		d.Message = "Permission request timed out after " + schemas.Minutes(waited)
	}
	return d, nil
}

// timeoutAt is for how long the first of the calls could wait whose deadline has come.
func timeoutAt(rec *schemas.Record, at time.Time) int {
	for i := range rec.Waiters {
		if w := &rec.Waiters[i]; w.Open() && !w.Deadline.After(at) {
			return w.TimeoutSeconds
		}
	}
	return rec.TimeoutSeconds
}

// answered tells the person how it ended: their own answer, or one that said the same
// of the same calls, is a success; anything else is told as what really happened.
func (e *Engine) answered(c *bus.Call, entry bus.Entry, said *schemas.Decision, places int) error {
	rec := &entry.Record
	stored := rec.Decision
	switch {
	case stored == nil:
		return schemas.Errorf(schemas.CodeStale, "the calls that this answer is about have ended; others wait for the same: look again")
	case stored.DecisionID == said.DecisionID, stored.Same(said) && !leftOut(rec, places):
		c.Reply(stored)
		return nil
	case stored.Outcome == schemas.TimedOut, stored.Outcome == schemas.Withdrawn:
		return schemas.Errorf(schemas.CodeStale, "the request had already ended: %s", stored.Outcome).WithDecision(stored)
	case stored.Same(said):
		return schemas.Errorf(schemas.CodeConflict, "%s by %s, but about fewer calls than this answer; the others still wait: look again", stored.Outcome, stored.By.Name).WithDecision(stored)
	}
	return schemas.Errorf(schemas.CodeConflict, "the request was already decided: %s by %s", stored.Outcome, stored.By.Name).WithDecision(stored)
}

// leftOut reports whether the record's decision is not about a call that an answer
// counted.
func leftOut(rec *schemas.Record, places int) bool {
	return slices.ContainsFunc(rec.Waiters, func(w schemas.Waiter) bool { return w.Stays && w.Place < max(places, 1) })
}

// withdraw takes a request back. One that is not known, because its withdrawal
// came first, gets a record that ends whatever still arrives under its id.
func (e *Engine) withdraw(ctx context.Context, c *bus.Call) error {
	agent, key := c.Tokens[0], schemas.Key(c.Tokens[1], c.Tokens[2])
	var w schemas.Withdraw
	if err := schemas.Decode(c.Data, &w); err != nil {
		return err
	}
	if w.SessionID != c.Tokens[1] || w.PendingID != c.Tokens[2] {
		return schemas.Errorf(schemas.CodeValidation, "session_id, pending_id: the message names other ids than its subject")
	}
	if _, err := e.own(ctx, agent, w.SessionID, ""); err != nil {
		return err
	}
	entry, err := e.store.Records.Get(ctx, key)
	if errors.Is(err, bus.ErrNotFound) {
		return e.withdrawUnknown(ctx, c, agent, &w, entry.Revision)
	}
	if err != nil {
		return err
	}
	return e.withdrawKnown(ctx, c, agent, &w, entry)
}

func (e *Engine) withdrawal(agent string, w *schemas.Withdraw, digest string) *schemas.Decision {
	r := schemas.Request{SessionID: w.SessionID, PendingID: w.PendingID}
	d := e.decision(&r, digest, schemas.Withdrawn, schemas.By{Kind: schemas.ByAgent, Name: agent})
	d.Message = w.Reason
	return d
}

func (e *Engine) withdrawKnown(ctx context.Context, c *bus.Call, agent string, w *schemas.Withdraw, entry bus.Entry) error {
	if entry.Record.Agent != agent {
		return notFound(entry.Key)
	}
	question, d, err := e.lookUp(ctx, entry)
	switch {
	case err != nil:
		return err
	case w.Detach && d != nil:
		if question.Record.Joined != "" { // whether its agent waits is told by the question
			question, err = e.decidedIn(ctx, question)
		}
		if err == nil {
			question, err = e.detachLate(ctx, question, w.PendingID)
		}
	case w.Detach:
		r, rerr := requestOf(&entry.Record)
		if rerr != nil {
			return rerr
		}
		if r.Kind != schemas.KindToolCall {
			question, err = e.takeBack(ctx, question, agent, w)
			break
		}
		if question, err = e.setDetached(ctx, question, w.PendingID, true); err != nil {
			return err
		}
		if question.Record.Waits(w.PendingID) {
			c.Reply(receipt(entry, &r))
			return nil
		}
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil { // it has ended meanwhile
			return err
		}
		return e.withdrawKnown(ctx, c, agent, w, entry)
	case d == nil:
		question, err = e.takeBack(ctx, question, agent, w)
	}
	if err != nil {
		return err
	}
	return e.tell(ctx, c, question, entry.Key)
}

// takeBack ends one request as withdrawn by its agent.
func (e *Engine) takeBack(ctx context.Context, question bus.Entry, agent string, w *schemas.Withdraw) (bus.Entry, error) {
	own := *w
	_, own.PendingID = schemas.SplitKey(question.Key)
	ended, err := e.endSome(ctx, question, e.withdrawal(agent, &own, question.Record.Digest), only(w.PendingID))
	if err == nil {
		e.publish(ended)
	}
	return ended, err
}

// tell answers an agent with the decision about the request under key, as the record
// that decides about it has it.
func (e *Engine) tell(ctx context.Context, c *bus.Call, question bus.Entry, key string) error {
	_, id := schemas.SplitKey(key)
	d := question.Record.Decision
	if question.Key != key || question.Record.Joined == "" {
		d = question.Record.Verdict(id)
	}
	if d == nil {
		return schemas.Errorf(schemas.CodeUnavailable, "the request has just become a question of its own; ask again")
	}
	c.Reply(d)
	return nil
}

func (e *Engine) withdrawUnknown(ctx context.Context, c *bus.Call, agent string, w *schemas.Withdraw, revision uint64) error {
	key := schemas.Key(w.SessionID, w.PendingID)
	// An automatic decision has no record: it stands, and is told.
	logged, err := e.claim(ctx, key, schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: e.clock.now(), Kind: schemas.LogClaim, Actor: agent,
		SessionID: w.SessionID, PendingID: w.PendingID,
	})
	if err != nil {
		return err
	}
	if logged != nil {
		c.Reply(logged)
		return nil
	}
	request, err := schemas.Encode(schemas.Request{
		Type: schemas.TypeRequest, SessionID: w.SessionID, PendingID: w.PendingID, Kind: schemas.KindQuestion,
		Title: "Withdrawn before it was asked", ActionType: schemas.ActionOther, ActionDetails: json.RawMessage("{}"), CreatedAt: e.clock.now(),
	})
	if err != nil {
		return fmt.Errorf("encode the withdrawal of %s: %w", key, err)
	}
	a := asked{agent: agent, bytes: request, digest: schemas.AnyDigest}
	entry := bus.Entry{Key: key, Record: a.record(e.clock.now()), Revision: revision}
	entry.Record.Risk, entry.Record.Decision = schemas.RiskLow, e.withdrawal(agent, w, a.digest)
	_, err = e.store.Records.CreateDecided(ctx, entry)
	if errors.Is(err, bus.ErrMoved) {
		if entry, err = e.store.Records.Get(ctx, key); err == nil {
			return e.withdrawKnown(ctx, c, agent, w, entry)
		}
	}
	if err != nil {
		return err
	}
	c.Reply(entry.Record.Decision)
	return nil
}

// await tells how up to 500 requests of one agent stand. It creates nothing.
func (e *Engine) await(ctx context.Context, c *bus.Call) error {
	var q schemas.Await
	if err := schemas.Decode(c.Data, &q); err != nil {
		return err
	}
	reply := schemas.AwaitReply{Type: schemas.TypeAwaitReply, Results: make([]schemas.Awaited, len(q.Requests))}
	each(len(q.Requests), func(i int) { reply.Results[i] = e.stands(ctx, c.Tokens[0], q.Requests[i]) })
	// What one message cannot carry is told as it was the first time.
	size := 0
	for i := range reply.Results {
		d := reply.Results[i].Decision
		if d == nil {
			continue
		}
		if size += len(d.UpdatedInput) + 2*len(d.Message); size <= schemas.MaxPayloadBytes/2 { // the rest of 500 fits the other half
			continue
		}
		reply.Results[i].Decision = nil
		if err := e.Edge.Publish(schemas.DecisionSubject(c.Tokens[0], d.SessionID, d.PendingID), d); err != nil {
			return err
		}
	}
	c.Reply(reply)
	return nil
}

func (e *Engine) stands(ctx context.Context, agent string, a schemas.Awaited) schemas.Awaited {
	out := schemas.Awaited{SessionID: a.SessionID, PendingID: a.PendingID}
	key := schemas.Key(a.SessionID, a.PendingID)
	entry, err := e.store.Records.Get(ctx, key)
	if errors.Is(err, bus.ErrNotFound) || err == nil && entry.Record.Agent != agent {
		out.Error = schemas.Errorf(schemas.CodeNotFound, "no request %s is known", key)
		return out
	}
	var d *schemas.Decision
	if err == nil {
		_, d, err = e.decisionOf(ctx, entry)
	}
	var refused *schemas.Error
	switch {
	case errors.As(err, &refused):
		out.Error = refused
	case err != nil:
		out.Error = schemas.Errorf(schemas.CodeUnavailable, "nod could not read %s, or do what follows from it, in time; ask again", key)
	default:
		out.Revision, out.Decision = entry.Revision, d
	}
	return out
}

// decisionOf is the record that decides about an entry's request, and its decision, if
// there is one, once it may be told to its agent.
func (e *Engine) decisionOf(ctx context.Context, entry bus.Entry) (question bus.Entry, d *schemas.Decision, err error) {
	_, id := schemas.SplitKey(entry.Key)
	question, d, err = e.lookUp(ctx, entry)
	if err != nil || d == nil {
		return question, nil, err
	}
	if question.Record.Joined != "" { // whether its agent waits is told by the question
		if question, err = e.decidedIn(ctx, question); err != nil {
			return question, nil, err
		}
	}
	if err := e.effects(ctx, question); err != nil {
		return question, nil, err
	}
	return question, d, e.useOwn(ctx, question, id)
}

// decidedIn is the question that has decided about a request, or the entry itself if
// the question is kept no longer.
func (e *Engine) decidedIn(ctx context.Context, entry bus.Entry) (bus.Entry, error) {
	session, id := schemas.SplitKey(entry.Key)
	question, err := e.store.Records.Get(ctx, schemas.Key(session, entry.Record.Joined))
	if noRecord(err) || err == nil && question.Record.Verdict(id) == nil {
		return entry, nil
	}
	return question, err
}
