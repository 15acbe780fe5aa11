package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// withdraw withdraws a request. If the withdrawal arrives before the request, withdraw
// creates a decided record, with which the request is answered when it arrives.
func (e *Engine) withdraw(ctx context.Context, c *bus.Call) error {
	agent, key := c.Tokens[0], schemas.Key(c.Tokens[1], c.Tokens[2])
	var w schemas.Withdraw
	if err := schemas.Decode(c.Data, &w); err != nil {
		return err
	}
	if w.SessionID != c.Tokens[1] || w.PendingID != c.Tokens[2] {
		return schemas.Errorf(schemas.CodeValidation, "session_id, pending_id: the message names other ids than its subject")
	}
	if _, err := e.requireSession(ctx, agent, w.SessionID, ""); err != nil {
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
		if question.Record.Joined != "" { // only the question's record has the state of its waiters
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
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil { // the question has ended in the meantime
			return err
		}
		return e.withdrawKnown(ctx, c, agent, w, entry)
	case d == nil:
		question, err = e.takeBack(ctx, question, agent, w)
	}
	if err != nil {
		return err
	}
	return e.replyDecision(ctx, c, question, entry.Key)
}

// takeBack ends a request as withdrawn by its agent.
func (e *Engine) takeBack(ctx context.Context, question bus.Entry, agent string, w *schemas.Withdraw) (bus.Entry, error) {
	own := *w
	_, own.PendingID = schemas.SplitKey(question.Key)
	ended, err := e.endSome(ctx, question, e.withdrawal(agent, &own, question.Record.Digest), waiterOfID(w.PendingID))
	if err == nil {
		e.publish(ended)
	}
	return ended, err
}

// replyDecision replies with the decision about the request under key, from the record that
// decides it.
func (e *Engine) replyDecision(ctx context.Context, c *bus.Call, question bus.Entry, key string) error {
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
	// A decision that is only in the log counts, and is the reply.
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
	in := agentRequest{agent: agent, body: request, digest: schemas.AnyDigest}
	entry := bus.Entry{Key: key, Record: in.record(policy.Verdict{Risk: schemas.RiskLow}, e.clock.now()), Revision: revision}
	entry.Record.Decision = e.withdrawal(agent, w, in.digest)
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
