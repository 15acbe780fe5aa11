package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// hostResolved handles a host's report about calls that ended at the host without nod, and withdraws
// their requests. It adds an aftermath if a call ran without an allow, or never ran although it was
// allowed. If the host's session has ended, it also ends the session's grants that were offered for one
// session only. It changes only requests and grants of the calling agent.
func (e *withdrawals) hostResolved(ctx context.Context, c *caller, p *schemas.HostResolved) (schemas.HostResolvedReply, error) {
	ids, err := e.resolveByHost(ctx, c.name, p)
	if err == nil && p.WholeSession {
		err = e.holdings.endWithSession(ctx, c.name, p.SessionID)
	}
	if err != nil {
		return schemas.HostResolvedReply{}, err
	}
	return schemas.HostResolvedReply{Type: schemas.TypeHostResolvedReply, PendingIDs: append([]string{}, ids...)}, nil
}

// resolveByHost returns the ids of the requests that it has withdrawn or given an aftermath.
func (e *withdrawals) resolveByHost(ctx context.Context, agent string, p *schemas.HostResolved) (ids []string, err error) {
	if p.PendingID != "" {
		return e.withdrawAbandoned(ctx, agent, p)
	}
	same := ""
	if len(p.ActionDetails) > 0 {
		if same, err = digestIgnoringCwd(&schemas.Request{Kind: schemas.KindToolCall, ToolName: p.ToolName, ActionDetails: p.ActionDetails}); err != nil {
			return nil, schemas.Errorf(schemas.CodeValidation, "action_details: %v", err)
		}
	}
	if same != "" && p.RanMillis != nil {
		if ids, err = e.recordUncontained(ctx, agent, p, same); err != nil || len(ids) > 0 {
			return ids, err
		}
	}
	keys, err := e.timedKeys(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	gone, err := e.supersededByHost(ctx, agent, p, same, keys)
	if err != nil {
		return nil, err
	}
	if len(gone) == 0 && same != "" && p.RanMillis != nil {
		return e.recordRanAnyway(ctx, agent, p, same)
	}
	for _, call := range gone {
		id, err := e.withdrawResolved(ctx, call, agent, p, same != "")
		if err != nil {
			return nil, err
		}
		ids = append(ids, id...)
	}
	return ids, nil
}

// timedKeys returns the keys of a session's questions whose timer is set or has fired. It reads the
// fired timers last, because a timer that fires during the reading must not be missed. Some of these
// questions may be decided.
func (e *withdrawals) timedKeys(ctx context.Context, session string) ([]string, error) {
	armed, err := e.store.Records.Pending(ctx, session)
	if err != nil {
		return nil, err
	}
	fired, err := e.store.Records.FiredOf(ctx, session)
	keys := append(armed, fired...)
	slices.Sort(keys)
	return slices.Compact(keys), err
}

// withdrawResolved withdraws a call that has ended at its host. If the call ran without an allow,
// withdrawResolved adds the aftermath that it ran.
func (e *withdrawals) withdrawResolved(ctx context.Context, call openCall, agent string, p *schemas.HostResolved, callRan bool) (ids []string, err error) {
	w := schemas.Withdraw{SessionID: p.SessionID, PendingID: call.pendingID, Reason: p.Reason}
	question, err := e.takeBack(ctx, call.question, agent, &w)
	if err != nil {
		return nil, err
	}
	d := question.Record.Verdict(call.pendingID)
	if d == nil {
		return nil, nil // the call has just become a question of its own, which the host's next report withdraws
	}
	if callRan && d.Outcome != schemas.Allowed { // a denial or a timeout may have been stored before this withdrawal
		if _, err = e.life.addAftermath(ctx, question, e.life.ranAftermath(call.pendingID)); err != nil {
			return nil, err
		}
		return []string{call.pendingID}, nil
	}
	if d.Outcome == schemas.Withdrawn {
		ids = []string{call.pendingID}
	}
	return ids, nil
}

// openCall is a pending call, with the record of the question that the call waits for.
type openCall struct {
	question  bus.Entry
	pendingID string
	request   schemas.Request
}

// openCalls returns an agent's pending calls in the questions under the given keys. It leaves out
// detached calls.
func (e *withdrawals) openCalls(ctx context.Context, agent string, keys []string) ([]openCall, error) {
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

// supersededByHost returns the pending calls that a host's report covers. If the report names a call by
// its content, only the oldest pending call with that content is returned.
func (e *withdrawals) supersededByHost(ctx context.Context, agent string, p *schemas.HostResolved, same string, keys []string) ([]openCall, error) {
	calls, err := e.openCalls(ctx, agent, keys)
	if err != nil {
		return nil, err
	}
	var gone []openCall
	var oldest time.Time
	for _, call := range calls {
		r := &call.request
		waits := r.HostAsks || p.AgentName != "" && r.AgentName == p.AgentName
		if !waits || !p.WholeSession && r.TaskID != p.TaskID || p.ToolName != "" && r.ToolName != p.ToolName {
			continue
		}
		if same == "" {
			gone = append(gone, call)
			continue
		}
		its, err := digestIgnoringCwd(r)
		if err != nil {
			return nil, err
		}
		if its == same && (len(gone) == 0 || r.CreatedAt.Before(oldest)) {
			gone, oldest = []openCall{call}, r.CreatedAt
		}
	}
	return gone, nil
}

// digestIgnoringCwd returns the CallDigest of a call without its working directory. The directory must
// not count, because the host reports a call after the run, and the call itself may have changed the
// directory.
func digestIgnoringCwd(r *schemas.Request) (string, error) {
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
	return schemas.CallDigest(&schemas.Request{Kind: r.Kind, ToolName: r.ToolName, ActionDetails: without})
}
