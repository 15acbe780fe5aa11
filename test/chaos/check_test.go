package chaos

import (
	"fmt"
	"slices"
	"time"

	"github.com/nodbus/nod/schemas"
)

// bound is the time limit for nod to send a decision or show a request. If there is a fault in this time,
// the time starts again when the fault ends.
const bound = 15 * time.Second

type violation struct {
	Check string
	Key   string // the key of the violated request or, if the violation is about several requests, their group
	Text  string
}

func (v violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Check, v.Key, v.Text) }

var checks = []struct {
	name  string
	check func(*evidence) []violation
}{
	{"one decision", oneDecision},
	{"acknowledged is stored", acknowledgedIsStored},
	{"refused is not stored", refusedIsNotStored},
	{"allow once", allowOnce},
	{"counted", counted},
	{"own request", answersItsOwnRequest},
	{"who allowed", whoAllowed},
	{"deadline", afterDeadline},
	{"revoked", afterRevocation},
	{"frozen", afterFreeze},
	{"delivered", everythingDelivered},
	{"nothing lost", nothingLost},
	{"shown", everythingShown},
	{"phone", phoneIsUpToDate},
	{"rules", rulesHold},
	{"linearizable", linearizable},
}

func (e *evidence) inspect() (found []violation) {
	for _, c := range checks {
		for _, v := range c.check(e) {
			v.Check = c.name
			found = append(found, v)
		}
	}
	return found
}

func violates(key, format string, args ...any) violation {
	return violation{Key: key, Text: fmt.Sprintf(format, args...)}
}

func (e *evidence) byKey() map[string][]*event {
	all := map[string][]*event{}
	for _, ev := range e.Events {
		if ev.ID != "" {
			all[ev.key()] = append(all[ev.key()], ev)
		}
	}
	return all
}

// The function by makes a group of all events for which the function of returns the same text. A group keeps
// the order of the history. Events with an empty text are in no group.
func by(events []*event, of func(*event) string) (groups map[string][]*event) {
	groups = map[string][]*event{}
	for _, ev := range events {
		if g := of(ev); g != "" {
			groups[g] = append(groups[g], ev)
		}
	}
	return groups
}

// oneDecision checks that all parties get the same decision about a request, and that nod has stored this
// decision. If several calls wait for a question, approvers get one decision about the question, and
// agents get one decision for each call.
func oneDecision(e *evidence) (found []violation) {
	type told struct {
		decision *schemas.Decision
		by       string
	}
	first := map[string]told{}
	note := func(d *schemas.Decision, people bool, by string) {
		if d == nil {
			return
		}
		key := schemas.Key(d.SessionID, d.PendingID)
		register := key
		if people && e.Stored.crowded(key) {
			register += " as a question"
		}
		was, known := first[register]
		if !known {
			first[register] = told{d, by}
			return
		}
		if was.decision.Outcome != d.Outcome || was.decision.DecisionID != d.DecisionID {
			found = append(found, violates(key, "%s was told %s, but %s %s", was.by, words(was.decision), by, words(d)))
		}
	}
	for key, rec := range e.Stored.Records {
		note(e.Stored.decision(key), false, "the store")
		note(rec.Decision, true, "the store")
	}
	for key, d := range e.Stored.Logged {
		if _, recorded := e.Stored.Records[key]; !recorded {
			note(d, false, "the log")
		}
	}
	for _, ev := range e.Events {
		people := ev.Op == opView || ev.Op == opShow || ev.Op == opAnswer
		note(ev.told(), people, fmt.Sprintf("%s at %.4f (%s)", ev.Who, ev.Return.Seconds(), ev.Op))
	}
	return found
}

// acknowledgedIsStored checks that nod has stored every decision that it has returned for an answer, a
// withdrawal or an ask.
func acknowledgedIsStored(e *evidence) (found []violation) {
	for _, ev := range e.Events {
		if ev.Op != opAnswer && ev.Op != opWithdraw && ev.Op != opAsk || ev.Err != nil || ev.Return == never || ev.Decision == nil {
			continue
		}
		d := ev.Decision
		key := schemas.Key(d.SessionID, d.PendingID)
		if e.Stored.decision(key) == nil && !e.toldIn(d) {
			found = append(found, violates(key, "%s was acknowledged %s, but no such decision is stored", ev.Who, words(d)))
		}
	}
	return found
}

// toldIn reports whether a record that names the request of the decision d has a decision with the same
// outcome. It may be the record of another call, because calls that wait together share one record.
func (e *evidence) toldIn(d *schemas.Decision) bool {
	return slices.ContainsFunc(e.Stored.named(d.SessionID, d.PendingID), func(r schemas.Record) bool {
		return r.Decision != nil && r.Decision.Outcome == d.Outcome
	})
}

// refusedIsNotStored checks that no stored decision comes from an answer that nod has permanently
// refused.
func refusedIsNotStored(e *evidence) (found []violation) {
	answers := by(e.Events, func(ev *event) string {
		if ev.Op != opAnswer && ev.Op != opPress {
			return ""
		}
		return ev.key() + " " + ev.Who
	})
	for _, all := range answers {
		ev := all[0]
		if len(all) > 1 || ev.unknown() || ev.Err == nil {
			continue // the stored decision may come from a different answer of this approver
		}
		d := e.Stored.decision(ev.key())
		if d != nil && d.By.Kind == schemas.ByHuman && d.By.Name == ev.Who && ev.told() == nil {
			found = append(found, violates(ev.key(), "%s was refused with %q, but the answer is stored: %s", ev.Who, ev.Err, words(d)))
		}
	}
	return found
}

// afterDeadline checks three guarantees in broker time. No request is allowed at or after its deadline.
// No answer allows a request if it was sent after the deadline. No request times out before its deadline.
func afterDeadline(e *evidence) (found []violation) {
	for key, events := range e.byKey() {
		var deadline time.Time
		for _, ev := range events {
			if !ev.Deadline.IsZero() {
				deadline = ev.Deadline
			}
		}
		if deadline.IsZero() {
			continue
		}
		for _, ev := range events {
			d := ev.told()
			switch {
			case d == nil || schemas.Key(d.SessionID, d.PendingID) != key:
			case d.Outcome == schemas.Allowed && !d.DecidedAt.Before(deadline):
				found = append(found, violates(key, "%s was told %s, decided at %s, but its deadline was %s", ev.Who, words(d), d.DecidedAt, deadline))
			case ev.Op == opAnswer && ev.Err == nil && d.Outcome == schemas.Allowed && d.By.Name == ev.Who && !e.Began.Add(ev.Call).Before(deadline):
				found = append(found, violates(key, "%s answered %s after its deadline, but it was allowed", ev.Who, e.Began.Add(ev.Call).Sub(deadline)))
			case d.Outcome == schemas.TimedOut && e.Began.Add(ev.Return).Before(deadline):
				found = append(found, violates(key, "%s was told that it timed out, %s before its deadline", ev.Who, deadline.Sub(e.Began.Add(ev.Return))))
			}
		}
	}
	return found
}

// afterRevocation checks the calls that were asked after nod had acknowledged the revocation of a
// standing answer. The standing answer must allow none of them.
func afterRevocation(e *evidence) (found []violation) {
	groups := by(e.Events, func(ev *event) string { return ev.Group })
	for _, events := range groups {
		for _, revoke := range events {
			if revoke.Op != opRevoke || revoke.Err != nil || revoke.Return == never {
				continue
			}
			for key := range runs(slices.DeleteFunc(slices.Clone(events), func(ev *event) bool { return !begunAfter(events, ev, revoke.Return) })) {
				found = append(found, violates(key, "it was asked after %s was revoked (acknowledged at %.4f), but allowed", revoke.Grant, revoke.Return.Seconds()))
			}
		}
	}
	return found
}

// begunAfter reports whether the agent first asked the request of the event ev after the given time.
func begunAfter(events []*event, ev *event, at time.Duration) bool {
	i := slices.IndexFunc(events, func(ask *event) bool { return ask.Op == opAsk && ask.key() == ev.key() })
	return i >= 0 && events[i].Call > at
}

// afterFreeze checks freezes that all engines have acknowledged. From the acknowledgement until a thaw
// begins, no request of the frozen session may be allowed. The requests that were pending at the freeze
// may never be allowed.
func afterFreeze(e *evidence) (found []violation) {
	sessions := by(e.Events, func(ev *event) string { return ev.Session })
	for _, events := range sessions {
		for _, freeze := range events {
			if freeze.Op != opFreeze || freeze.Err != nil || freeze.Return == never || freeze.Lags {
				continue
			}
			found = append(found, frozen(events, freeze)...)
		}
	}
	return found
}

func frozen(events []*event, freeze *event) (found []violation) {
	thaw := never
	for _, ev := range events {
		if ev.Op == opThaw && ev.Call > freeze.Return {
			thaw = min(thaw, ev.Call)
		}
	}
	asked := map[string]*event{}
	for _, ev := range events {
		if ev.Op == opAsk && asked[ev.key()] == nil {
			asked[ev.key()] = ev
		}
	}
	for _, ev := range events {
		ask := asked[ev.key()]
		switch {
		case ask == nil || ev.Decision == nil || ev.Decision.Outcome != schemas.Allowed || ev.Err != nil:
		case ev.Op == opAnswer && ev.Call > freeze.Return && ev.Decision.By.Name == ev.Who && ask.Return < freeze.Call && ask.Pending:
			found = append(found, violates(ev.key(), "it was pending when its session was frozen (acknowledged at %.4f), but allowed at %.4f", freeze.Return.Seconds(), ev.Call.Seconds()))
		case ev.Op == opAnswer && ev.Call > freeze.Return && ev.Return < thaw && ev.Decision.By.Name == ev.Who:
			found = append(found, violates(ev.key(), "it was allowed while its session was frozen (acknowledged at %.4f)", freeze.Return.Seconds()))
		case (ev.Op == opAsk || ev.Op == opHear) && ask.Call > freeze.Return && ev.Return < thaw:
			found = append(found, violates(ev.key(), "it was asked while its session was frozen (acknowledged at %.4f), but allowed", freeze.Return.Seconds()))
		}
	}
	return found
}

// settledBy returns the time by which the effects of an event must be visible. This is the time of the event
// plus the constant bound or, if there is a fault between these two times, the end of the fault plus bound.
func (e *evidence) settledBy(at time.Duration) time.Duration {
	until := at + bound
	for _, f := range e.Faults {
		if f.Begin < until && f.End > at {
			until = max(until, f.End+bound)
		}
	}
	return until
}
