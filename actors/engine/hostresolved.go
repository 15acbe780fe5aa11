package engine

import (
	"context"
	"encoding/json"
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
	for _, entry := range gone {
		_, id := schemas.SplitKey(entry.Key)
		w := schemas.Withdraw{SessionID: p.SessionID, PendingID: id, Reason: p.Reason}
		settled, err := e.settle(ctx, entry, e.withdrawal(c.Tokens[0], &w, entry.Record.Digest))
		if err != nil {
			return err
		}
		if settled.Record.Decision.Outcome == schemas.Withdrawn {
			e.publish(settled)
			reply.PendingIDs = append(reply.PendingIDs, id)
		}
	}
	c.Reply(reply)
	return nil
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
		if !r.HostAsks || !p.WholeSession && r.TaskID != p.TaskID || p.ToolName != "" && r.ToolName != p.ToolName {
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
