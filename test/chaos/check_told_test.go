package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/schemas"
)

// decidedAt returns the earliest time at which some party got the decision about the request of the given
// events. The result known is false if no party got the decision.
func decidedAt(events []*event) (at time.Duration, known bool) {
	at = never
	for _, ev := range events {
		if d := ev.told(); d != nil && schemas.Key(d.SessionID, d.PendingID) == ev.key() {
			at, known = min(at, ev.Return), true
		}
	}
	return at, known
}

// endedAt returns the earliest time at which some party got the stored decision of a question. This
// decision may have the id of any call that waits for the question.
func (e *evidence) endedAt(key string, group []*event) (at time.Duration, known bool) {
	at = never
	rec, there := e.Stored.Records[key]
	if !there || rec.Decision == nil {
		return at, false
	}
	for _, ev := range group {
		if d := ev.told(); d != nil && d.DecisionID == rec.Decision.DecisionID {
			at, known = min(at, ev.Return), true
		}
	}
	return at, known
}

// everythingDelivered checks that each operation returns within the time bound. If an operation waits for a
// decision, the time bound starts at the decision.
func everythingDelivered(e *evidence) (found []violation) {
	for key, events := range e.byKey() {
		decided, known := decidedAt(events)
		for _, ev := range events {
			since := ev.Call
			switch ev.Op {
			case opHear:
				if !known {
					continue // nobody got a decision about the request
				}
				since = max(since, decided)
			case opAsk:
				if ev.Who == "nod ask" { // nod ask returns the decision and not the receipt
					if !known {
						continue
					}
					since = max(since, decided)
				}
			case opAnswer, opWithdraw, opDetach, opShow, opRevoke, opFreeze, opThaw:
			default:
				continue
			}
			if until := e.settledBy(since); min(ev.Return, e.End) > until {
				found = append(found, violates(key, "%s waited for %s since %.4f and %s", ev.Who, ev.Op, since.Seconds(), untilWhen(ev.Return)))
			}
		}
	}
	return found
}

func untilWhen(at time.Duration) string {
	if at == never {
		return "heard nothing"
	}
	return "heard at " + at.String()
}

// nothingLost checks the requests that nod has acknowledged as pending. Each of them must be stored. A
// request that is still pending must be in the list of pending requests. The asker of a decided request
// must have got the decision.
func nothingLost(e *evidence) (found []violation) {
	for key, events := range e.byKey() {
		i := slices.IndexFunc(events, func(ev *event) bool { return ev.Op == opAsk && ev.Pending })
		if i < 0 {
			continue
		}
		ask := events[i]
		var open, ended bool
		records := e.Stored.named(ask.Session, ask.ID)
		for _, r := range records {
			open, ended = open || r.Decision == nil, ended || r.Decision != nil
		}
		_, heard := decidedAt(events)
		switch {
		case heard && !ended && !open && e.Stored.decision(key) == nil:
			found = append(found, violates(key, "it was decided, but no record of it is stored"))
		case len(records) == 0 && e.Stored.decision(key) == nil:
			found = append(found, violates(key, "it was acknowledged as pending, but is gone"))
		case open && !ended && !e.listed(records, key):
			found = append(found, violates(key, "it is pending, but not listed as pending"))
		case ended && !open && !heard && e.waited(events):
			found = append(found, violates(key, "its record has a decision, but its asker did not hear it"))
		}
	}
	return found
}

// listed reports whether the list of pending requests contains a request, or the question that this
// request has joined.
func (e *evidence) listed(records []schemas.Record, key string) bool {
	if e.Stored.Pending[key] {
		return true
	}
	return slices.ContainsFunc(records, func(r schemas.Record) bool {
		var request struct {
			SessionID string `json:"session_id"`
			PendingID string `json:"pending_id"`
		}
		return r.Decision == nil && schemas.Decode(r.Request, &request) == nil && e.Stored.Pending[schemas.Key(request.SessionID, request.PendingID)]
	})
}

// waited reports whether an asker got no decision within the time bound.
func (e *evidence) waited(events []*event) bool {
	return slices.ContainsFunc(events, func(ev *event) bool {
		return ev.Op == opHear && ev.Decision == nil && ev.Return > e.settledBy(ev.Call)
	})
}

// everythingShown checks that the viewers show each pending request and its decision within the time
// bound.
func everythingShown(e *evidence) (found []violation) {
	groups := by(e.Events, func(ev *event) string { return ev.Group })
	crowds := map[string]int{}
	for _, events := range e.byKey() {
		crowds[events[0].Group]++
	}
	for key, events := range e.byKey() {
		i := slices.IndexFunc(events, func(ev *event) bool { return ev.Op == opAsk && ev.Pending })
		raw, own := e.Stored.Raw[key]
		if i < 0 || !own || strings.Contains(raw, `"joined":`) {
			continue // nod either decided this request at once, or showed it only as a waiter of another question
		}
		opened := events[i].Return
		decided, known := e.endedAt(key, groups[events[0].Group])
		for _, who := range []string{"Ann", "Bob"} {
			shown, over := never, never
			for _, ev := range events {
				if ev.Op == opView && ev.Who == who {
					shown = min(shown, ev.Return)
					if ev.Decision != nil {
						over = min(over, ev.Return)
					}
				}
			}
			late := shown
			if crowds[events[0].Group] > 1 && shown != never {
				late = 0 // the call may first have joined another question, and so may be shown late
			}
			if shown == never && known && decided <= e.settledBy(opened) && e.settledBy(opened) > opened+bound {
				continue // a fault delayed the views of this viewer until the request was decided
			}
			if until := e.settledBy(opened); min(late, e.End) > until {
				found = append(found, violates(key, "%s was not shown it within the bound: pending at %.4f, %s", who, opened.Seconds(), untilWhen(shown)))
			}
			if until := e.settledBy(decided); known && decided < never-bound && min(over, e.End) > until {
				found = append(found, violates(key, "%s was not shown its decision within the bound: decided at %.4f, %s", who, decided.Seconds(), untilWhen(over)))
			}
		}
	}
	return found
}

// repeated is the beginning of a Telegram message about a question that the chat may already contain.
const repeated = "(Sent again:"

// hasAnswerButtons reports whether the message has a button with which a person can answer.
func hasAnswerButtons(m telegramtest.Message) bool {
	return slices.ContainsFunc(m.Buttons, func(b telegramtest.Button) bool {
		return strings.Contains(b.Text, "Allow once") || strings.Contains(b.Text, "Deny")
	})
}

// phoneIsUpToDate checks that a second message about a question is marked as a repetition. It also checks
// that messages about decided questions have no answer buttons.
func phoneIsUpToDate(e *evidence) (found []violation) {
	messages := map[string][]telegramtest.Message{}
	for _, m := range e.Phone {
		if id, ok := requestOn(m); ok {
			messages[id] = append(messages[id], m)
		}
	}
	events := e.byKey()
	for key := range e.Stored.Records {
		_, id := schemas.SplitKey(key)
		fresh := 0
		for _, m := range messages[id] {
			if !strings.Contains(m.First, repeated) {
				fresh++
			}
			if decided, known := e.endedAt(key, events[key]); hasAnswerButtons(m) && known && e.End > e.settledBy(decided) {
				found = append(found, violates(key, "message %d still has its buttons, but its question is decided; on the phone: %s", m.ID, allOf(messages[id])))
			}
		}
		if fresh > 1 {
			found = append(found, violates(key, "it is on the phone %d times without a mark as a repeat", fresh))
		}
	}
	return found
}

// allOf describes messages by their ids, their first lines as sent and as they are now, and the numbers of
// their buttons.
func allOf(messages []telegramtest.Message) string {
	var all []string
	for _, m := range messages {
		first, _, _ := strings.Cut(m.First, "\n")
		now, _, _ := strings.Cut(m.Text, "\n")
		all = append(all, fmt.Sprintf("%d %q, now %q with %d buttons", m.ID, first, now, len(m.Buttons)))
	}
	return strings.Join(all, "; ")
}

// rulesHold checks that each request to which a rule applies has the outcome of the rule.
func rulesHold(e *evidence) (found []violation) {
	for _, ev := range e.Events {
		if outcome, known := ruled[ev.Group]; known && ev.Op == opAsk && ev.Decision != nil && ev.Decision.Outcome != outcome {
			found = append(found, violates(ev.key(), "a rule makes it %s, but it was %s", outcome, words(ev.Decision)))
		}
	}
	return found
}
