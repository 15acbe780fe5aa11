package engine

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// passed withdraws what a host has gone on without, and tells of calls that ran, or
// never did, otherwise than decided. It ends requests of this agent alone, and none
// that somebody waits for elsewhere.
func (e *Engine) passed(ctx context.Context, c *bus.Call) error {
	var p schemas.Passed
	if err := schemas.Decode(c.Data, &p); err != nil {
		return err
	}
	ids, err := e.hostWentOn(ctx, c.Tokens[0], &p)
	if err != nil {
		return err
	}
	c.Reply(schemas.PassedReply{Type: schemas.TypePassedReply, PendingIDs: append([]string{}, ids...)})
	return nil
}

// hostWentOn returns the requests that it ended, or told something of.
func (e *Engine) hostWentOn(ctx context.Context, agent string, p *schemas.Passed) (ids []string, err error) {
	if p.PendingID != "" {
		return e.unheard(ctx, agent, p)
	}
	same := ""
	if len(p.ActionDetails) > 0 {
		if same, err = anywhere(&schemas.Request{Kind: schemas.KindToolCall, ToolName: p.ToolName, ActionDetails: p.ActionDetails}); err != nil {
			return nil, schemas.Errorf(schemas.CodeValidation, "action_details: %v", err)
		}
	}
	keys, err := e.store.Records.Pending(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	gone, err := e.goneBy(ctx, agent, p, same, keys)
	if err != nil {
		return nil, err
	}
	if len(gone) == 0 && same != "" && p.RanMillis != nil {
		return e.ranAnyway(ctx, agent, p, same)
	}
	for _, entry := range gone {
		id, err := e.goneWithout(ctx, entry, agent, p, same != "")
		if err != nil {
			return nil, err
		}
		ids = append(ids, id...)
	}
	return ids, nil
}

// goneWithout withdraws a request that its host has gone on without. If the call
// ran, the record says so.
func (e *Engine) goneWithout(ctx context.Context, entry bus.Entry, agent string, p *schemas.Passed, callRan bool) (ids []string, err error) {
	_, id := schemas.SplitKey(entry.Key)
	w := schemas.Withdraw{SessionID: p.SessionID, PendingID: id, Reason: p.Reason}
	if callRan {
		entry.Record.Aftermath = append(slices.Clip(entry.Record.Aftermath), e.ran(id))
	}
	settled, err := e.settle(ctx, entry, e.withdrawal(agent, &w, entry.Record.Digest))
	if err != nil {
		return nil, err
	}
	outcome := settled.Record.Decision.Outcome
	if callRan && outcome != schemas.Allowed { // a denial came first, or a deadline
		if settled, err = e.addAftermath(ctx, settled, e.ran(id)); err != nil {
			return nil, err
		}
		ids = []string{id}
	}
	if outcome == schemas.Withdrawn {
		e.publish(settled)
		ids = []string{id}
	}
	return ids, nil
}

// goneBy are the pending requests that a host has gone on without.
func (e *Engine) goneBy(ctx context.Context, agent string, p *schemas.Passed, same string, keys []string) ([]bus.Entry, error) {
	var gone []bus.Entry
	var oldest time.Time
	for _, key := range keys {
		entry, err := e.store.Records.Get(ctx, key)
		if noRecord(err) || err == nil && (entry.Record.Terminal() || entry.Record.Agent != agent || entry.Record.Detached) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r, err := requestOf(&entry.Record)
		if err != nil {
			return nil, err
		}
		waits := r.HostAsks || p.AgentName != "" && r.AgentName == p.AgentName
		if !waits || !p.WholeSession && r.TaskID != p.TaskID || p.ToolName != "" && r.ToolName != p.ToolName {
			continue
		}
		if same == "" {
			gone = append(gone, entry)
			continue
		}
		its, err := anywhere(&r)
		if err != nil {
			return nil, err
		}
		if its == same && (len(gone) == 0 || r.CreatedAt.Before(oldest)) {
			gone, oldest = []bus.Entry{entry}, r.CreatedAt
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
