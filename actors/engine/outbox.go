package engine

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

func (e *effects) takeVersion(d *bus.Delivery) {
	entry, err := e.store.Records.Entry(d)
	if errors.Is(err, bus.ErrNotFound) {
		d.Done() // the record is missing, because an operator has deleted it
		return
	}
	if err != nil {
		e.leaveToOthers(d, err)
		return
	}
	e.outbox.Send(entry.Key, deliveryJob{d, e.Log, func(ctx context.Context) error { return e.handleVersion(ctx, entry) }})
}

const (
	// If this engine cannot read a version of a record, the queue offers the version again after
	// othersAfter, at most othersTries times, because another engine of a later version of nod may read
	// it.
	othersAfter = 2 * time.Second
	othersTries = 30
)

func (e *effects) leaveToOthers(d *bus.Delivery, err error) {
	if d.Times < othersTries {
		d.Again(othersAfter)
		return
	}
	e.Log.Error("engine: a record cannot be read, so its version has no effects; update this engine", "subject", d.Subject, "error", err)
	d.Refuse()
}

// handleVersion publishes the effects of one version of a record at least once: to the agent, then to
// viewers, carriers and the log. Engines may handle the versions of a record out of order. So every
// message contains the revision, and receivers ignore older revisions.
func (e *effects) handleVersion(ctx context.Context, entry bus.Entry) error {
	rec := &entry.Record
	prompt, err := e.life.promptOf(entry)
	if err != nil {
		return err
	}
	if rec.Joined != "" { // the agent and the carriers get the versions of the joined question instead
		if rec.Terminal() {
			err = e.life.view(prompt)
		}
		return errors.Join(err, e.logVersion(ctx, entry, prompt, e.clock.now()))
	}
	if err := e.holdings.applyEffects(ctx, entry); err != nil {
		return err
	}
	if err := e.life.announce(entry); err != nil {
		return err
	}
	told := e.clock.now()
	if err := e.life.followWaiters(ctx, entry); err != nil {
		return err
	}
	if rec.Terminal() {
		if err := e.releaseNext(ctx, entry); err != nil {
			return err
		}
	}
	if err := e.life.view(prompt); err != nil {
		return err
	}
	if err := e.queuePrompts(ctx, rec, prompt); err != nil {
		return err
	}
	return errors.Join(e.logVersion(ctx, entry, prompt, told), e.logVotes(ctx, entry, prompt), e.logAftermath(ctx, entry, prompt), e.logRan(ctx, entry, prompt), e.notifyForeground(ctx, rec, &prompt))
}

func (e *recordLife) view(p schemas.Prompt) error {
	return e.Edge.PublishVersion(schemas.ViewSubject(p.SessionID, p.PendingID), &p, schemas.Key(p.SessionID, p.PendingID), p.Revision)
}

// queuePrompts queues a prompt for each route of the record on which a carrier may show it now.
func (e *effects) queuePrompts(ctx context.Context, rec *schemas.Record, prompt schemas.Prompt) error {
	for _, r := range rec.Routes {
		if schemas.IsViewer(r.Connector) || r.Failed || !isAsked(rec, &r) {
			continue // the request is not shown on this route yet, or ended before it was shown
		}
		p := prompt
		p.Connector, p.Recipient = r.Connector, r.Recipient
		who, _ := e.settings.now().settings.Approver(r.Connector, schemas.From{UserID: r.Recipient})
		p.Zone = who.TimeZone
		if err := e.prompts.Send(traceContext(ctx, rec), p); err != nil {
			return err
		}
	}
	return nil
}

// logVersion logs a new request, or its decision once the request has ended. The parameter told is
// the time at which the outbox told the agent.
func (e *effects) logVersion(ctx context.Context, entry bus.Entry, prompt schemas.Prompt, told time.Time) error {
	rec := &entry.Record
	line := schemas.LogEntry{
		Type: schemas.TypeLogEntry, At: prompt.Request.CreatedAt, Kind: schemas.LogAsked,
		SessionID: prompt.SessionID, PendingID: prompt.PendingID,
		Actor: rec.Agent, ToolName: prompt.Request.ToolName, Digest: rec.Digest,
	}
	d := ownDecision(&entry)
	if err := e.logAsked(ctx, entry, line, d); err != nil || d == nil {
		return err
	}
	line.Kind, line.At, line.Actor, line.Agent = schemas.LogDecided, d.DecidedAt, actorOf(d), rec.Agent
	line.Outcome, line.SettingsRevision, line.AskedAt = d.Outcome, d.SettingsRevision, prompt.Request.CreatedAt
	if d.By.Kind == schemas.ByPolicy {
		line.Rule = d.By.Name
	}
	first, err := e.appendOnce(ctx, entry.Key+"."+d.DecisionID+".decided", line, d.DecidedAt)
	if err == nil && first {
		e.traceDecided(&entry, &prompt.Request, d, told)
	}
	return err
}

// logAsked logs a question once. A question that is decided before the delivery of its first version is
// logged with its decision. A request that was decided at once is not logged as a question.
func (e *effects) logAsked(ctx context.Context, entry bus.Entry, line schemas.LogEntry, d *schemas.Decision) error {
	rec := &entry.Record
	id := logID(&entry) + ".asked"
	if d != nil {
		wasQuestion := len(rec.Routes) > 0 || rec.Joined != ""
		if e.asked.take(id) || !wasQuestion || e.clock.now().Sub(createdAt(rec)) > replacedWithin {
			return nil
		}
	}
	if e.settings.now().settings.Log.Payloads {
		line.Request = rec.Request
	}
	_, err := e.appendOnce(ctx, id, line, createdAt(rec))
	if err == nil && d == nil {
		e.asked.add(id)
	}
	return err
}

// replacedWithin is the age up to which a question is logged together with its decision. It is shorter
// than the hour for which the log drops repetitions, because another engine may have logged the
// question.
const replacedWithin = 50 * time.Minute

// logID begins the ids of a request's log entries. It contains the request's own deadline, because
// agents may use a pending_id again.
func logID(entry *bus.Entry) string {
	return entry.Key + "." + strconv.FormatInt(ownDeadline(entry).UnixNano(), 36)
}

// ownDecision returns the decision about an entry's own request, or nil if that request is
// pending. Other waiters of its question may still be pending.
func ownDecision(entry *bus.Entry) *schemas.Decision {
	if entry.Record.Joined != "" {
		return entry.Record.Decision
	}
	return entry.Record.Verdict(ownID(entry))
}

// ownDeadline returns the deadline of an entry's own request. The record's deadline may be the
// deadline of a later waiter.
func ownDeadline(entry *bus.Entry) time.Time {
	if w := entry.Record.Waiter(ownID(entry)); w != nil {
		return w.Deadline
	}
	return entry.Record.Deadline
}

func actorOf(d *schemas.Decision) string {
	if d.By.Kind == schemas.ByHuman {
		return d.By.Name + "@" + d.By.Connector
	}
	return string(d.By.Kind)
}

func (e *recordLife) promptOf(entry bus.Entry) (schemas.Prompt, error) {
	r, err := requestOf(&entry.Record)
	if err != nil {
		return schemas.Prompt{}, err
	}
	return e.promptWith(entry, r), nil
}

// promptWith does the work of promptOf for a caller that has already decoded the request.
func (e *recordLife) promptWith(entry bus.Entry, r schemas.Request) schemas.Prompt {
	rec := &entry.Record
	waiting, _ := rec.Waiting()
	run := rec.Run
	if !rec.Terminal() { // a prompt shows a run only if the run is allowed
		run = nil
	}
	conditions := e.conditionsOf(e.settings.now(), rec.Agent, &r, rec.Risk)
	p := schemas.Prompt{
		Type: schemas.TypePrompt, SessionID: r.SessionID, PendingID: r.PendingID, Revision: entry.Revision,
		Agent: rec.Agent, Request: r, Digest: rec.Digest, Risk: rec.Risk, Reasons: rec.Reasons, Targets: rec.Targets, Unseen: rec.Unseen, OnDisk: rec.OnDisk, Remember: rec.Remember, Foreground: rec.Foreground, Conditions: conditions.texts(),
		Detached: rec.Unattended(), Joined: rec.Joined, Waiters: rec.Places(), Waiting: waiting, Aftermath: rec.Aftermath, Run: run,
		Tier: rec.Tier, Deadline: rec.Deadline, Decision: rec.Decision,
	}
	conditions.showVotes(&p, rec)
	p.Next = conditions.nextPeople(rec)
	return p
}

// each calls f once for each number from 0 to n-1, at most readAtOnce calls at a time. It returns
// after the last call.
func each(n int, f func(int)) {
	var wg sync.WaitGroup
	room := make(chan struct{}, readAtOnce)
	for i := range n {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			f(i)
		})
	}
	wg.Wait()
}

func (e *effects) takeDue(d *bus.Delivery) {
	fired, ok := e.store.Records.Fired(d)
	if !ok {
		e.Log.Error("engine: a fired timer does not name its event", "subject", d.Subject)
		d.Refuse()
		return
	}
	e.records.Send(fired.Key, deliveryJob{d, e.Log, func(ctx context.Context) error { return e.handleTimer(ctx, fired) }})
}

// handleTimer handles a fired timer of a pending record. If the timer was set for the record's next
// event or for a waiter's deadline, that event is due, whatever this machine's clock says. A timer for
// any other event is set again.
func (e *effects) handleTimer(ctx context.Context, fired bus.FiredTimer) error {
	entry, err := e.store.Records.Get(ctx, fired.Key)
	if errors.Is(err, bus.ErrNotFound) || err == nil && (entry.Record.Terminal() || !fired.Of(&entry)) {
		return nil
	}
	if err != nil {
		return err
	}
	// A call ends at its deadline even if an earlier event was missed.
	armed := fired.Event
	if next := *entry.Record.NextEvent; !sameEvent(armed, next) && !sameEvent(armed, deadlineOf(&entry.Record)) {
		return e.life.rearm(ctx, entry)
	}
	return e.handleEvent(ctx, entry, armed)
}

func sameEvent(a, b schemas.Event) bool { return a.At.Equal(b.At) && a.Kind == b.Kind }

func (e *effects) handleEvent(ctx context.Context, entry bus.Entry, event schemas.Event) error {
	switch event.Kind {
	case schemas.EventDeadline:
	case schemas.EventNext: // after an outage, all missed steps are done at once, one after another
		return e.life.step(ctx, entry, nextEvent(&entry.Record, event.At))
	default:
		return e.escalate(ctx, entry)
	}
	ended, err := e.life.expire(ctx, entry, event.At)
	if err != nil {
		return err
	}
	e.life.publish(ended)
	return nil
}

// escalate handles the time at which phones and chats may show a request, because the approver at the
// session has not answered, or because a question that was held back may have its turn. If it is not
// the question's turn, escalate schedules the next check.
func (e *effects) escalate(ctx context.Context, entry bus.Entry) error {
	now, err := e.itsTurn(ctx, entry)
	if err != nil {
		return err
	}
	if now {
		return e.life.step(ctx, entry, nextEvent(&entry.Record, e.clock.now()))
	}
	return e.life.step(ctx, entry, releaseAt(&entry.Record, entry.Record.NextEvent.At))
}

// step sets a question's next event. It sets the timer before it writes the record. If the engine dies
// in between, the record still has the old event, and the engine that handles the old event calls step
// again.
func (e *recordLife) step(ctx context.Context, entry bus.Entry, next schemas.Event) error {
	entry.Record.NextEvent = &next
	if err := e.rearm(ctx, entry); err != nil {
		return err
	}
	_, err := e.store.Records.Update(ctx, entry)
	return err // after ErrMoved, the queue delivers the fired timer again
}

// errRearmed makes the queue deliver a fired timer again.
var errRearmed = errors.New("the timer was armed again; its next delivery confirms that")

// rearm sets the timer for an entry's next event or, if that is earlier, the first deadline of a
// waiter. It returns errRearmed until a later delivery finds the new timer, because the server may
// remove a new timer while it finishes firing an older one.
func (e *recordLife) rearm(ctx context.Context, entry bus.Entry) error {
	first := withEarliestEvent(entry)
	armed, err := e.store.Records.Armed(ctx, &entry)
	switch {
	case err == nil && sameEvent(armed, *first.Record.NextEvent):
		return nil
	case err != nil && !errors.Is(err, bus.ErrNotFound):
		return err
	}
	err = e.store.Records.Rearm(ctx, &first)
	if errors.Is(err, bus.ErrLockHeld) {
		_, err = e.retire(ctx, entry)
	}
	if err != nil {
		return err
	}
	return errRearmed
}
