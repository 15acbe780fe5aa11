package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// The reasons of an aftermath, as people read them.
const (
	answeredAtTheTerminal = "answered at the terminal"
	agentHadGoneOn        = "the agent had gone on"
)

// addAftermath adds to the record of a question how a call of it, which has ended
// there, ended otherwise, once, and returns the record as it then is. The decision
// stays the same, and so does a record that another request has taken the place of.
func (e *Engine) addAftermath(ctx context.Context, entry bus.Entry, a schemas.Aftermath) (bus.Entry, error) {
	ended := func() string {
		if d := entry.Record.Verdict(a.PendingID); d != nil {
			return d.DecisionID
		}
		return ""
	}
	for was := ended(); was != "" && ended() == was && !hasAftermath(&entry.Record, a); {
		next := entry
		next.Record.Aftermath = append(slices.Clip(entry.Record.Aftermath), a)
		var revision uint64
		var err error
		if entry.Record.Terminal() {
			revision, err = e.store.Records.Amend(ctx, next, e.remainingRetention(&next))
		} else {
			revision, err = e.store.Records.Update(ctx, next)
		}
		if err == nil {
			next.Revision = revision
			return next, nil
		}
		if !errors.Is(err, bus.ErrMoved) {
			return entry, fmt.Errorf("add to %s how its call ended: %w", entry.Key, err)
		}
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil {
			return entry, fmt.Errorf("add to %s how its call ended: %w", entry.Key, err)
		}
	}
	return entry, nil
}

// hasAftermath reports whether the record tells a's kind of a's call already.
func hasAftermath(rec *schemas.Record, a schemas.Aftermath) bool {
	return slices.ContainsFunc(rec.Aftermath, func(b schemas.Aftermath) bool { return b.PendingID == a.PendingID && b.Kind == a.Kind })
}

// aftermathConflict is the reply to an answer of a request whose call ended otherwise than
// decided: neither "denied" nor "allowed" would be true.
func aftermathConflict(rec *schemas.Record) error {
	if len(rec.Aftermath) == 0 || rec.Decision == nil {
		return nil
	}
	a := rec.Aftermath[len(rec.Aftermath)-1]
	what := "the call ran: "
	if a.Kind == schemas.AftermathNeverRan {
		what = "the call never ran: "
	}
	return schemas.Errorf(schemas.CodeConflict, "%s%s", what, a.Reason).WithDecision(rec.Decision)
}

// ranAftermath is the aftermath of a call that its user allowed at the terminal.
func (e *Engine) ranAftermath(id string) schemas.Aftermath {
	return schemas.Aftermath{PendingID: id, Kind: schemas.AftermathRan, Reason: answeredAtTheTerminal, At: e.clock.now()}
}

// recordRanAnyway tells of a call that its host has run although the request for it had
// been denied, had timed out or was withdrawn meanwhile: it had been answered at the
// terminal before. Only a call that began between the asking and the end of the one
// request that it can have been about counts.
func (e *Engine) recordRanAnyway(ctx context.Context, agent string, p *schemas.HostResolved, same string) (ids []string, err error) {
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
		if !is || d == nil || d.Outcome == schemas.Allowed || d.DecidedAt.Before(began) || createdAt(&entry.Record).After(began) || hasAftermath(&entry.Record, e.ranAftermath(d.PendingID)) {
			continue
		}
		overtaken = append(overtaken, entry)
	}
	if len(overtaken) == 0 || slices.ContainsFunc(overtaken, func(o bus.Entry) bool { return questionOf(&o) != questionOf(&overtaken[0]) }) {
		return nil, nil // none, or nothing tells which
	}
	if other, err := e.allowedBeside(ctx, overtaken[0], agent, p, same); err != nil || other {
		return nil, err
	}
	id := overtaken[0].Record.Decision.PendingID
	question := overtaken[0]
	if question.Record.Joined != "" {
		if question, err = e.decidedIn(ctx, question); err != nil {
			return nil, err
		}
	}
	_, err = e.addAftermath(ctx, question, e.ranAftermath(id))
	return []string{id}, err
}

// allowedBeside reports whether the same call was allowed under another id since the
// one of entry was asked about: then that may be the one that ran.
func (e *Engine) allowedBeside(ctx context.Context, entry bus.Entry, agent string, p *schemas.HostResolved, same string) (bool, error) {
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

// isSameCall reports whether a record is of the call that a host tells of.
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

// questionOf is the pending_id of the question that decides about an entry.
func questionOf(entry *bus.Entry) string {
	return cmp.Or(entry.Record.Joined, ownID(entry))
}

// withdrawAbandoned withdraws the one request whose asker is gone. If it was allowed, the asker
// did not pass that on, and the record says that the call never ran.
func (e *Engine) withdrawAbandoned(ctx context.Context, agent string, p *schemas.HostResolved) (ids []string, err error) {
	entry, err := e.store.Records.Get(ctx, schemas.Key(p.SessionID, p.PendingID))
	if noRecord(err) || err == nil && entry.Record.Agent != agent {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	question, d, err := e.lookUp(ctx, entry)
	if err == nil && question.Record.Joined != "" {
		question, err = e.decidedIn(ctx, question)
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
		_, err = e.addAftermath(ctx, question, schemas.Aftermath{
			PendingID: p.PendingID, Kind: schemas.AftermathNeverRan, Reason: agentHadGoneOn, At: e.clock.now(),
		})
	default:
		return nil, nil
	}
	return []string{p.PendingID}, err
}

// logAftermath logs how calls of a record ended otherwise than decided.
func (e *Engine) logAftermath(ctx context.Context, entry bus.Entry, prompt schemas.Prompt) error {
	for _, a := range entry.Record.Aftermath {
		_, _, err := e.store.Log.Append(ctx, entry.Key+"."+a.PendingID+"."+string(a.Kind)+"."+entry.Record.Decision.DecisionID, schemas.LogEntry{
			Type: schemas.TypeLogEntry, At: a.At, Kind: schemas.LogAftermath,
			SessionID: prompt.SessionID, PendingID: a.PendingID, Actor: entry.Record.Agent, ToolName: prompt.Request.ToolName,
			Digest: entry.Record.Digest, Outcome: entry.Record.Decision.Outcome, Aftermath: &a,
		})
		if err != nil {
			return err
		}
	}
	return nil
}
