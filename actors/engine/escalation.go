package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/nodbus/nod/actors/policy"
	"github.com/nodbus/nod/schemas"
)

// A record stores for each route how long after the request the route is asked. The next of these times
// is the record's next event. So only the record tells which routes have been asked, and no engine's
// memory or clock matters.

// escalationRule is a rule of approvers.escalation.
type escalationRule struct {
	schemas.Escalation
	calls *policy.Selection // the tool calls that the rule covers; nil for every request
}

func compileEscalations(s *schemas.Settings) ([]escalationRule, error) {
	var all []escalationRule
	for i, esc := range s.Escalations() {
		calls, err := selectionOf(fmt.Sprintf("approvers.escalation[%d].rules", i), esc.Rules)
		if err != nil {
			return nil, err
		}
		all = append(all, escalationRule{esc, calls})
	}
	return all, nil
}

// turn is an approver, with the time after the request at which the approver is asked.
type turn struct {
	who   schemas.Approver
	after time.Duration
}

// turns returns the people who are asked about a request. These people come from the first escalation
// that covers the request and names a person who may decide. If there is no such escalation, all
// people who may decide are asked. During a person's quiet hours the stand-in is asked instead, and
// the person is asked after the quiet hours.
func (e *intake) turns(s *askState) []turn {
	settings := s.settings.settings
	may := func(who *schemas.Approver) bool { return mayDecide(who, s.agent, &s.request, s.verdict.Risk) }
	all := e.escalated(s, may)
	if len(all) == 0 {
		for _, who := range settings.People() {
			if may(&who) {
				all = append(all, turn{who, 0})
			}
		}
	}
	quiet := func(t *turn) time.Time { return t.who.QuietUntil(s.plan.at.Add(t.after)) }
	for _, t := range all[:len(all):len(all)] {
		if t.who.StandIn == "" || !quiet(&t).After(s.plan.at.Add(t.after)) {
			continue
		}
		for _, in := range settings.Named([]string{t.who.StandIn}) {
			if may(&in) {
				all = addTurn(all, turn{in, t.after})
			}
		}
	}
	for i := range all {
		t := &all[i]
		if until := quiet(t); until.After(s.plan.at.Add(t.after)) {
			t.after = until.Sub(s.plan.at)
		}
	}
	return all
}

// escalated returns the people of the first escalation that covers the request and names a person who
// may decide. The first step with such a person comes at once.
func (e *intake) escalated(s *askState, may func(*schemas.Approver) bool) (all []turn) {
	for _, rule := range s.settings.escalations {
		if !rule.Wants(s.verdict.Risk) || !e.selects(rule.calls, s.agent, &s.request) {
			continue
		}
		for _, step := range rule.Steps {
			for _, who := range s.settings.settings.Named(step.To) {
				if may(&who) {
					all = addTurn(all, turn{who, time.Duration(step.AfterSeconds) * time.Second})
				}
			}
		}
		if len(all) == 0 {
			continue
		}
		first := all[0].after
		for i := range all {
			all[i].after -= first
		}
		return all
	}
	return nil
}

// addTurn adds a turn to a list of turns. If the person already has a turn, only the earlier time
// stays.
func addTurn(all []turn, t turn) []turn {
	i := slices.IndexFunc(all, func(other turn) bool { return other.who.Name == t.who.Name })
	if i < 0 {
		return append(all, t)
	}
	all[i].after = min(all[i].after, t.after)
	return all
}

// inSeconds returns a duration in seconds, rounded up.
func inSeconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// routeAt returns the time at which a route is asked, in broker time.
func routeAt(rec *schemas.Record, r *schemas.Route) time.Time {
	return createdAt(rec).Add(time.Duration(r.AfterSeconds) * time.Second)
}

// comesInTime reports whether a route's time comes before the deadline of the question's first call.
// Calls that join later do not change the result.
func comesInTime(rec *schemas.Record, r *schemas.Route) bool {
	wait := rec.TimeoutSeconds
	if len(rec.Waiters) > 0 {
		wait = rec.Waiters[0].TimeoutSeconds
	}
	return r.AfterSeconds == 0 || r.AfterSeconds < wait
}

// isAsked reports whether carriers show a record on this route. The route's time must have come, and
// the question must be neither held back nor left to the approver at the session.
func isAsked(rec *schemas.Record, r *schemas.Route) bool {
	switch next := rec.NextEvent; {
	case next == nil || next.Kind == schemas.EventDeadline:
		return comesInTime(rec, r)
	case next.Kind == schemas.EventNext:
		return comesInTime(rec, r) && routeAt(rec, r).Before(next.At)
	}
	return false
}

// nextEvent returns the first event after the given time of a question that carriers show. At this
// event further routes are asked. If no route is left to ask, the event is the deadline.
func nextEvent(rec *schemas.Record, at time.Time) schemas.Event {
	next := schemas.Event{Kind: schemas.EventNext}
	for i := range rec.Routes {
		r := &rec.Routes[i]
		if t := routeAt(rec, r); comesInTime(rec, r) && t.After(at) && (next.At.IsZero() || t.Before(next.At)) {
			next.At = t
		}
	}
	if next.At.IsZero() {
		return deadlineOf(rec)
	}
	return next
}

// nextPeople returns the next step of a pending record's escalation for prompts, or nil if all
// routes are asked.
func (c *conditions) nextPeople(rec *schemas.Record) *schemas.NextStep {
	event := rec.NextEvent
	if rec.Terminal() || event == nil || event.Kind != schemas.EventNext {
		return nil
	}
	next := &schemas.NextStep{At: event.At}
	for i := range rec.Routes {
		r := &rec.Routes[i]
		if !routeAt(rec, r).Equal(event.At) {
			continue
		}
		who, _ := c.settings.Approver(r.Connector, schemas.From{UserID: r.Recipient})
		if name := cmp.Or(who.Name, r.Recipient); !slices.Contains(next.To, name) {
			next.To = append(next.To, name)
		}
	}
	return next
}
