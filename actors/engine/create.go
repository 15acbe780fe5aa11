package engine

import (
	"context"
	"errors"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// throughRecord creates the record of a request, either with its decision, or pending for
// a person to decide.
func (e *Engine) throughRecord(ctx context.Context, c *bus.Call, s *askState) error {
	if s.verdict.Effect == policy.Ask {
		return e.askPerson(ctx, c, s, 0)
	}
	return e.createDecided(ctx, c, s, 0)
}

func (e *Engine) createDecided(ctx context.Context, c *bus.Call, s *askState, revision uint64) error {
	entry := bus.Entry{Key: s.key(), Record: s.record(s.verdict, e.clock.now()), Revision: revision}
	entry.Record.Waiters, entry.Record.Decision = []schemas.Waiter{waiterOf(&entry)}, e.policyDecision(s)
	_, err := e.store.Records.CreateDecided(ctx, entry)
	if errors.Is(err, bus.ErrMoved) {
		return e.replyMoved(ctx, c, s, func(revision uint64) error { return e.createDecided(ctx, c, s, revision) })
	}
	if err != nil {
		return err
	}
	c.Reply(entry.Record.Decision)
	return nil
}

// record returns the record of a request that is decided at once: its deadline is now.
func (r *agentRequest) record(v policy.Verdict, now time.Time) schemas.Record {
	return schemas.Record{
		Type: schemas.TypeRecord, Agent: r.agent, User: r.request.User, Request: r.body, Digest: r.digest,
		Risk: v.Risk, Reasons: v.Reasons, Tier: schemas.TierRequest, Deadline: now,
		Routes: []schemas.Route{}, Votes: []schemas.Vote{},
	}
}

// askPerson runs the stages that store a request for a person to decide, and replies
// with its receipt.
func (e *Engine) askPerson(ctx context.Context, c *bus.Call, s *askState, revision uint64) error {
	s.plan.at, s.plan.revision = e.clock.now(), revision
	r, err := e.runStages(ctx, s, asking)
	if err != nil {
		return err
	}
	if r.outcome != ask { // the request has a record already
		return e.replyMoved(ctx, c, s, func(revision uint64) error { return e.askPerson(ctx, c, s, revision) })
	}
	entry := s.plan.entry
	c.Reply(receipt(entry, &s.request))
	if entry.Record.Joined != "" {
		return nil // the request has joined a question; the outbox shows the question's new number of waiters
	}
	e.counts.add(s.request.SessionID)
	s.request.Rejoin, s.request.Revision = false, 0
	if err := e.view(e.promptWith(entry, s.request)); err != nil { // viewers need not wait for the outbox
		e.Log.Warn("engine: a new request was not sent to the viewers; the outbox will send it", "key", entry.Key, "error", err)
	}
	return nil
}

// admit refuses one more request of a session that has too many pending. If the settings
// name no approver, it reads them again first: an engine that has not read the newest
// settings yet must not refuse.
func (e *Engine) admit(ctx context.Context, s *askState) (result, error) {
	if len(s.settings.settings.People()) == 0 {
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

// pendingRecord returns the record of a request for a person to decide, as planned by the
// stages.
func (s *askState) pendingRecord() schemas.Record {
	rec := s.record(s.verdict, s.plan.at)
	rec.Foreground, rec.Routes = s.plan.foreground.session, s.plan.routes
	rec.Remember, rec.Holder = s.plan.reaches, s.permissions.holder
	rec.Tier, rec.TimeoutSeconds = s.plan.limit.tier, int(s.plan.limit.timeout/time.Second)
	rec.Deadline = s.plan.at.Add(s.plan.limit.timeout).Truncate(time.Millisecond)
	return rec
}

// takeTurn sets the first event of the question: its deadline; or, if an approver is
// there, the time at which phones and chats show it unless it is answered; or, if phones
// and chats already show enough questions of the session, the next check of its turn.
func (e *Engine) takeTurn(_ context.Context, s *askState) (result, error) {
	rec := s.pendingRecord()
	settings := s.settings.settings
	s.plan.next = firstEvent(&rec, s.plan.at.Add(settings.NotifyAfter()).Truncate(time.Millisecond))
	if limit := settings.OpenPrompts(); limit > 0 && s.attendance.open >= limit && goesToCarriers(&rec) && s.plan.next.Kind == schemas.EventDeadline {
		s.plan.next = releaseAt(&rec, s.plan.at)
	}
	return result{}, nil
}

// storePending stores the request as a waiter or as a question of its own. Its outcome is
// ask, or goOn if the request's record has changed since the caller read it.
func (e *Engine) storePending(ctx context.Context, s *askState) (result, error) {
	rec := s.pendingRecord()
	next := s.plan.next
	rec.NextEvent = &next
	var err error
	if rec.Question, err = s.questionToken(&rec); err != nil {
		return result{}, err
	}
	s.plan.entry, err = e.place(ctx, bus.Entry{Key: s.key(), Record: rec, Revision: s.plan.revision})
	if errors.Is(err, bus.ErrMoved) {
		return result{}, nil
	}
	return result{outcome: ask}, err
}

// maxReaches bounds, in bytes, the reaches in a record, so that the record with any answer
// fits one message.
const maxReaches = 64 << 10

// withinSize returns the reaches, or nil if they exceed maxReaches; the call can then
// only be allowed once.
func withinSize(reaches []schemas.Reach) []schemas.Reach {
	data, err := schemas.Encode(reaches)
	if err != nil || len(data) > maxReaches {
		return nil
	}
	return reaches
}

// firstEvent returns the first event of a request. If a client holds the input lock and
// the request goes to phones or chats too, that is its escalation to them at notify;
// otherwise it is the deadline.
func firstEvent(rec *schemas.Record, notify time.Time) schemas.Event {
	present := rec.Tier == schemas.TierConnected || rec.Tier == schemas.TierVoice
	if goesToCarriers(rec) && present && notify.Before(rec.Deadline) {
		return schemas.Event{At: notify, Kind: schemas.EventEscalate}
	}
	return schemas.Event{At: rec.Deadline, Kind: schemas.EventDeadline}
}

// replyMoved replies to a request whose key was written before: by the record there, or,
// if it was deleted by hand, by creating the record over the deletion marker.
func (e *Engine) replyMoved(ctx context.Context, c *bus.Call, s *askState, create func(revision uint64) error) error {
	entry, err := e.store.Records.Get(ctx, s.key())
	switch {
	case err == nil:
		return e.replyExisting(ctx, c, s, entry)
	case errors.Is(err, bus.ErrNotFound) && ctx.Err() == nil:
		return create(entry.Revision)
	}
	return err
}

// replyExisting replies to a request that has a record. If the verdict decides the
// request, the decision is stored by compare-and-set in the question's record, like any
// other decision.
func (e *Engine) replyExisting(ctx context.Context, c *bus.Call, s *askState, entry bus.Entry) error {
	switch rec := &entry.Record; {
	case rec.Agent != s.agent:
		return notFound(s.key())
	case rec.Digest != s.digest && rec.Digest != schemas.AnyDigest: // AnyDigest: a withdrawal that came before the request
		return reused(s.key())
	}
	question, d, err := e.decisionOf(ctx, entry)
	if err != nil {
		return err
	}
	if d != nil {
		c.Reply(d)
		return nil
	}
	if s.verdict.Effect != policy.Ask {
		return e.decideExisting(ctx, c, s, question)
	}
	if question, err = e.resumeWaiting(ctx, question, s.request.PendingID); err != nil {
		return err
	}
	if !question.Record.Waits(s.request.PendingID) { // the call has ended in the meantime
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil {
			return err
		}
		return e.replyExisting(ctx, c, s, entry)
	}
	c.Reply(receipt(entry, &s.request))
	return nil
}

// decideExisting decides a stored question by a verdict that its calls did not get when
// they were first checked, such as after a change of settings. Identical calls have the
// same verdict.
func (e *Engine) decideExisting(ctx context.Context, c *bus.Call, s *askState, question bus.Entry) error {
	now, err := e.nowFor(ctx, &question.Record, question.Record.Places())
	if err != nil {
		return err
	}
	if question, err = e.endOverdue(ctx, question, now); err != nil {
		return err
	}
	d := e.policyDecision(s)
	_, d.PendingID = schemas.SplitKey(question.Key)
	d.Digest = question.Record.Digest
	decided, err := e.decide(ctx, question, d, everyWaiter)
	if err != nil {
		return err
	}
	e.publish(decided)
	return e.replyDecision(ctx, c, decided, s.key())
}

// resumeWaiting arms a question's timer if it is lost, and ends the detached state of a
// request that its agent has sent again. The returned question may have ended.
func (e *Engine) resumeWaiting(ctx context.Context, question bus.Entry, pendingID string) (bus.Entry, error) {
	err := e.store.Records.Arm(ctx, &question)
	if errors.Is(err, bus.ErrHeld) {
		question, err = e.retire(ctx, question)
	}
	if err != nil {
		return question, err
	}
	return e.setDetached(ctx, question, pendingID, false)
}

func receipt(entry bus.Entry, r *schemas.Request) schemas.Receipt {
	return schemas.Receipt{
		Type: schemas.TypeReceipt, SessionID: r.SessionID, PendingID: r.PendingID,
		Deadline: ownDeadline(&entry), Tier: entry.Record.Tier, Digest: entry.Record.Digest, Revision: entry.Revision,
	}
}

// setDeadline sets the time limit, which stays the same for the life of the request.
func (e *Engine) setDeadline(_ context.Context, s *askState) (result, error) {
	s.plan.limit = e.timeLimit(s)
	return result{}, nil
}

// timeLimit returns the time limit of a request, and its tier of the timeout policy.
func (e *Engine) timeLimit(s *askState) timeLimit {
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
	case !s.approverPresent():
		return timeLimit{schemas.TierDisconnected, settings.DisconnectedTimeout()}
	case lock.Kind == schemas.ClientVoice && e.VoiceTimeout > 0:
		return timeLimit{schemas.TierVoice, e.VoiceTimeout}
	case lock.Kind == schemas.ClientVoice:
		return timeLimit{schemas.TierVoice, settings.VoiceTimeout()}
	}
	return timeLimit{schemas.TierConnected, settings.ConnectedTimeout()}
}
