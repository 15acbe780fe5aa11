package chaos

import (
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/nodbus/nod/schemas"
)

// The model of a request's record is a register. While the request is pending, the register is empty.
// Afterwards it contains the decision forever. An operation reads the register, or has an unknown outcome. An
// answer, a withdrawal and a rule write their decision if the register is empty.
type (
	// effect is what one operation did to the register, as far as the operation's result shows it.
	effect struct {
		reads  string // the decision in the operation's result
		empty  bool   // true if the operation's result says that the request is pending
		writes bool   // true if the decision in the result may be the operation's own
		maybe  string // if the outcome of the operation is unknown, the decision that the operation may have made
	}
	register = string
)

var recordModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{register("")} },
	Step: func(state, input, _ any) []any {
		now, e := state.(register), input.(effect)
		switch {
		case e.maybe != "" && now == "":
			return []any{now, e.maybe}
		case e.maybe != "":
			return []any{now}
		case e.empty && now != "", e.reads != "" && now != e.reads && (now != "" || !e.writes):
			return nil
		case e.writes:
			return []any{e.reads}
		}
		return []any{now}
	},
}).ToModel()

// linearizable checks that the operations on a request have an order in which each of them reads the latest
// value, and that this order agrees with the times at which the operations began and ended. It skips detached
// calls. It also skips requests with identical calls, because these share a decision.
func linearizable(e *evidence) (found []violation) {
	members := map[string]map[string]bool{}
	for _, ev := range e.Events {
		if ev.Group == "" || ev.ID == "" {
			continue
		}
		if members[ev.Group] == nil {
			members[ev.Group] = map[string]bool{}
		}
		members[ev.Group][ev.key()] = true
	}
	for key, events := range e.byKey() {
		if len(members[events[0].Group]) != 1 || hasOp(events, opDetach) {
			continue
		}
		if result := porcupine.CheckOperationsTimeout(recordModel, operations(events, e.Stored.decision(key)), 10*time.Second); result == porcupine.Illegal {
			found = append(found, violates(key, "no order of its operations explains their results"))
		}
	}
	return found
}

func hasOp(events []*event, what op) bool {
	for _, ev := range events {
		if ev.Op == what {
			return true
		}
	}
	return false
}

// operations converts the events of one request to operations of the model. If a deadline or a rule
// decided the request, it adds an operation that makes this decision.
func operations(events []*event, final *schemas.Decision) (ops []porcupine.Operation) {
	add := func(ev *event, e effect) {
		end := int64(ev.Return)
		if ev.Return == never || e.maybe != "" {
			end = math.MaxInt64
		}
		ops = append(ops, porcupine.Operation{ClientId: len(ops), Input: e, Call: int64(ev.Call), Return: end})
	}
	for _, ev := range events {
		if ev.Op == opView {
			continue // a view may come late, so it need not show the present state
		}
		if e, known := effectOf(ev, final); known {
			add(ev, e)
		}
	}
	if final != nil && (final.By.Kind == schemas.ByClock || final.By.Kind == schemas.ByPolicy) {
		add(&event{Call: events[0].Call, Return: never}, effect{maybe: final.DecisionID})
	}
	return ops
}

// effectOf returns the effect of an event. The result known is false if the event's result does not show the
// state of the register, for example a refusal without a decision.
func effectOf(ev *event, final *schemas.Decision) (e effect, known bool) {
	d := ev.told()
	if d != nil && schemas.Key(d.SessionID, d.PendingID) != ev.key() {
		return e, false
	}
	switch ev.Op {
	case opAsk:
		if ev.Return == never {
			return e, false
		}
		if e.empty = ev.Pending; d != nil {
			e.reads, e.writes = d.DecisionID, ev.Who != "nod ask" && d.By.Kind == schemas.ByPolicy
		}
	case opHear, opShow:
		if e.empty = ev.Pending; d != nil {
			e.reads = d.DecisionID
		}
	case opAnswer, opPress:
		if d != nil {
			e.reads, e.writes = d.DecisionID, ev.Err == nil && d.By.Kind == schemas.ByHuman && d.By.Name == ev.Who
		} else if ev.unknown() && final != nil && final.By.Name == ev.Who {
			e.maybe = final.DecisionID
		}
	case opWithdraw:
		if d != nil {
			e.reads, e.writes = d.DecisionID, d.Outcome == schemas.Withdrawn
		} else if ev.unknown() && final != nil && final.Outcome == schemas.Withdrawn {
			e.maybe = final.DecisionID
		}
	}
	return e, e.empty || e.reads != "" || e.maybe != ""
}
