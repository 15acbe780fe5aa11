package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// throughRecord creates the record of a request. The record has a decision, or is pending for a person.
func (e *intake) throughRecord(ctx context.Context, c *caller, s *askState) (schemas.RequestReply, error) {
	if err := e.store.Room(); err != nil {
		return nil, err
	}
	if s.verdict.Effect == policy.Ask {
		return e.askPerson(ctx, c, s, 0)
	}
	return e.createDecided(ctx, s, 0)
}

func (e *intake) createDecided(ctx context.Context, s *askState, revision uint64) (schemas.RequestReply, error) {
	entry := bus.Entry{Key: s.key(), Record: s.record(s.verdict, e.clock.now()), Revision: revision}
	entry.Record.Waiters, entry.Record.Decision = []schemas.Waiter{waiterOf(&entry)}, e.policyDecision(s)
	entry.Record.Run, entry.Record.Trace = s.rules.run, s.trace.keep()
	_, err := e.store.Records.CreateDecided(ctx, entry)
	if errors.Is(err, bus.ErrMoved) {
		return e.replyMoved(ctx, s, func(revision uint64) (schemas.RequestReply, error) { return e.createDecided(ctx, s, revision) })
	}
	if err != nil {
		return nil, err
	}
	return entry.Record.Decision, nil
}

// record returns the record of a request that is decided at once. The record's deadline is the
// present time. For a request that waits, the method pendingRecord sets another deadline.
func (r *agentRequest) record(v policy.Verdict, now time.Time) schemas.Record {
	return schemas.Record{
		Type: schemas.TypeRecord, Agent: r.agent, User: r.request.User, Request: r.body, Digest: r.digest,
		Risk: v.Risk, Reasons: v.Reasons, Targets: v.Targets, Unseen: v.Unseen, Tier: schemas.TierRequest, Deadline: now,
		Routes: []schemas.Route{}, Votes: []schemas.Vote{},
	}
}

// askPerson stores a request for a person to decide, and replies with the receipt. The parameter
// revision is the revision of the deletion marker under the request's key, or 0 without a marker.
func (e *intake) askPerson(ctx context.Context, c *caller, s *askState, revision uint64) (schemas.RequestReply, error) {
	s.plan.at, s.plan.revision = e.clock.now(), revision
	r, err := e.runStages(ctx, s, asking)
	if err != nil {
		return nil, err
	}
	if r.outcome != ask {
		return e.replyMoved(ctx, s, func(revision uint64) (schemas.RequestReply, error) { return e.askPerson(ctx, c, s, revision) })
	}
	entry := s.plan.entry
	if entry.Record.Joined == "" { // for a joined request, the outbox shows viewers the question that the request has joined
		c.afterReply(func() { e.viewNew(entry, s.request) })
	}
	return receipt(entry, &s.request), nil
}

// viewNew counts a new pending request and sends it to the viewers at once, without waiting for the
// outbox.
func (e *intake) viewNew(entry bus.Entry, r schemas.Request) {
	e.counts.add(r.SessionID)
	r.Rejoin, r.Revision = false, 0
	if err := e.life.view(e.life.promptWith(entry, r)); err != nil {
		e.Log.Warn("engine: a new request was not sent to the viewers; the outbox will send it", "key", entry.Key, "error", err)
	}
}

// admit refuses a request with FORBIDDEN if its session has maxOpen pending questions. If the settings
// name no approver, admit reads the settings again, because a later stage refuses such requests and
// must do so by current settings only.
func (e *intake) admit(ctx context.Context, s *askState) (result, error) {
	if len(s.settings.settings.People()) == 0 && !s.settings.settings.ByLogin() {
		if err := e.readSettings(ctx); err != nil {
			return result{}, err
		}
		s.settings = e.settings.now()
	}
	if s.attendance.open < maxOpen {
		return result{}, nil
	}
	return result{}, schemas.Errorf(schemas.CodeForbidden, "session %s has %d pending requests, which is the most: answer or withdraw some first", s.request.SessionID, s.attendance.open)
}

func (s *askState) pendingRecord() schemas.Record {
	rec := s.record(s.verdict, s.plan.at)
	rec.Foreground, rec.Routes = s.plan.foreground.session, s.plan.routes
	rec.OnDisk, rec.Trace = s.plan.onDisk, s.trace.keep()
	rec.Remember, rec.Holder, rec.Run = s.plan.reaches, s.permissions.holder, s.plan.run
	rec.Tier, rec.TimeoutSeconds = s.plan.limit.tier, int(s.plan.limit.timeout/time.Second)
	rec.Deadline = s.plan.at.Add(s.plan.limit.timeout).Truncate(time.Millisecond)
	return rec
}

// takeTurn sets the question's first event. If an approver is at the session, the event is the time at
// which phones and chats show the question. If phones and chats already show as many questions of the
// session as the settings allow, the event is the next check of the question's turn. In all other cases
// the event is the next step of the escalation or the deadline.
func (e *intake) takeTurn(_ context.Context, s *askState) (result, error) {
	rec := s.pendingRecord()
	settings := s.settings.settings
	s.plan.next = firstEvent(&rec, s.approverPresent(), s.plan.at.Add(settings.NotifyAfter()).Truncate(time.Millisecond))
	if limit := settings.OpenPrompts(); limit > 0 && s.attendance.open >= limit && goesToCarriers(&rec) && s.plan.next.Kind != schemas.EventEscalate {
		s.plan.next = releaseAt(&rec, s.plan.at)
	}
	return result{}, nil
}

// storePending stores a request as a question, or as a waiter of a pending question. If the
// request already has a record, storePending stores nothing, and its outcome is goOn. Otherwise
// its outcome is ask.
func (e *intake) storePending(ctx context.Context, s *askState) (result, error) {
	s.trace.routed(s, s.plan.at)
	rec := s.pendingRecord()
	next := s.plan.next
	rec.NextEvent = &next
	if e.conditions(s).newer {
		rec.Type = schemas.TeamRecord
	}
	var err error
	if rec.Question, err = s.questionToken(&rec); err != nil {
		return result{}, err
	}
	s.plan.entry, err = e.life.place(ctx, bus.Entry{Key: s.key(), Record: rec, Revision: s.plan.revision})
	if errors.Is(err, bus.ErrMoved) {
		return result{}, nil
	}
	return result{outcome: ask}, err
}

// maxReaches bounds, in bytes, the rules and permissions in a record that an answer may allow
// beyond the call. The record must fit into one message after any answer is added.
const maxReaches = 64 << 10

// withinSize returns reaches, or nil if they are larger than maxReaches. Without reaches, an answer can
// only allow the call itself, once.
func withinSize(reaches []schemas.Reach) []schemas.Reach {
	data, err := schemas.Encode(reaches)
	if err != nil || len(data) > maxReaches {
		return nil
	}
	return reaches
}

// firstEvent returns the first event of a request. The parameter present means that an approver holds
// the input lock, and notify is the time at which phones and chats show the request. If an approver
// holds the lock and the request is routed to a phone or chat, the event is the time in notify. In
// all other cases, and if the deadline is earlier, the event is the next step of the escalation or
// the deadline.
func firstEvent(rec *schemas.Record, present bool, notify time.Time) schemas.Event {
	present = present && (rec.Tier == schemas.TierConnected || rec.Tier == schemas.TierVoice)
	if goesToCarriers(rec) && present && notify.Before(rec.Deadline) {
		return schemas.Event{At: notify, Kind: schemas.EventEscalate}
	}
	return nextEvent(rec, createdAt(rec))
}

// replyMoved replies to a request whose key another write has just used. If that write stored a record,
// the reply comes from the record. If an operator deleted the record, the function create makes a new
// record over the deletion marker.
func (e *intake) replyMoved(ctx context.Context, s *askState, create func(revision uint64) (schemas.RequestReply, error)) (schemas.RequestReply, error) {
	entry, err := e.store.Records.Get(ctx, s.key())
	switch {
	case err == nil:
		return e.replyExisting(ctx, s, entry)
	case errors.Is(err, bus.ErrNotFound) && ctx.Err() == nil:
		return create(entry.Revision)
	}
	return nil, err
}

// replyExisting replies to a request that has a record. If the new verdict decides the request,
// the decision is stored by compare-and-set in the question's record.
func (e *intake) replyExisting(ctx context.Context, s *askState, entry bus.Entry) (schemas.RequestReply, error) {
	switch rec := &entry.Record; {
	case rec.Agent != s.agent:
		return nil, notFound(s.key())
	case rec.Digest != s.digest && rec.Digest != schemas.AnyDigest: // AnyDigest is in the record of a withdrawal that arrived before its request
		return nil, reused(s.key())
	}
	s.trace.rejoin(&entry.Record)
	question, d, err := e.life.decisionOf(ctx, entry)
	if err != nil {
		return nil, err
	}
	if d != nil {
		return d, nil
	}
	if s.verdict.Effect != policy.Ask && (s.rules.run == nil || sameRun(s.rules.run, question.Record.Run)) {
		return e.decideExisting(ctx, s, question)
	}
	if question, err = e.resumeWaiting(ctx, question, s.request.PendingID); err != nil {
		return nil, err
	}
	if !question.Record.Waits(s.request.PendingID) {
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil {
			return nil, err
		}
		return e.replyExisting(ctx, s, entry)
	}
	return receipt(entry, &s.request), nil
}

// decideExisting decides a pending question by a new verdict about one of its calls, for
// example after a change of the settings. The decision ends all waiters, because identical
// calls have the same verdict.
func (e *intake) decideExisting(ctx context.Context, s *askState, question bus.Entry) (schemas.RequestReply, error) {
	now, err := e.life.nowFor(ctx, &question.Record, question.Record.Places())
	if err != nil {
		return nil, err
	}
	if question, err = e.life.endOverdue(ctx, question, now); err != nil {
		return nil, err
	}
	d := e.policyDecision(s)
	_, d.PendingID = schemas.SplitKey(question.Key)
	d.Digest = question.Record.Digest
	if s.rules.run != nil && d.Outcome == schemas.Allowed {
		if d.UpdatedInput, err = runInput(&question, d.PendingID); err != nil {
			return nil, err
		}
	}
	decided, err := e.life.decide(ctx, question, d, everyWaiter)
	if err != nil {
		return nil, err
	}
	e.life.publish(decided)
	return replyDecision(decided, s.key())
}

// resumeWaiting sets a question's timer again, because it may have been lost. It also marks the request
// as no longer detached, because the agent has sent it again. The returned question may be decided
// already.
func (e *intake) resumeWaiting(ctx context.Context, question bus.Entry, pendingID string) (bus.Entry, error) {
	first := withEarliestEvent(question)
	err := e.store.Records.Arm(ctx, &first)
	if errors.Is(err, bus.ErrLockHeld) {
		question, err = e.life.retire(ctx, question)
	}
	if err != nil {
		return question, err
	}
	return e.life.setDetached(ctx, question, pendingID, false)
}

func receipt(entry bus.Entry, r *schemas.Request) schemas.Receipt {
	return schemas.Receipt{
		Type: schemas.TypeReceipt, SessionID: r.SessionID, PendingID: r.PendingID,
		Deadline: ownDeadline(&entry), Tier: entry.Record.Tier, Digest: entry.Record.Digest, Revision: entry.Revision,
	}
}

// setDeadline sets the time limit of a request, which never changes afterwards.
func (e *intake) setDeadline(_ context.Context, s *askState) (result, error) {
	s.plan.limit = e.timeLimit(s)
	return result{}, nil
}

// timeLimit returns the time limit of a request, with the tier of the timeout policy that sets
// this limit.
func (e *intake) timeLimit(s *askState) timeLimit {
	if s.request.Kind == schemas.KindPermission {
		if s.request.TimeoutSeconds > 0 {
			return timeLimit{schemas.TierRequest, time.Duration(s.request.TimeoutSeconds) * time.Second}
		}
		return timeLimit{schemas.TierRequest, schemas.DefaultPermissionTimeout}
	}
	settings, session, lock := s.settings.settings, s.held.session, s.lock()
	switch {
	case session.TimeoutSeconds > 0:
		return timeLimit{schemas.TierSession, time.Duration(session.TimeoutSeconds) * time.Second}
	case e.conditions(s).forTeams: // an approver at the session does not decide alone, so the long timeout applies
		return timeLimit{schemas.TierDisconnected, settings.DisconnectedTimeout()}
	case s.approverPresent() && lock.Kind != schemas.ClientVoice:
		return timeLimit{schemas.TierConnected, settings.ConnectedTimeout()}
	case !s.approverPresent() && !e.onlyByVoice(s.plan.routes):
		return timeLimit{schemas.TierDisconnected, settings.DisconnectedTimeout()}
	}
	return timeLimit{schemas.TierVoice, cmp.Or(e.VoiceTimeout, settings.VoiceTimeout())}
}

// onlyByVoice reports whether voice is the only channel on which an approver can answer.
func (e *intake) onlyByVoice(routes []schemas.Route) bool {
	return len(routes) > 0 && !slices.ContainsFunc(routes, func(r schemas.Route) bool { return r.Connector != schemas.ClientVoice && !e.outgoing(r.Connector) })
}
