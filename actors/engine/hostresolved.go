package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// passed withdraws what a host has gone on without. It ends requests of this
// agent alone, and none that somebody waits for elsewhere.
func (e *Engine) passed(ctx context.Context, c *bus.Call) error {
	var p schemas.Passed
	if err := schemas.Decode(c.Data, &p); err != nil {
		return err
	}
	same := ""
	if len(p.ActionDetails) > 0 {
		var err error
		if same, err = anywhere(&schemas.Request{Kind: schemas.KindToolCall, ToolName: p.ToolName, ActionDetails: p.ActionDetails}); err != nil {
			return schemas.Errorf(schemas.CodeValidation, "action_details: %v", err)
		}
	}
	keys, err := e.store.Records.Pending(ctx, p.SessionID)
	if err != nil {
		return err
	}
	reply := schemas.PassedReply{Type: schemas.TypePassedReply, PendingIDs: []string{}}
	gone, err := e.goneBy(ctx, c.Tokens[0], &p, same, keys)
	if err != nil {
		return err
	}
	for _, g := range gone {
		w := schemas.Withdraw{SessionID: p.SessionID, PendingID: g.pendingID, Reason: p.Reason}
		ended, err := e.takeBack(ctx, g.question, c.Tokens[0], &w)
		if err != nil {
			return err
		}
		if d := ended.Record.Verdict(g.pendingID); d != nil && d.Outcome == schemas.Withdrawn {
			reply.PendingIDs = append(reply.PendingIDs, g.pendingID)
		}
	}
	c.Reply(reply)
	return nil
}

// openCall is a call that waits, in the record that decides about it.
type openCall struct {
	question  bus.Entry
	pendingID string
	request   schemas.Request
}

// openCalls are the calls of an agent that wait in the questions under keys.
func (e *Engine) openCalls(ctx context.Context, agent string, keys []string) ([]openCall, error) {
	var calls []openCall
	for _, key := range keys {
		question, err := e.store.Records.Get(ctx, key)
		if noRecord(err) || err == nil && (question.Record.Terminal() || question.Record.Agent != agent) {
			continue
		}
		if err != nil {
			return nil, err
		}
		session, _ := schemas.SplitKey(key)
		for _, w := range question.Record.Waiters {
			if !w.Open() || w.Detached {
				continue
			}
			own := question
			if at := schemas.Key(session, w.PendingID); at != key {
				if own, err = e.store.Records.Get(ctx, at); noRecord(err) {
					continue
				}
			}
			r, rerr := requestOf(&own.Record)
			if err := errors.Join(err, rerr); err != nil {
				return nil, err
			}
			calls = append(calls, openCall{question, w.PendingID, r})
		}
	}
	return calls, nil
}

// goneBy are the calls that a host has gone on without.
func (e *Engine) goneBy(ctx context.Context, agent string, p *schemas.Passed, same string, keys []string) ([]openCall, error) {
	calls, err := e.openCalls(ctx, agent, keys)
	if err != nil {
		return nil, err
	}
	var gone []openCall
	var oldest time.Time
	for _, call := range calls {
		r := &call.request
		if !r.HostAsks || !p.WholeSession && r.TaskID != p.TaskID || p.ToolName != "" && r.ToolName != p.ToolName {
			continue
		}
		if same == "" {
			gone = append(gone, call)
			continue
		}
		its, err := anywhere(r)
		if err != nil {
			return nil, err
		}
		if its == same && (len(gone) == 0 || r.CreatedAt.Before(oldest)) {
			gone, oldest = []openCall{call}, r.CreatedAt
		}
	}
	return gone, nil
}

// anywhere is the Sameness of a call in whichever directory: one that has run
// may have changed it.
func anywhere(r *schemas.Request) (string, error) {
	var details map[string]json.RawMessage
	if len(r.ActionDetails) > 0 {
		if err := json.Unmarshal(r.ActionDetails, &details); err != nil {
			return "", err
		}
	}
	delete(details, "cwd")
	without, err := schemas.Encode(details)
	if err != nil {
		return "", err
	}
	return schemas.Sameness(&schemas.Request{Kind: r.Kind, ToolName: r.ToolName, ActionDetails: without})
}
