package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// announce publishes the decision about each decided call of a question to the call's agent. An agent
// that misses the message gets the decision when it asks again. The agent of a detached call gets no
// message, because it no longer waits.
func (e *recordLife) announce(entry bus.Entry) error {
	for i := range entry.Record.Waiters {
		w := &entry.Record.Waiters[i]
		d, err := verdictOn(&entry, w.PendingID)
		if err != nil {
			return err
		}
		if d == nil || w.Detached {
			continue
		}
		with := context.Background()
		if w.PendingID == ownID(&entry) {
			with = traceContext(with, &entry.Record)
		}
		if err := e.Edge.PublishTraced(with, schemas.DecisionSubject(entry.Record.Agent, d.SessionID, d.PendingID), d); err != nil {
			return err
		}
	}
	return nil
}

// publish sends a new decision to the agent and the viewers at once. It only logs a failure, because
// the outbox later sends the decision once more, even after a success.
func (e *recordLife) publish(entry bus.Entry) {
	began := e.clock.now()
	err := e.announce(entry)
	e.traceDelivery(&entry, began, err)
	prompt, perr := e.promptOf(entry)
	if perr == nil {
		perr = e.view(prompt)
	}
	if err := errors.Join(err, perr); err != nil {
		e.Log.Warn("engine: a decision was not published; the outbox will publish it", "key", entry.Key, "error", err)
	}
}

// answer decides a question by a person's answer, if the answer passes all checks. The error is
// NOT_FOUND if the request was not routed to this person.
func (e *connectors) answer(ctx context.Context, c *caller, a *schemas.Answer) (*schemas.Decision, error) {
	connector, began := c.name, e.clock.now()
	// The approver comes from the settings and not from the answer, because the connector has checked
	// only the user id.
	approver, err := e.approver(ctx, connector, &a.From)
	if err != nil {
		return nil, err
	}
	frozen := e.beginFreezeCheck(ctx) // starts a read of the freezes, which runs while the record is read
	entry, err := e.store.Records.Get(ctx, a.Key())
	if errors.Is(err, bus.ErrNotFound) || err == nil && !routed(&entry.Record, connector, a.From.UserID) {
		return nil, notFound(a.Key())
	}
	if err != nil {
		return nil, err
	}
	d, err := e.answerEntry(ctx, entry, a, approver, connector, frozen)
	e.traceAnswer(&entry.Record, began, connector, d, err)
	return d, err
}

// answerEntry decides a question by the answer of an approver to whom the record was routed.
func (e *connectors) answerEntry(ctx context.Context, entry bus.Entry, a *schemas.Answer, approver schemas.Approver, connector string, frozen freezeCheck) (*schemas.Decision, error) {
	request, err := requestOf(&entry.Record)
	if err != nil {
		return nil, err
	}
	conditions, approver, err := e.answerConditions(ctx, &entry.Record, &request, approver, connector, a.From)
	if err != nil {
		return nil, err
	}
	d, err := e.evaluateAnswer(&entry, a, &approver, connector, frozen, conditions)
	if err != nil {
		return nil, err
	}
	if err := e.logVouched(ctx, &approver, connector, &a.From, a.SessionID, a.PendingID, d.DecisionID); err != nil {
		return nil, err
	}
	now, err := e.life.nowFor(ctx, &entry.Record, a.Waiters)
	if err != nil {
		return nil, err
	}
	// A call whose deadline has passed times out, even if a person has just answered it.
	if entry, err = e.life.endOverdue(ctx, entry, now); err != nil {
		return nil, err
	}
	if d.Outcome == schemas.Allowed && conditions.forTeams && !entry.Record.Terminal() {
		return e.answerByVote(ctx, entry, d, a, conditions)
	}
	if entry, err = e.life.decide(ctx, entry, d, countedWaiters(a.Waiters, now)); err != nil {
		return nil, err
	}
	return e.replyStored(entry, d, a.Waiters)
}

// replyStored replies to an answer with the stored decision about the record. The parameter said is
// the decision that the answer asked for. The parameter places is the number of calls that the
// answered prompt showed.
func (e *connectors) replyStored(entry bus.Entry, said *schemas.Decision, places int) (*schemas.Decision, error) {
	if stored := entry.Record.Decision; stored != nil && stored.DecisionID == said.DecisionID {
		e.life.publish(entry)
	} else if err := aftermathConflict(&entry.Record); err != nil {
		return nil, err
	}
	return replyToAnswer(entry, said, places)
}

// nowFor returns the broker's time for a decision about the calls that an answered prompt showed. The
// parameter places is the number of these calls. It reads the broker's clock again if the deadline of
// one of these calls is near.
func (e *recordLife) nowFor(ctx context.Context, rec *schemas.Record, places int) (time.Time, error) {
	for i := range rec.Waiters {
		if w := &rec.Waiters[i]; w.Open() && w.Place < max(places, 1) {
			if _, err := e.clock.late(ctx, w.Deadline); err != nil {
				return time.Time{}, err
			}
		}
	}
	return e.clock.now(), nil
}

// routed reports whether a request was routed to this person on this connector. It reports true
// for an inbox, because an inbox lists all requests.
func routed(rec *schemas.Record, connector, userID string) bool {
	if schemas.IsViewer(connector) {
		return true
	}
	for _, r := range rec.Routes {
		if r.Connector == connector && r.Recipient == userID {
			return true
		}
	}
	return false
}

// evaluateAnswer returns the decision that an answer makes, or the reason to refuse it.
func (e *connectors) evaluateAnswer(entry *bus.Entry, a *schemas.Answer, who *schemas.Approver, connector string, frozen freezeCheck, c *conditions) (*schemas.Decision, error) {
	rec := &entry.Record
	if a.Digest != rec.Digest && rec.Digest != schemas.AnyDigest {
		err := schemas.Errorf(schemas.CodeStale, "the answer is for another request than the one under this id: look again")
		return nil, err.WithDecision(rec.Decision)
	}
	if rec.Joined != "" && !rec.Terminal() {
		return nil, schemas.Errorf(schemas.CodeConflict, "the same call waits as %s: answer that one", rec.Joined)
	}
	request := *c.request
	if !mayDecide(who, rec.Agent, &request, rec.Risk) {
		return nil, schemas.Errorf(schemas.CodeForbidden, "%s may not decide about a request of risk %s of this agent, project and host: see for and max_risk of approvers.people in settings.json", who.Name, rec.Risk)
	}
	d := e.decision(&request, rec.Digest, schemas.Cancelled, schemas.By{Kind: schemas.ByHuman, Name: who.Name, Connector: connector})
	d.Message, d.Scope, d.UpdatedInput = a.Message, a.Scope, a.UpdatedInput
	if a.Cancelled {
		if a.UpdatedInput != nil {
			return nil, schemas.Errorf(schemas.CodeValidation, "updated_input: goes with an option that allows")
		}
		return d, nil
	}
	option, ok := request.Option(a.OptionID)
	if !ok {
		return nil, schemas.Errorf(schemas.CodeValidation, "option_id: %q is not one of the options offered", a.OptionID)
	}
	if option.Text && strings.TrimSpace(a.Message) == "" {
		return nil, schemas.Errorf(schemas.CodeValidation, "message: is missing; %q takes an answer in words", option.Name)
	}
	if rec.Run != nil && a.UpdatedInput != nil {
		return nil, schemas.Errorf(schemas.CodeValidation, "updated_input: the call runs contained as the agent wrote it; deny it, and say what to run instead")
	}
	d.OptionID, d.OptionKind = option.OptionID, option.Kind
	if request.Kind == schemas.KindQuestion && d.Message == "" {
		d.Message = option.Name // the decision's message is the name of the chosen option
	}
	if d.Outcome = schemas.Denied; option.Kind.Allows() {
		d.Outcome = schemas.Allowed
		if !rec.Terminal() {
			if err := errors.Join(frozen(rec.Agent, request.SessionID), e.refuseStale(), c.mayAllow(who, connector), c.checkCodeWord(a.CodeWord), c.checkVote(a, option)); err != nil {
				return nil, err
			}
		}
	} else if a.UpdatedInput != nil {
		return nil, schemas.Errorf(schemas.CodeValidation, "updated_input: goes with an option that allows")
	}
	var err error
	if d.Outcome == schemas.Denied {
		d.Grant, err = e.holdings.denialOf(&request, rec.Agent, d)
		return d, err
	}
	if rec.Run != nil {
		if d.UpdatedInput, err = runInput(entry, request.PendingID); err != nil {
			return nil, err
		}
	}
	d.Grant, err = grant(entry, &request, a, d, e.freezes.now().Revision)
	return d, err
}

func requestOf(rec *schemas.Record) (schemas.Request, error) {
	r, err := schemas.ReadRequest(rec.Request)
	if err != nil {
		return r, fmt.Errorf("decode the request in its record: %w", err)
	}
	r.Rejoin, r.Revision = false, 0
	r.Options = r.Offered()
	return r, nil
}

// timeoutDecision returns the decision for calls whose deadline has passed. Agents rely on the
// exact text of its message.
func (e *recordLife) timeoutDecision(rec *schemas.Record, at time.Time) (*schemas.Decision, error) {
	r, err := requestOf(rec)
	if err != nil {
		return nil, err
	}
	d := e.decision(&r, rec.Digest, schemas.TimedOut, schemas.By{Kind: schemas.ByClock})
	if d.DecidedAt.Before(at) { // the broker's timer has fired, so this engine's clock is behind the broker's
		d.DecidedAt = at
	}
	waited := time.Duration(timeoutAt(rec, at)) * time.Second
	if d.Message = "Permission request timed out after " + schemas.FormatDuration(waited) + "."; r.Kind == schemas.KindPermission {
		d.Message = "Permission request timed out after " + schemas.FormatMinutes(waited)
	}
	return d, nil
}

// timeoutAt returns the time limit, in seconds, of the first open call whose deadline has passed at the
// given time of the broker.
func timeoutAt(rec *schemas.Record, at time.Time) int {
	for i := range rec.Waiters {
		if w := &rec.Waiters[i]; w.Open() && !w.Deadline.After(at) {
			return w.TimeoutSeconds
		}
	}
	return rec.TimeoutSeconds
}

// replyToAnswer returns the stored decision if the given answer made that decision, or would have the
// same effect on every call that the answered prompt showed. Otherwise it returns CONFLICT or STALE,
// with the stored decision if the request has one. The parameter places is the number of calls that
// the prompt showed.
func replyToAnswer(entry bus.Entry, said *schemas.Decision, places int) (*schemas.Decision, error) {
	rec := &entry.Record
	stored := rec.Decision
	switch {
	case stored == nil:
		return nil, schemas.Errorf(schemas.CodeStale, "the calls that you answered have ended; other identical calls still wait: look again")
	case stored.DecisionID == said.DecisionID, stored.SameEffect(said) && !leavesOut(rec, places):
		return stored, nil
	case stored.Outcome == schemas.TimedOut, stored.Outcome == schemas.Withdrawn:
		return nil, schemas.Errorf(schemas.CodeStale, "the request had already ended: %s", stored.Outcome).WithDecision(stored)
	case stored.SameEffect(said):
		return nil, schemas.Errorf(schemas.CodeConflict, "%s by %s, but about fewer calls than this answer; the others still wait: look again", stored.Outcome, stored.By.Name).WithDecision(stored)
	}
	return nil, schemas.Errorf(schemas.CodeConflict, "the request was already decided: %s by %s", stored.Outcome, stored.By.Name).WithDecision(stored)
}

// leavesOut reports whether the answered prompt showed a call that the stored decision left
// undecided. The parameter places is the number of calls that the prompt showed.
func leavesOut(rec *schemas.Record, places int) bool {
	return slices.ContainsFunc(rec.Waiters, func(w schemas.Waiter) bool { return w.SplitOff && w.Place < max(places, 1) })
}
