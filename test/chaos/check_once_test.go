package chaos

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// The function runs returns the decisions by which agents learnt that a call is allowed. The keys are those
// of the calls.
func runs(events []*event) map[string]*schemas.Decision {
	all := map[string]*schemas.Decision{}
	for _, ev := range events {
		if (ev.Op == opAsk || ev.Op == opHear) && ev.Decision != nil && ev.Decision.Outcome == schemas.Allowed {
			all[ev.key()] = ev.Decision
		}
	}
	return all
}

// ruled has the outcome of each group of calls that a rule decides.
var ruled = map[string]schemas.Outcome{"Lookup": schemas.Allowed, "Forbidden": schemas.Denied}

// allowOnce checks that identical calls run no more often than approvers have allowed. An "allow once"
// allows as many calls as its prompt counted.
func allowOnce(e *evidence) (found []violation) {
	groups := by(e.Events, func(ev *event) string { return ev.Group })
	for group, events := range groups {
		allowed := map[string]int{} // how many calls each answer has allowed; the key is the decision's id or, if the answer's outcome is unknown, the answer's index
		lasting := ruled[group] != ""
		for i, ev := range events {
			if (ev.Op != opAnswer && ev.Op != opPress) || ev.Option != "allow_once" {
				continue
			}
			lasting = lasting || ev.Scope != "" && ev.Scope != schemas.ScopeOnce
			switch d := ev.Decision; {
			case d != nil && ev.Err == nil && d.Outcome == schemas.Allowed && d.By.Name == ev.Who:
				allowed[d.DecisionID] = max(allowed[d.DecisionID], ev.Waiters)
			case ev.unknown():
				allowed[fmt.Sprint("unknown ", i)] = ev.Waiters
			}
		}
		ran := runs(events)
		sum := 0
		for _, n := range allowed {
			sum += n
		}
		if len(ran) > sum && !lasting {
			found = append(found, violates(group, "approvers allowed %d calls, but %d ran: %s", sum, len(ran), strings.Join(sortedKeys(ran), ", ")))
		}
	}
	return found
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// The function counted checks that an answer decides all calls of a group if its prompt counted all of them.
// It skips groups in which a call may have stopped waiting.
func counted(e *evidence) (found []violation) {
	for group, events := range by(e.Events, func(ev *event) string { return ev.Group }) {
		calls, answer := map[string]bool{}, (*event)(nil)
		said := 0
		for _, ev := range events {
			switch ev.Op {
			case opAsk:
				calls[ev.key()] = true
			case opAnswer, opPress:
				said, answer = said+1, ev
			case opWithdraw, opDetach, opRevoke, opFreeze:
				said += 2 // a call of the group no longer waits, or has ended for a reason other than the answer
			}
		}
		if said != 1 || answer.Err != nil || answer.Decision == nil || answer.Waiters != len(calls) {
			continue
		}
		for _, ev := range events {
			if ev.Op == opHear && ev.Decision != nil && ev.Decision.Outcome != answer.Decision.Outcome {
				found = append(found, violates(ev.key(), "%s decided %s about all %d calls of %s, but this one was %s", answer.Who, answer.Decision.Outcome, len(calls), group, words(ev.Decision)))
			}
			if ev.Op == opHear && ev.Decision == nil && ev.Return > e.settledBy(max(ev.Call, answer.Return)) {
				found = append(found, violates(ev.key(), "%s decided %s about all %d calls of %s, but this one was left waiting", answer.Who, answer.Decision.Outcome, len(calls), group))
			}
		}
	}
	return found
}

// answersItsOwnRequest checks that an answer decides only the request that it names.
func answersItsOwnRequest(e *evidence) (found []violation) {
	for _, ev := range e.Events {
		if d := ev.Decision; ev.Op == opAnswer && ev.Err == nil && d != nil && (d.SessionID != ev.Session || d.PendingID != ev.ID) {
			found = append(found, violates(ev.key(), "%s answered it, but the answer was taken for %s", ev.Who, words(d)))
		}
	}
	return found
}

// whoAllowed checks each decision that allows a call and names an approver. Before the agent got such a
// decision, the approver must have answered "allow once" to a call of the same group.
func whoAllowed(e *evidence) (found []violation) {
	groups := by(e.Events, func(ev *event) string { return ev.Group })
	for _, events := range groups {
		for _, ran := range events {
			d := ran.Decision
			if (ran.Op != opAsk && ran.Op != opHear) || d == nil || d.Outcome != schemas.Allowed || d.By.Kind != schemas.ByHuman {
				continue
			}
			if !slices.ContainsFunc(events, func(ev *event) bool {
				return (ev.Op == opAnswer || ev.Op == opPress) && ev.Option == "allow_once" && ev.Who == d.By.Name && ev.Call <= ran.Return
			}) {
				found = append(found, violates(ran.key(), "it was allowed by %s, who allowed no call of its group", d.By.Name))
			}
		}
	}
	return found
}
