package engine

import (
	"context"
	"errors"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// throughRecord decides, or has a person asked, by making the record.
func (e *Engine) throughRecord(ctx context.Context, c *bus.Call, a *asked) error {
	if a.verdict.Effect == policy.Ask {
		return e.create(ctx, c, a, 0)
	}
	return e.createDecided(ctx, c, a, 0)
}

func (e *Engine) createDecided(ctx context.Context, c *bus.Call, a *asked, revision uint64) error {
	entry := bus.Entry{Key: a.key(), Record: a.record(e.clock.now()), Revision: revision}
	entry.Record.Waiters, entry.Record.Decision = []schemas.Waiter{waiterOf(&entry)}, e.byPolicy(a)
	_, err := e.store.Records.CreateDecided(ctx, entry)
	if errors.Is(err, bus.ErrMoved) {
		return e.moved(ctx, c, a, func(revision uint64) error { return e.createDecided(ctx, c, a, revision) })
	}
	if err != nil {
		return err
	}
	c.Reply(entry.Record.Decision)
	return nil
}

// record is one of a request that does not wait: its deadline is now.
func (a *asked) record(now time.Time) schemas.Record {
	return schemas.Record{
		Type: schemas.TypeRecord, Agent: a.agent, User: a.request.User, Request: a.bytes, Digest: a.digest,
		Risk: a.verdict.Risk, Reasons: a.verdict.Reasons, Tier: schemas.TierRequest, Deadline: now,
		Routes: []schemas.Route{}, Votes: []schemas.Vote{},
	}
}

// create stores the request for a person to decide, and answers its receipt.
func (e *Engine) create(ctx context.Context, c *bus.Call, a *asked, revision uint64) error {
	now := e.clock.now()
	rec := a.record(now)
	var err error
	if len(a.under.settings.People()) == 0 { // an engine that has not heard of the newest settings must not refuse
		if err := e.readSettings(ctx); err != nil {
			return err
		}
		a.under = e.settings.now()
	}
	if err := crowded(a); err != nil {
		return err
	}
	if err := e.foreground(ctx, a); err != nil {
		return err
	}
	rec.Foreground = a.foreground
	if rec.Routes, err = e.routes(ctx, a); err != nil {
		return err
	}
	rec.Remember, rec.Holder = bounded(a.remember()), a.holder
	if rec.Question, err = a.questionToken(&rec); err != nil {
		return err
	}
	var timeout time.Duration
	rec.Tier, timeout = e.tier(a)
	rec.Deadline, rec.TimeoutSeconds = now.Add(timeout).Truncate(time.Millisecond), int(timeout/time.Second)
	rec.NextEvent = firstEvent(&rec, now.Add(a.under.settings.NotifyAfter()).Truncate(time.Millisecond))
	if limit := a.under.settings.OpenPrompts(); limit > 0 && a.held.open >= limit && carried(&rec) && rec.NextEvent.Kind == schemas.EventDeadline {
		next := releaseAt(&rec, now)
		rec.NextEvent = &next
	}
	entry, err := e.place(ctx, bus.Entry{Key: a.key(), Record: rec, Revision: revision})
	if errors.Is(err, bus.ErrMoved) {
		return e.moved(ctx, c, a, func(revision uint64) error { return e.create(ctx, c, a, revision) })
	}
	if err != nil {
		return err
	}
	c.Reply(receipt(entry, &a.request))
	if entry.Record.Joined != "" {
		return nil // the outbox tells that the question has one more waiter
	}
	e.counts.add(a.request.SessionID)
	a.request.Rejoin, a.request.Revision = false, 0
	if err := e.view(e.asPrompt(entry, a.request)); err != nil { // those who look need not wait for the outbox
		e.Log.Warn("engine: a request was not shown to those who look; the outbox will", "key", entry.Key, "error", err)
	}
	return nil
}

// maxReaches bounds, in bytes, what a record keeps of the rules that an answer may make
// last. It must stay one that a message carries with any answer in it.
const maxReaches = 64 << 10

// bounded are the reaches, or none if they are too long: then the call can be allowed
// once.
func bounded(reaches []schemas.Reach) []schemas.Reach {
	data, err := schemas.Encode(reaches)
	if err != nil || len(data) > maxReaches {
		return nil
	}
	return reaches
}

// firstEvent is what a request waits for: where somebody is there, the moment at
// which others are told as well, and else its deadline.
func firstEvent(rec *schemas.Record, notify time.Time) *schemas.Event {
	present := rec.Tier == schemas.TierConnected || rec.Tier == schemas.TierVoice
	if carried(rec) && present && notify.Before(rec.Deadline) {
		return &schemas.Event{At: notify, Kind: schemas.EventEscalate}
	}
	return &schemas.Event{At: rec.Deadline, Kind: schemas.EventDeadline}
}

// moved answers for a record that was there before: as it stands, or by
// creating over the marker that a deletion by hand has left.
func (e *Engine) moved(ctx context.Context, c *bus.Call, a *asked, create func(revision uint64) error) error {
	entry, err := e.store.Records.Get(ctx, a.key())
	switch {
	case err == nil:
		return e.existing(ctx, c, a, entry)
	case errors.Is(err, bus.ErrNotFound) && ctx.Err() == nil:
		return create(entry.Revision)
	}
	return err
}

// existing answers for a request that has a record. A verdict goes through the
// compare-and-set of the question's record like every other decision.
func (e *Engine) existing(ctx context.Context, c *bus.Call, a *asked, entry bus.Entry) error {
	switch rec := &entry.Record; {
	case rec.Agent != a.agent:
		return notFound(a.key())
	case rec.Digest != a.digest && rec.Digest != schemas.AnyDigest: // a withdrawal that came first matches any
		return reused(a.key())
	}
	question, d, err := e.decisionOf(ctx, entry)
	if err != nil {
		return err
	}
	if d != nil {
		c.Reply(d)
		return nil
	}
	if a.verdict.Effect != policy.Ask {
		return e.judgeAgain(ctx, c, a, question)
	}
	if question, err = e.wait(ctx, question, a.request.PendingID); err != nil {
		return err
	}
	if !question.Record.Waits(a.request.PendingID) { // it has ended meanwhile
		if entry, err = e.store.Records.Get(ctx, entry.Key); err != nil {
			return err
		}
		return e.existing(ctx, c, a, entry)
	}
	c.Reply(receipt(entry, &a.request))
	return nil
}

// judgeAgain ends a question whose calls the rules settle now. They are the same for
// each of them.
func (e *Engine) judgeAgain(ctx context.Context, c *bus.Call, a *asked, question bus.Entry) error {
	now, err := e.nowFor(ctx, &question.Record, question.Record.Places())
	if err != nil {
		return err
	}
	if question, err = e.endOverdue(ctx, question, now); err != nil {
		return err
	}
	d := e.byPolicy(a)
	_, d.PendingID = schemas.SplitKey(question.Key)
	d.Digest = question.Record.Digest
	decided, err := e.decide(ctx, question, d, all)
	if err != nil {
		return err
	}
	e.publish(decided)
	return e.tell(ctx, c, decided, a.key())
}

// wait sees to it that an open question ends at its deadline, and that the agent of a
// request that is asked again is known to wait for it. It returns the question as it
// then is: it may have ended.
func (e *Engine) wait(ctx context.Context, question bus.Entry, pendingID string) (bus.Entry, error) {
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

// tier tells which row of the timeout policy applies, once and for good.
func (e *Engine) tier(a *asked) (schemas.Tier, time.Duration) {
	if a.request.Kind == schemas.KindPermission {
		if a.request.TimeoutSeconds > 0 {
			return schemas.TierRequest, time.Duration(a.request.TimeoutSeconds) * time.Second
		}
		return schemas.TierRequest, schemas.DefaultPermissionTimeout
	}
	s, session, lock := a.under.settings, a.held.session, a.held.lock
	switch {
	case session.TimeoutSeconds > 0:
		return schemas.TierSession, time.Duration(session.TimeoutSeconds) * time.Second
	case !e.somebodyIsThere(a):
		return schemas.TierDisconnected, s.DisconnectedTimeout()
	case lock.Kind == schemas.ClientVoice && e.VoiceTimeout > 0:
		return schemas.TierVoice, e.VoiceTimeout
	case lock.Kind == schemas.ClientVoice:
		return schemas.TierVoice, s.VoiceTimeout()
	}
	return schemas.TierConnected, s.ConnectedTimeout()
}
