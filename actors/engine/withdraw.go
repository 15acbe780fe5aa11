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

// withdraw withdraws or detaches a request. It replies with the decision or, for a detached request
// that is still pending, with a receipt. For a withdrawal that arrives before its request, withdraw
// creates a decided record, and the request is withdrawn when it arrives.
func (e *withdrawals) withdraw(ctx context.Context, c *caller, w *schemas.Withdraw) (schemas.RequestReply, error) {
	if _, err := e.holdings.requireSession(ctx, c.name, w.SessionID, ""); err != nil {
		return nil, err
	}
	entry, err := e.store.Records.Get(ctx, w.Key())
	if errors.Is(err, bus.ErrNotFound) {
		return e.withdrawUnknown(ctx, c.name, w, entry.Revision)
	}
	if err != nil {
		return nil, err
	}
	return e.withdrawKnown(ctx, c.name, w, entry)
}

func (e *recordLife) withdrawal(agent string, w *schemas.Withdraw, digest string) *schemas.Decision {
	r := schemas.Request{SessionID: w.SessionID, PendingID: w.PendingID}
	d := e.decision(&r, digest, schemas.Withdrawn, schemas.By{Kind: schemas.ByAgent, Name: agent})
	d.Message = w.Reason
	return d
}

func (e *withdrawals) withdrawKnown(ctx context.Context, agent string, w *schemas.Withdraw, entry bus.Entry) (schemas.RequestReply, error) {
	if entry.Record.Agent != agent {
		return nil, notFound(entry.Key)
	}
	question, d, err := e.life.lookUp(ctx, entry)
	switch {
	case err != nil:
		return nil, err
	case w.Detach && d != nil:
		if question.Record.Joined != "" {
			question, err = e.life.decidedIn(ctx, question)
		}
		if err == nil {
			question, err = e.life.detachLate(ctx, question, w.PendingID)
		}
	case w.Detach:
		r, rerr := requestOf(&entry.Record)
		if rerr != nil {
			return nil, rerr
		}
		if r.Kind != schemas.KindToolCall {
			question, err = e.takeBack(ctx, question, agent, w)
			break
		}
		if question, err = e.life.setDetached(ctx, question, w.PendingID, true); err != nil {
			return nil, err
		}
		if question.Record.Waits(w.PendingID) {
			return receipt(entry, &r), nil
		}
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil { // the request has ended meanwhile
			return nil, err
		}
		return e.withdrawKnown(ctx, agent, w, entry)
	case d == nil:
		question, err = e.takeBack(ctx, question, agent, w)
	}
	if err != nil {
		return nil, err
	}
	return replyDecision(question, entry.Key)
}

func (e *withdrawals) takeBack(ctx context.Context, question bus.Entry, agent string, w *schemas.Withdraw) (bus.Entry, error) {
	own := *w
	_, own.PendingID = schemas.SplitKey(question.Key)
	ended, err := e.life.endSome(ctx, question, e.life.withdrawal(agent, &own, question.Record.Digest), waiterOfID(w.PendingID))
	if err == nil {
		e.life.publish(ended)
	}
	return ended, err
}

// replyDecision returns the decision about the request under a key. The parameter question is the
// record that decides the request.
func replyDecision(question bus.Entry, key string) (schemas.RequestReply, error) {
	_, id := schemas.SplitKey(key)
	d := question.Record.Decision
	if question.Key != key || question.Record.Joined == "" {
		var err error
		if d, err = verdictOn(&question, id); err != nil {
			return nil, err
		}
	}
	if d == nil {
		return nil, schemas.Errorf(schemas.CodeUnavailable, "the request has just become a question of its own; ask again")
	}
	return d, nil
}

func (e *withdrawals) withdrawUnknown(ctx context.Context, agent string, w *schemas.Withdraw, revision uint64) (schemas.RequestReply, error) {
	key := schemas.Key(w.SessionID, w.PendingID)
	// A request that was decided without a record has its decision in the log.
	logged, err := e.life.claim(ctx, key, schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: e.clock.now(), Kind: schemas.LogClaim, Actor: agent,
		SessionID: w.SessionID, PendingID: w.PendingID,
	})
	if err != nil {
		return nil, err
	}
	if logged != nil {
		return logged, nil
	}
	request, err := schemas.Encode(schemas.Request{
		Type: schemas.TypeRequest, SessionID: w.SessionID, PendingID: w.PendingID, Kind: schemas.KindQuestion,
		Title: "Withdrawn before it was asked", ActionType: schemas.ActionOther, ActionDetails: json.RawMessage("{}"), CreatedAt: e.clock.now(),
	})
	if err != nil {
		return nil, fmt.Errorf("encode the withdrawal of %s: %w", key, err)
	}
	in := agentRequest{agent: agent, body: request, digest: schemas.AnyDigest}
	entry := bus.Entry{Key: key, Record: in.record(policy.Verdict{Risk: schemas.RiskLow}, e.clock.now()), Revision: revision}
	entry.Record.Decision = e.life.withdrawal(agent, w, in.digest)
	_, err = e.store.Records.CreateDecided(ctx, entry)
	if errors.Is(err, bus.ErrMoved) {
		if entry, err = e.store.Records.Get(ctx, key); err == nil {
			return e.withdrawKnown(ctx, agent, w, entry)
		}
	}
	if err != nil {
		return nil, err
	}
	return entry.Record.Decision, nil
}
