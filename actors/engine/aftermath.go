package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// An aftermath tells people what became of a call after its decision. These are its texts.
const (
	answeredAtTheTerminal = "answered at the terminal"
	agentHadGoneOn        = "the agent had gone on"
)

// addAftermath adds an aftermath to the record of a decided call, at most one for each call and kind,
// and returns the record. The decision stays unchanged. If the stored record now belongs to another
// request under the same key, addAftermath changes nothing.
func (e *recordLife) addAftermath(ctx context.Context, entry bus.Entry, a schemas.Aftermath) (bus.Entry, error) {
	decided := entry.Record.Verdict(a.PendingID)
	if decided == nil {
		return entry, nil
	}
	entry, _, err := e.change(ctx, entry, func(next *bus.Entry) (write, error) {
		d := next.Record.Verdict(a.PendingID)
		if d == nil || d.DecisionID != decided.DecisionID || hasAftermath(&next.Record, a) {
			return nil, nil
		}
		next.Record.Aftermath = append(slices.Clip(next.Record.Aftermath), a)
		return e.amend(next), nil
	})
	return entry, err
}

func hasAftermath(rec *schemas.Record, a schemas.Aftermath) bool {
	return slices.ContainsFunc(rec.Aftermath, func(b schemas.Aftermath) bool { return b.PendingID == a.PendingID && b.Kind == a.Kind })
}

// aftermathConflict returns CONFLICT for an answer to a request that has an aftermath, because the
// decision alone would mislead the person about the call. Otherwise it returns nil.
func aftermathConflict(rec *schemas.Record) error {
	if len(rec.Aftermath) == 0 || rec.Decision == nil {
		return nil
	}
	a := rec.Aftermath[len(rec.Aftermath)-1]
	text := "the call ran: "
	if a.Kind == schemas.AftermathNeverRan {
		text = "the call never ran: "
	}
	return schemas.Errorf(schemas.CodeConflict, "%s%s", text, a.Reason).WithDecision(rec.Decision)
}

// ranAftermath returns the aftermath of a call that its user allowed at the agent's own
// terminal.
func (e *recordLife) ranAftermath(id string) schemas.Aftermath {
	return schemas.Aftermath{PendingID: id, Kind: schemas.AftermathRan, Reason: answeredAtTheTerminal, At: e.clock.now()}
}

// recordRanAnyway records that the host ran a call whose request was denied, timed out or was
// withdrawn. The host ran the call because its user allowed it at the terminal. recordRanAnyway
// records this only if exactly one question about an identical call was pending when the call began.
func (e *withdrawals) recordRanAnyway(ctx context.Context, agent string, p *schemas.HostResolved, same string) (ids []string, err error) {
	began := e.clock.now().Add(-time.Duration(*p.RanMillis) * time.Millisecond)
	ended, err := e.store.Records.ChangedSince(ctx, p.SessionID, began)
	if err != nil {
		return nil, err
	}
	var overtaken []bus.Entry
	for _, entry := range ended {
		is, err := isSameCall(&entry.Record, agent, p, same)
		if err != nil {
			return nil, err
		}
		d := entry.Record.Decision
		if !is || d == nil || d.Outcome == schemas.Allowed || d.DecidedAt.Before(began) || createdAt(&entry.Record).After(began) || hasAftermath(&entry.Record, e.life.ranAftermath(d.PendingID)) {
			continue
		}
		overtaken = append(overtaken, entry)
	}
	if len(overtaken) == 0 || slices.ContainsFunc(overtaken, func(o bus.Entry) bool { return questionOf(&o) != questionOf(&overtaken[0]) }) {
		return nil, nil // either no request matches, or several match
	}
	if other, err := e.allowedBeside(ctx, overtaken[0], agent, p, same); err != nil || other {
		return nil, err
	}
	id := overtaken[0].Record.Decision.PendingID
	question := overtaken[0]
	if question.Record.Joined != "" {
		if question, err = e.life.decidedIn(ctx, question); err != nil {
			return nil, err
		}
	}
	_, err = e.life.addAftermath(ctx, question, e.life.ranAftermath(id))
	return []string{id}, err
}

// allowedBeside reports whether, since a request was created, nod has allowed an identical call under
// another id. If so, the host may have run that other call.
func (e *withdrawals) allowedBeside(ctx context.Context, entry bus.Entry, agent string, p *schemas.HostResolved, same string) (bool, error) {
	others, err := e.store.Records.ChangedSince(ctx, p.SessionID, createdAt(&entry.Record))
	if err != nil {
		return false, err
	}
	for _, other := range others {
		is, err := isSameCall(&other.Record, agent, p, same)
		if err != nil {
			return false, err
		}
		if d := other.Record.Decision; is && d != nil && d.Outcome == schemas.Allowed {
			return true, nil
		}
	}
	return false, nil
}

// isSameCall reports whether a record is about the call in a host's report. The parameter same is the
// digest of the reported call without its working directory.
func isSameCall(rec *schemas.Record, agent string, p *schemas.HostResolved, same string) (bool, error) {
	if rec.Agent != agent {
		return false, nil
	}
	r, err := requestOf(rec)
	if err != nil || r.Kind != schemas.KindToolCall || r.TaskID != p.TaskID || r.ToolName != p.ToolName {
		return false, err
	}
	its, err := digestIgnoringCwd(&r)
	return its == same, err
}

// questionOf returns the pending_id of the question that decides an entry's request.
func questionOf(entry *bus.Entry) string {
	return cmp.Or(entry.Record.Joined, ownID(entry))
}

// withdrawAbandoned withdraws a request if the process that sent it is gone. If the request was
// already allowed, its record gets the aftermath that the call never ran. The returned ids are
// empty if nothing was changed.
func (e *withdrawals) withdrawAbandoned(ctx context.Context, agent string, p *schemas.HostResolved) (ids []string, err error) {
	entry, err := e.store.Records.Get(ctx, schemas.Key(p.SessionID, p.PendingID))
	if noRecord(err) || err == nil && entry.Record.Agent != agent {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	question, d, err := e.life.lookUp(ctx, entry)
	if err == nil && question.Record.Joined != "" {
		question, err = e.life.decidedIn(ctx, question)
	}
	if err != nil {
		return nil, err
	}
	if w := question.Record.Waiter(p.PendingID); w != nil && w.Detached {
		return nil, nil
	}
	if d == nil {
		w := schemas.Withdraw{SessionID: p.SessionID, PendingID: p.PendingID, Reason: p.Reason}
		if question, err = e.takeBack(ctx, question, agent, &w); err != nil {
			return nil, err
		}
		d = question.Record.Verdict(p.PendingID)
	}
	switch {
	case d == nil:
		return nil, nil
	case d.Outcome == schemas.Withdrawn:
	case d.Outcome == schemas.Allowed:
		_, err = e.life.addAftermath(ctx, question, schemas.Aftermath{
			PendingID: p.PendingID, Kind: schemas.AftermathNeverRan, Reason: agentHadGoneOn, At: e.clock.now(),
		})
	default:
		return nil, nil
	}
	return []string{p.PendingID}, err
}

func (e *effects) logAftermath(ctx context.Context, entry bus.Entry, prompt schemas.Prompt) error {
	for _, a := range entry.Record.Aftermath {
		_, err := e.appendOnce(ctx, entry.Key+"."+a.PendingID+"."+string(a.Kind)+"."+entry.Record.Decision.DecisionID, schemas.LogEntry{
			Type: schemas.TypeLogEntry, At: a.At, Kind: schemas.LogAftermath,
			SessionID: prompt.SessionID, PendingID: a.PendingID, Actor: entry.Record.Agent, ToolName: prompt.Request.ToolName,
			Digest: entry.Record.Digest, Outcome: entry.Record.Decision.Outcome, Aftermath: &a,
		}, a.At)
		if err != nil {
			return err
		}
	}
	return nil
}
