package chaos

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/schemas"
)

// scene is an invented history with invented stores. Its times are in seconds.
type scene struct {
	evidence
	noon time.Time // the broker's time at the start of the history
}

func newScene() *scene {
	s := &scene{noon: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	s.Began, s.End = s.noon, seconds(1000)
	s.Stored = newStored()
	return s
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// The method does adds an event about the request with the given id and group. The parameter from is the
// second at which the event begins, and the parameter to is the second at which it ends. If to is 0, the
// event has no end.
func (s *scene) does(what op, who, id, group string, from, to float64, change ...func(*event)) *event {
	ev := &event{Op: what, Story: "planted-1", Session: "S", ID: id, Who: who, Group: group, Call: seconds(from), Return: seconds(to)}
	if to == 0 {
		ev.Return = never
	}
	if what == opAnswer {
		ev.Option, ev.Waiters = "allow_once", 1
	}
	for _, c := range change {
		c(ev)
	}
	s.Events = append(s.Events, ev)
	return ev
}

func pending(ev *event)                        { ev.Pending = true }
func fails(err error) func(*event)             { return func(ev *event) { ev.Err = err } }
func until(at time.Time) func(*event)          { return func(ev *event) { ev.Deadline = at } }
func lags(ev *event)                           { ev.Lags = true }
func rejects(ev *event)                        { ev.Option = "reject_once" }
func returns(d *schemas.Decision) func(*event) { return func(ev *event) { ev.Decision = d } }

// decided returns a decision about a request. The parameter name is the approver who made the decision, or ""
// for the deadline, "ada" for a withdrawal by the agent, and "rule" for a rule.
func (s *scene) decided(id, decision string, outcome schemas.Outcome, name string, at float64) *schemas.Decision {
	d := &schemas.Decision{
		SessionID: "S", PendingID: id, DecisionID: decision, Outcome: outcome, By: schemas.By{Kind: schemas.ByHuman, Name: name}, DecidedAt: s.noon.Add(seconds(at)),
	}
	switch name {
	case "":
		d.By.Kind = schemas.ByClock
	case "ada":
		d.By.Kind = schemas.ByAgent
	case "rule":
		d.By.Kind = schemas.ByPolicy
	}
	return d
}

// The method keeps stores the record of the request with the given id. The parameter d is the record's
// decision, or nil. The parameter others has the ids of other calls that wait for the decision.
func (s *scene) keeps(id string, d *schemas.Decision, others ...string) {
	rec := schemas.Record{Request: fmt.Appendf(nil, `{"session_id":"S","pending_id":%q}`, id), Decision: d}
	raw := map[string]any{"request": rec.Request, "decision": d}
	if len(others) > 0 {
		calls := []map[string]string{{"pending_id": id}}
		for _, other := range others {
			calls = append(calls, map[string]string{"pending_id": other})
		}
		raw["waiters"] = calls
	}
	text, _ := json.Marshal(raw) // Marshal cannot fail, because JSON can encode these values
	s.Stored.keep("S."+id, rec, string(text))
	s.Stored.Pending["S."+id] = d == nil
}

// The method asks adds the events of an agent that asks, and of both viewers, which show the request.
func (s *scene) asks(id, group string, from float64) {
	s.does(opAsk, "ada0", id, group, from, from+0.1, pending)
	s.shows(id, from+0.2, nil)
}

func (s *scene) shows(id string, at float64, d *schemas.Decision) {
	for _, who := range []string{"Ann", "Bob"} {
		s.does(opView, who, id, "", at, at, returns(d))
	}
}

// The method plainly adds the events of one call that Ann allows. All parties get the same decision.
func (s *scene) plainly(id, group string, from float64) *schemas.Decision {
	d := s.decided(id, "d"+id, schemas.Allowed, "Ann", from+1)
	s.asks(id, group, from)
	s.does(opAnswer, "Ann", id, group, from+1, from+1.1, returns(d))
	s.does(opHear, "ada0", id, group, from+0.1, from+1.2, returns(d))
	s.shows(id, from+1.3, d)
	s.keeps(id, d)
	return d
}

// planted lists histories. Each of them breaks one guarantee, and names the check that must find this
// violation.
var planted = []struct {
	check, what string
	plant       func(*scene)
}{
	{"one decision", "a request has two decisions", func(s *scene) {
		s.plainly("a", "g", 1)
		s.does(opShow, "Bob", "a", "g", 3, 3.1, returns(s.decided("a", "other", schemas.Denied, "Bob", 2)))
	}},
	{"one decision", "the published decision is not the stored one", func(s *scene) {
		s.plainly("a", "g", 1)
		s.keeps("a", s.decided("a", "da2", schemas.Denied, "Bob", 2))
	}},
	{"one decision", "a refusal names another decision", func(s *scene) {
		s.plainly("a", "g", 1)
		s.does(opAnswer, "Bob", "a", "g", 2, 2.1, rejects, fails(schemas.Errorf(schemas.CodeConflict, "no").WithDecision(s.decided("a", "other", schemas.Denied, "Bob", 2))))
	}},
	{"one decision", "a question of two calls has two decisions", func(s *scene) {
		s.keeps("a", s.plainly("a", "g", 1), "b")
		s.does(opShow, "Bob", "a", "g", 3, 3.1, returns(s.decided("a", "other", schemas.Denied, "Bob", 2)))
	}},
	{"acknowledged is stored", "an answer is lost", func(s *scene) {
		s.plainly("a", "g", 1)
		s.keeps("a", nil)
	}},
	{"acknowledged is stored", "a withdrawal is lost", func(s *scene) {
		s.asks("a", "g", 1)
		s.does(opWithdraw, "ada0", "a", "g", 2, 2.1, returns(s.decided("a", "w", schemas.Withdrawn, "ada", 2)))
		s.keeps("a", nil)
	}},
	{"refused is not stored", "an answer that was refused counts", func(s *scene) {
		d := s.decided("a", "da", schemas.Allowed, "Ann", 2)
		s.asks("a", "g", 1)
		s.does(opAnswer, "Ann", "a", "g", 2, 2.1, fails(schemas.Errorf(schemas.CodeForbidden, "frozen")))
		s.does(opHear, "ada0", "a", "g", 1.1, 2.2, returns(d))
		s.shows("a", 2.3, d)
		s.keeps("a", d)
	}},
	{"allow once", "two calls run on an allow of one", func(s *scene) {
		s.plainly("a", "g", 1)
		d := s.decided("b", "db", schemas.Allowed, "Ann", 2)
		s.asks("b", "g", 1)
		s.does(opHear, "ada1", "b", "g", 1.1, 2.2, returns(d))
		s.shows("b", 2.3, d)
		s.keeps("b", d)
	}},
	{"allow once", "three calls run on an allow of two", func(s *scene) {
		s.plainly("a", "g", 1)
		for _, ev := range s.Events {
			ev.Waiters = 2
		}
		for _, id := range []string{"b", "c"} {
			s.does(opAsk, "ada1", id, "g", 2, 2.1, returns(s.decided(id, "d"+id, schemas.Allowed, "rule", 2)))
			s.keeps(id, s.decided(id, "d"+id, schemas.Allowed, "rule", 2))
		}
	}},
	{"allow once", "a denied call runs", func(s *scene) {
		d := s.decided("a", "da", schemas.Allowed, "Ann", 2)
		s.asks("a", "g", 1)
		s.does(opAnswer, "Ann", "a", "g", 2, 2.1, rejects, returns(s.decided("a", "da", schemas.Denied, "Ann", 2)))
		s.does(opHear, "ada0", "a", "g", 1.1, 2.2, returns(d))
	}},
	{"counted", "one of two that were allowed is denied", func(s *scene) {
		s.plainly("a", "g", 1)
		s.Events[3].Waiters = 2
		s.asks("b", "g", 1)
		s.does(opHear, "ada1", "b", "g", 1.1, 2.2, returns(s.decided("b", "db", schemas.Denied, "Ann", 2)))
	}},
	{"counted", "one of two that were allowed is left waiting", func(s *scene) {
		s.plainly("a", "g", 1)
		s.Events[3].Waiters = 2
		s.asks("b", "g", 1)
		s.does(opHear, "ada1", "b", "g", 1.1, 0)
	}},
	{"own request", "an answer decides another request", func(s *scene) {
		s.plainly("a", "g", 1)
		s.does(opAnswer, "Bob", "a", "g", 2, 2.1, returns(s.decided("b", "db", schemas.Allowed, "Bob", 2)))
	}},
	{"who allowed", "the named approver gave no answer", func(s *scene) {
		s.plainly("a", "g", 1)
		d := s.decided("b", "db", schemas.Allowed, "Bob", 2)
		s.asks("b", "g", 1)
		s.does(opHear, "ada1", "b", "g", 1.1, 2.2, returns(d))
	}},
	{"deadline", "allowed at the deadline", func(s *scene) {
		s.plainly("a", "g", 1)
		for _, ev := range s.Events {
			ev.Deadline = s.noon.Add(seconds(2))
		}
	}},
	{"deadline", "allowed by an answer after the deadline", func(s *scene) {
		s.plainly("a", "g", 1)
		s.Events[0].Deadline = s.noon.Add(seconds(1.9))
		for _, ev := range s.Events {
			if d := ev.Decision; d != nil {
				d.DecidedAt = s.noon.Add(seconds(1.8)) // the decision has a time before its answer, as if the engine's clock were behind
			}
		}
	}},
	{"deadline", "timed out before the deadline", func(s *scene) {
		d := s.decided("a", "da", schemas.TimedOut, "", 4)
		s.asks("a", "g", 1)
		s.Events[0].Deadline = s.noon.Add(seconds(10))
		s.does(opAnswer, "Ann", "a", "g", 2, 2.1, fails(schemas.Errorf(schemas.CodeStale, "late").WithDecision(d)))
		s.keeps("a", d)
	}},
	{"revoked", "asked after the revoke, and allowed", func(s *scene) {
		s.does(opRevoke, "Ann", "", "g", 1, 1.1)
		s.does(opAsk, "ada0", "a", "g", 1.2, 1.3, returns(s.decided("a", "da", schemas.Allowed, "rule", 1.3)))
	}},
	{"frozen", "asked while it is frozen, and allowed", func(s *scene) {
		s.does(opFreeze, "Ann", "", "", 1, 1.1)
		s.does(opAsk, "ada0", "a", "g", 1.2, 1.3, returns(s.decided("a", "da", schemas.Allowed, "rule", 1.3)))
		s.does(opThaw, "Carl", "", "", 2, 2.1)
	}},
	{"frozen", "pending at the freeze, and allowed after the thaw", func(s *scene) {
		s.does(opFreeze, "Ann", "", "", 2, 2.1)
		s.does(opThaw, "Carl", "", "", 3, 3.1)
		d := s.plainly("a", "g", 1)
		s.Events[len(s.Events)-4].Call, s.Events[len(s.Events)-4].Return = seconds(4), seconds(4.1)
		_ = d
	}},
	{"frozen", "answered while it is frozen, and allowed", func(s *scene) {
		s.does(opFreeze, "Ann", "", "", 1, 1.95)
		s.plainly("a", "g", 1.5) // the agent asks before all engines have acknowledged the freeze
		s.does(opThaw, "Carl", "", "", 30, 30.1)
	}},
	{"delivered", "an agent gets its decision too late", func(s *scene) {
		s.plainly("a", "g", 1)
		s.Events[4].Return = seconds(20)
	}},
	{"delivered", "an agent gets no decision after the fault", func(s *scene) {
		s.plainly("a", "g", 1)
		s.Faults = []span{{"kill", seconds(1), seconds(30)}}
		s.Events[4].Decision, s.Events[4].Return = nil, never
	}},
	{"delivered", "an answer gets its reply too late", func(s *scene) {
		s.plainly("a", "g", 1)
		s.Events[3].Return = seconds(40)
	}},
	{"delivered", "nod ask gets its decision too late", func(s *scene) {
		d := s.plainly("a", "g", 1)
		s.does(opAsk, "nod ask", "a", "g", 0.5, 60, returns(d))
	}},
	{"nothing lost", "a pending request is gone", func(s *scene) { s.asks("a", "g", 1) }},
	{"nothing lost", "a pending request is not listed", func(s *scene) {
		s.asks("a", "g", 1)
		s.keeps("a", nil)
		s.Stored.Pending = map[string]bool{}
	}},
	{"nothing lost", "a decided request's agent gets no decision", func(s *scene) {
		s.asks("a", "g", 1)
		s.does(opHear, "ada0", "a", "g", 1.1, 0)
		s.keeps("a", s.decided("a", "da", schemas.Allowed, "Ann", 2))
	}},
	{"shown", "a viewer never shows a question", func(s *scene) {
		s.does(opAsk, "ada0", "a", "g", 1, 1.1, pending)
		s.keeps("a", nil)
	}},
	{"shown", "a viewer never shows its end", func(s *scene) {
		s.plainly("a", "g", 1)
		s.Events = s.Events[:len(s.Events)-1]
	}},
	{"phone", "a question is on the phone twice", func(s *scene) {
		s.plainly("a", "g", 1)
		for i := range 2 {
			s.Phone = append(s.Phone, telegramtest.Message{ID: int64(i), First: "ada asks\nRequest: a\nSession: S"})
		}
	}},
	{"phone", "a button stays live", func(s *scene) {
		s.plainly("a", "g", 1)
		s.Phone = []telegramtest.Message{{First: "Request: a\n", Buttons: []telegramtest.Button{{Text: "✅ Allow once"}}}}
	}},
	{"phone", "a message of a killed worker stays live beside the repeat with the outcome", func(s *scene) {
		s.plainly("a", "g", 1)
		live := []telegramtest.Button{{Text: "✅ Allow once"}}
		s.Phone = []telegramtest.Message{{ID: 1, First: "Request: a\n", Buttons: live}, {ID: 2, First: repeated + " x)\nRequest: a\n"}}
	}},
	{"phone", "a button stays live although a repeat is marked", func(s *scene) {
		s.plainly("a", "g", 1)
		live := []telegramtest.Button{{Text: "✅ Allow once"}}
		s.Phone = []telegramtest.Message{{ID: 1, First: "Request: a\n"}, {ID: 2, First: repeated + " x)\nRequest: a\n", Buttons: live}}
	}},
	{"rules", "a rule is not applied", func(s *scene) {
		s.does(opAsk, "ada0", "a", "Forbidden", 1, 1.1, returns(s.decided("a", "da", schemas.Allowed, "rule", 1)))
	}},
	{"linearizable", "a request is pending again after its decision", func(s *scene) {
		s.plainly("a", "g", 1)
		s.does(opShow, "Bob", "a", "g", 5, 5.1, pending)
	}},
	{"linearizable", "a decision is read before it was made", func(s *scene) {
		d := s.plainly("a", "g", 1)
		s.does(opShow, "Bob", "a", "g", 1.15, 1.2, returns(d))
		s.Events[3].Call = seconds(1.8)
		s.Events[3].Return = seconds(1.9)
	}},
	{"linearizable", "no answer made the decision", func(s *scene) {
		d := s.decided("a", "da", schemas.Allowed, "Bob", 2)
		s.asks("a", "g", 1)
		s.does(opHear, "ada0", "a", "g", 1.1, 2.2, returns(d))
		s.keeps("a", d)
	}},
}

// Each check must find a violation that was planted for it, because a check that cannot fail would prove
// nothing.
func TestEachPlantedViolationIsFound(t *testing.T) {
	found := map[string]bool{}
	for _, p := range planted {
		t.Run(p.check+": "+p.what, func(t *testing.T) {
			s := newScene()
			p.plant(s)
			var names []string
			for _, v := range s.inspect() {
				names = append(names, v.Check)
				require.NotEmpty(t, s.story(v))
			}
			require.Contains(t, names, p.check)
		})
		found[p.check] = true
	}
	for _, c := range checks {
		require.True(t, found[c.name], "no violation is planted for the check %q", c.name)
	}
}

// A history that keeps all guarantees passes all checks.
func TestHistoriesWithoutViolationsPass(t *testing.T) {
	for what, plant := range map[string]func(*scene){
		"a plain call": func(s *scene) { s.plainly("a", "g", 1) },
		"two calls run on an allow of two": func(s *scene) {
			s.keeps("a", s.plainly("a", "g", 1), "b")
			s.Events[3].Waiters = 2
			d := s.decided("b", "da", schemas.Allowed, "Ann", 2)
			s.does(opAsk, "ada1", "b", "g", 1, 1.1, pending)
			s.does(opHear, "ada1", "b", "g", 1.1, 2.2, returns(d))
		},
		"two opposite answers, one of which counts": func(s *scene) {
			d := s.plainly("a", "g", 1)
			s.does(opAnswer, "Bob", "a", "g", 2, 2.1, rejects, fails(schemas.Errorf(schemas.CodeConflict, "decided").WithDecision(d)))
		},
		"an answer without a reply that counts": func(s *scene) {
			d := s.decided("a", "da", schemas.Allowed, "Ann", 2)
			s.asks("a", "g", 1)
			s.does(opAnswer, "Ann", "a", "g", 2, 6, fails(schemas.Errorf(schemas.CodeUnavailable, "away")))
			s.does(opHear, "ada0", "a", "g", 1.1, 4, returns(d))
			s.shows("a", 4, d)
			s.keeps("a", d)
		},
		"a deadline that passes": func(s *scene) {
			d := s.decided("a", "da", schemas.TimedOut, "", 4)
			s.asks("a", "g", 1)
			s.does(opAnswer, "Ann", "a", "g", 4.1, 4.2, fails(schemas.Errorf(schemas.CodeStale, "late").WithDecision(d)))
			s.does(opHear, "ada0", "a", "g", 1.1, 4.2, returns(d), until(s.noon.Add(seconds(4))))
			s.shows("a", 4.3, d)
			s.keeps("a", d)
		},
		"a late decision within the bound after a fault": func(s *scene) {
			s.plainly("a", "g", 1)
			s.Faults = []span{{"partition", seconds(1), seconds(30)}}
			s.Events[4].Return = seconds(44)
		},
		"a freeze that an engine may not obey yet": func(s *scene) {
			s.does(opFreeze, "Ann", "", "", 1, 1.1, lags)
			s.does(opAsk, "ada0", "a", "Lookup", 1.2, 1.3, returns(s.decided("a", "da", schemas.Allowed, "rule", 1.3)))
			s.Stored.Logged["S.a"] = s.decided("a", "da", schemas.Allowed, "rule", 1.3)
		},
		"a request that is still pending": func(s *scene) {
			s.asks("a", "g", 1)
			s.keeps("a", nil)
		},
		"a second message that says it is a repeat": func(s *scene) {
			s.plainly("a", "g", 1)
			s.Phone = []telegramtest.Message{{First: "Request: a\n"}, {First: repeated + " …)\nRequest: a\n"}}
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newScene()
			plant(s)
			for _, v := range s.inspect() {
				t.Errorf("%s\n%s", v, s.story(v))
			}
		})
	}
}
