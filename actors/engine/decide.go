package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// settle ends a request with d, or finds that it has ended. Of an answer, the
// deadline, a withdrawal and a verdict one wins, and all are given the entry
// with the one decision that is stored, whose effects are there then.
func (e *Engine) settle(ctx context.Context, entry bus.Entry, d *schemas.Decision) (bus.Entry, error) {
	for !entry.Record.Terminal() {
		next := entry
		var err error
		if next.Record.Decision, err = asItEnds(&entry.Record, d); err != nil {
			return entry, err
		}
		next.Record.NextEvent = nil
		revision, err := e.store.Records.Decide(ctx, next)
		if err == nil {
			next.Revision = revision
			return next, e.effects(ctx, next)
		}
		if !errors.Is(err, bus.ErrMoved) {
			return entry, fmt.Errorf("settle %s: %w", entry.Key, err)
		}
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil {
			return entry, fmt.Errorf("settle %s: %w", entry.Key, err)
		}
	}
	return entry, e.effects(ctx, entry)
}

// tell answers an asker with the stored decision.
func (e *Engine) tell(c *bus.Call, entry bus.Entry) error {
	c.Reply(entry.Record.Decision)
	return nil
}

// announce publishes the stored decision to the agent that waits for it. A
// lost one is found by asking again, and so is that of a request that nobody
// waits for: what was allowed of it is for one asker alone.
func (e *Engine) announce(entry bus.Entry) error {
	if entry.Record.Detached {
		return nil
	}
	d := entry.Record.Decision
	return e.Edge.Publish(schemas.DecisionSubject(entry.Record.Agent, d.SessionID, d.PendingID), d)
}

// publish announces what this engine has just decided. The outbox will where
// that fails.
func (e *Engine) publish(entry bus.Entry) {
	if err := e.announce(entry); err != nil {
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
	write := d
	late, err := e.clock.late(ctx, entry.Record.Deadline)
	if err != nil {
		return err
	}
	if late { // it makes the clock's decision
		if write, err = e.expired(&entry.Record); err != nil {
			return err
		}
	}
	if write == d && !entry.Record.Terminal() {
		theirs, err := e.handOver(ctx, entry, d)
		if err != nil {
			return err
		}
		if theirs != nil {
			c.Reply(theirs)
			return nil
		}
	}
	settled, err := e.settle(ctx, entry, write)
	if err != nil {
		return err
	}
	if settled.Record.Decision.DecisionID == write.DecisionID {
		e.publish(settled)
		// Before anybody is told no, nothing that joined can be let through any more.
		if err := e.followJoiners(ctx, settled); err != nil {
			return err
		}
	}
	stored, err := e.handedOver(ctx, settled)
	if err != nil {
		return err
	}
	return answered(c, stored, d)
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
	d.Grant, err = grant(entry, &request, a, d)
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

// expired is what the clock decides, in the words that the asker reads.
func (e *Engine) expired(rec *schemas.Record) (*schemas.Decision, error) {
	r, err := requestOf(rec)
	if err != nil {
		return nil, err
	}
	d := e.decision(&r, rec.Digest, schemas.TimedOut, schemas.By{Kind: schemas.ByClock})
	if d.DecidedAt.Before(rec.Deadline) { // the broker's clock fired: this reading of it is behind
		d.DecidedAt = rec.Deadline
	}
	waited := time.Duration(rec.TimeoutSeconds) * time.Second
	if d.Message = "Permission request timed out after " + schemas.Words(waited) + "."; r.Kind == schemas.KindPermission {
		d.Message = "Permission request timed out after " + schemas.Minutes(waited)
	}
	return d, nil
}

// answered tells the person how it ended: their own answer, or one that said
// the same, is a success; anything else is told as what really happened.
func answered(c *bus.Call, stored, said *schemas.Decision) error {
	switch {
	case stored.Same(said):
		c.Reply(stored)
		return nil
	case stored.Outcome == schemas.TimedOut, stored.Outcome == schemas.Withdrawn:
		return schemas.Errorf(schemas.CodeStale, "the request had already ended: %s", stored.Outcome).WithDecision(stored)
	}
	return schemas.Errorf(schemas.CodeConflict, "the request was already decided: %s by %s", stored.Outcome, stored.By.Name).WithDecision(stored)
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
	if w.Detach && entry.Record.Terminal() {
		var err error
		if entry, err = e.detachLate(ctx, entry); err != nil {
			return err
		}
	}
	if w.Detach && !entry.Record.Terminal() {
		r, err := requestOf(&entry.Record)
		if err != nil || r.Kind == schemas.KindToolCall {
			return errors.Join(err, e.detach(ctx, c, entry, &r))
		}
	}
	settled, err := e.settle(ctx, entry, e.withdrawal(agent, w, entry.Record.Digest))
	if err != nil {
		return err
	}
	e.publish(settled)
	return e.tell(c, settled)
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
	return e.tell(c, entry)
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
	if err == nil {
		err = e.ready(ctx, entry)
	}
	var refused *schemas.Error
	switch {
	case errors.As(err, &refused):
		out.Error = refused
	case err != nil:
		out.Error = schemas.Errorf(schemas.CodeUnavailable, "nod could not read %s, or do what follows from it, in time; ask again", key)
	default:
		out.Revision, out.Decision = entry.Revision, entry.Record.Decision
	}
	return out
}

// ready makes sure that a request's decision, where there is one, may be told to
// its asker.
func (e *Engine) ready(ctx context.Context, entry bus.Entry) error {
	if err := e.effects(ctx, entry); err != nil {
		return err
	}
	return e.useOwn(ctx, entry)
}
