package engine

import (
	"context"
	"errors"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// await returns the state of up to 500 requests of one agent. It neither creates nor decides
// a request.
func (e *withdrawals) await(ctx context.Context, c *caller, q *schemas.Await) (schemas.AwaitReply, error) {
	reply := schemas.AwaitReply{Type: schemas.TypeAwaitReply, Results: make([]schemas.Awaited, len(q.Requests))}
	each(len(q.Requests), func(i int) { reply.Results[i] = e.awaitOne(ctx, c.name, q.Requests[i]) })
	// A decision that does not fit into the reply is published in its own message, like a new decision.
	size := 0
	for i := range reply.Results {
		d := reply.Results[i].Decision
		if d == nil {
			continue
		}
		if size += len(d.UpdatedInput) + 2*len(d.Message) + len(d.Votes)<<10; size <= schemas.MaxPayloadBytes/2 { // half of the reply is for decisions; the other half is for the remaining fields of 500 results
			continue
		}
		reply.Results[i].Decision = nil
		if err := e.Edge.Publish(schemas.DecisionSubject(c.name, d.SessionID, d.PendingID), d); err != nil {
			return schemas.AwaitReply{}, err
		}
	}
	return reply, nil
}

func (e *withdrawals) awaitOne(ctx context.Context, agent string, a schemas.Awaited) schemas.Awaited {
	out := schemas.Awaited{SessionID: a.SessionID, PendingID: a.PendingID}
	key := schemas.Key(a.SessionID, a.PendingID)
	entry, err := e.store.Records.Get(ctx, key)
	if errors.Is(err, bus.ErrNotFound) || err == nil && entry.Record.Agent != agent {
		out.Error = schemas.Errorf(schemas.CodeNotFound, "no request %s is known", key)
		return out
	}
	var d *schemas.Decision
	if err == nil {
		_, d, err = e.life.decisionOf(ctx, entry)
	}
	var refused *schemas.Error
	switch {
	case errors.As(err, &refused):
		out.Error = refused
	case err != nil:
		out.Error = schemas.Errorf(schemas.CodeUnavailable, "nod could not read %s, or store its effects, in time; ask again", key)
	default:
		out.Revision, out.Decision = entry.Revision, d
	}
	return out
}

// decisionOf returns the record that decides an entry's request, and the decision d, which is nil while
// the request is pending. It stores the decision's effects before it returns. If a person approved the
// request after its agent had stopped waiting, decisionOf uses up that approval, or returns an error.
func (e *recordLife) decisionOf(ctx context.Context, entry bus.Entry) (question bus.Entry, d *schemas.Decision, err error) {
	_, id := schemas.SplitKey(entry.Key)
	question, d, err = e.lookUp(ctx, entry)
	if err != nil || d == nil {
		return question, nil, err
	}
	if question.Record.Joined != "" {
		if question, err = e.decidedIn(ctx, question); err != nil {
			return question, nil, err
		}
	}
	if err := e.holdings.applyEffects(ctx, question); err != nil {
		return question, nil, err
	}
	return question, d, e.holdings.useOwn(ctx, question, id)
}

// decidedIn returns the question that has decided a joined request, or the request's own entry
// if the question's record has expired.
func (e *recordLife) decidedIn(ctx context.Context, entry bus.Entry) (bus.Entry, error) {
	session, id := schemas.SplitKey(entry.Key)
	question, err := e.store.Records.Get(ctx, schemas.Key(session, entry.Record.Joined))
	if noRecord(err) || err == nil && question.Record.Verdict(id) == nil {
		return entry, nil
	}
	return question, err
}
