package test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// fewer are settings under which identical calls are one question.
const fewer = `{
	"permissions": {"allow": ["Lookup"], "join_identical": true, "remember_denials_seconds": 600},
	"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]},
		{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]}
	]}
}`

func fewerPrompts(s *setup) { s.settings, s.engines = fewer, 2 }

// listed returns the ids of a session's pending questions.
func (e *env) listed(session string) []string {
	e.t.Helper()
	all, err := e.Ann().Pending(e.ctx, schemas.Query{SessionID: session})
	e.NoError(err)
	ids := []string{}
	for _, p := range all {
		ids = append(ids, p.PendingID)
	}
	return ids
}

// Identical calls that wait at the same time are one question. "Allow once" allows the
// calls that the prompt counted, and no others.
func TestIdenticalCallsAreOneQuestion(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	first, second := ada.Asks(deploy("S", "first")), ada.Asks(deploy("S", "second"))
	other := deploy("S", "other")
	other.ActionDetails = []byte(`{"to":"staging"}`)
	ada.Asks(other)
	env.Agent("ada").Asks(deploy("T", "elsewhere"))
	env.Equal([]string{"first", "other"}, env.listed("S"))
	p, _, err := env.Ann().Show(env.ctx, "S", "first")
	env.NoError(err)
	env.Equal([2]int{2, 2}, [2]int{p.Waiters, p.Waiting})
	_, err = env.Ann().Says(second, "allow_once")
	env.Error(err, "a waiter is answered only through its question")
	same, _, err := env.Ann().Show(env.ctx, "S", "second")
	env.NoError(err)
	env.Equal(p, same, "the id of a waiter shows its question")

	third := ada.Asks(deploy("S", "third")) // later than the prompt that Ann was shown
	d, err := env.Ann().SaysOf(first, "allow_once", p.Waiters)
	env.NoError(err)
	env.Equal("first", d.PendingID)
	for _, q := range []*question{first, second} {
		heard := q.Ends(schemas.Allowed)
		env.Equal(q.PendingID, heard.PendingID)
		env.Equal(q.Receipt.Digest, heard.Digest)
		env.Equal(d.DecisionID, heard.DecisionID)
	}
	env.soon("the third is a question of its own", func() bool { return slices.Contains(env.listed("S"), "third") })
	again, err := env.Ann().SaysOf(first, "allow_once", 2) // the same tap arrives twice
	env.NoError(err)
	env.Equal(d, again)
	_, err = env.Bob().SaysOf(first, "reject_once", 3) // another person, too late
	env.Equal(d, *env.refusal(err, schemas.CodeConflict).Decision())
	_, err = env.Bob().SaysOf(first, "allow_once", 3) // the same answer, for one more call
	env.refusal(err, schemas.CodeConflict)
	env.Ann().Denies(third)
	third.Ends(schemas.Denied)
	env.soon("the outbox has handled all changes", env.outboxIdle)
	env.Equal([]string{"other"}, env.listed("S"))
	for _, id := range []string{"first", "second", "third"} { // an agent that asks again finds its decision
		env.NotNil(env.stored("S." + id).Record.Decision)
	}
}

// Identical calls that are asked at the same instant, on any engines, are one question.
func TestCallsAskedAtOnceAreOneQuestion(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { fewerPrompts(s); s.engines = 3 })
	ada := env.Agent("ada")
	for i := range 20 {
		session := fmt.Sprint("S", i)
		const calls = 5
		asked := make([]*question, calls)
		var all sync.WaitGroup
		for n := range calls {
			all.Go(func() { asked[n] = ada.Asks(deploy(session, fmt.Sprint("call-", n))) })
		}
		all.Wait()
		listed := env.listed(session)
		env.Len(listed, 1)
		p, _, err := env.Ann().Show(env.ctx, session, listed[0])
		env.NoError(err)
		env.Equal([2]int{calls, calls}, [2]int{p.Waiters, p.Waiting})
		shown := *asked[slices.IndexFunc(asked, func(q *question) bool { return q.PendingID == listed[0] })]
		_, err = env.Bob().SaysOf(&shown, "allow_once", calls)
		env.NoError(err)
		for _, q := range asked {
			q.Ends(schemas.Allowed)
		}
	}
}

// A question stays pending for its other calls when one of them ends.
func TestACallThatEndsLeavesTheQuestionToTheOthers(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	first, second, third := ada.Asks(deploy("S", "first")), ada.Asks(deploy("S", "second")), ada.Asks(deploy("S", "third"))
	env.Equal(schemas.Withdrawn, ada.Withdraws("S", "third").Outcome)
	third.Ends(schemas.Withdrawn)
	ada.Withdraws("S", "first") // the call whose id the question has
	first.Ends(schemas.Withdrawn)
	p, _, err := env.Ann().Show(env.ctx, "S", "first")
	env.NoError(err)
	env.Equal([2]int{3, 1}, [2]int{p.Waiters, p.Waiting})
	_, err = env.Ann().SaysOf(first, "allow_once", 3)
	env.NoError(err)
	second.Ends(schemas.Allowed)
	env.Equal(schemas.Withdrawn, ada.Withdraws("S", "first").Outcome, "a withdrawn call keeps its own decision")
	env.Equal(schemas.Allowed, ada.Withdraws("S", "second").Outcome)

	first, second = ada.Asks(deploy("V", "first")), ada.Asks(deploy("V", "second"))
	a := env.Ann().answer(first, "reject_once")
	a.Message, a.Waiters = "not on a Friday", 2
	_, err = env.Ann().Answer(env.ctx, a)
	env.NoError(err)
	first.Ends(schemas.Denied)
	env.Equal("not on a Friday", second.Ends(schemas.Denied).Message)

	// An answer that counted only calls that have ended is stale.
	first, second = ada.Asks(deploy("W", "first")), ada.Asks(deploy("W", "second"))
	ada.Withdraws("W", "first")
	_, err = env.Ann().SaysOf(first, "allow_once", 1)
	env.refusal(err, schemas.CodeStale)
	env.Nil(env.stored(second.Key).Record.Decision)
	_, err = env.Ann().SaysOf(first, "allow_once", 2)
	env.NoError(err)
	second.Ends(schemas.Allowed)
}

// Each call of a question ends at its own deadline.
func TestEachCallOfAQuestionHasItsOwnDeadline(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	env.timeout("S", 2*time.Second)
	first := ada.Asks(deploy("S", "first"))
	env.timeout("S", time.Hour)
	second := ada.Asks(deploy("S", "second"))
	env.Equal([]string{"first"}, env.listed("S"))
	d := first.Ends(schemas.TimedOut)
	env.WithinDuration(first.Receipt.Deadline, d.DecidedAt, time.Second)
	env.soon("the second waits alone", func() bool {
		p, _, err := env.Ann().Show(env.ctx, "S", "first")
		return err == nil && p.Waiting == 1 && p.Decision == nil && p.Deadline.Equal(second.Receipt.Deadline)
	})
	_, err := env.Ann().SaysOf(first, "allow_once", 2)
	env.NoError(err)
	second.Ends(schemas.Allowed)

	// A call that was asked later with a shorter timeout ends first.
	env.timeout("T", time.Hour)
	third := ada.Asks(deploy("T", "third"))
	env.timeout("T", 2*time.Second)
	fourth := ada.Asks(deploy("T", "fourth"))
	fourth.Ends(schemas.TimedOut)
	env.Ann().Allows(third)
	third.Ends(schemas.Allowed)
}

// For a while, a denial decides identical calls of its session, and no others.
func TestADenialAnswersTheSameCallForAWhile(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	q := ada.Asks(deploy("S", "first"))
	a := env.Ann().answer(q, "reject_once")
	a.Message = "use make clean"
	_, err := env.Ann().Answer(env.ctx, a)
	env.NoError(err)
	q.Ends(schemas.Denied)
	d := ada.Gets(deploy("S", "second"))
	env.Equal(schemas.Denied, d.Outcome)
	env.Contains(d.Message, "Ann denied the same call")
	env.Contains(d.Message, "use make clean")
	env.Equal("denied by Ann", d.By.Name)
	other := deploy("S", "other")
	other.ActionDetails = []byte(`{"to":"staging"}`)
	ada.Asks(other)
	ada.Asks(deploy("T", "elsewhere"))
}

// oneAtATime limits Ann's phone to one question of a session at a time.
func oneAtATime(s *setup) {
	s.settings = `{"permissions": {"open_prompts": 1, "join_identical": true}, "approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]}]}}`
	s.engines = 2
}

// A record that cannot be read does not hold back the session's other requests.
func TestARecordThatCannotBeReadHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	env := start(t, oneAtATime)
	ada := env.Agent("ada")
	to := func(id string) *question {
		r := deploy("S", id)
		r.ActionDetails = fmt.Appendf(nil, `{"to":%q}`, id)
		return ada.Asks(r)
	}
	to("spoilt")
	held := to("held")
	env.Equal(schemas.EventRelease, env.stored(held.Key).Record.NextEvent.Kind)
	kv, err := env.raw.KeyValue(env.ctx, "pending_permissions")
	env.NoError(err)
	_, err = kv.Put(env.ctx, "S.spoilt", []byte(`{"type":"nod.v9.record"}`))
	env.NoError(err)
	to("other")
	env.Equal([]string{"held", "other"}, env.listed("S"))
	ada.Withdraws("S", "other")
	env.soon("the held question's turn has come", func() bool { return env.stored(held.Key).Record.NextEvent.Kind == schemas.EventDeadline })
	frozen, err := env.Ann().Freeze(env.ctx, schemas.FreezeRequest{From: ann()})
	env.NoError(err)
	env.Equal(1, frozen.Denied)
	held.Ends(schemas.Denied)
}

// If a remembered denial and an approval apply to a call, the newer one counts.
func TestTheNewerWordAboutACallCounts(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) {
		s.settings = strings.Replace(fewer, `"join_identical": true`, `"join_identical": false`, 1)
	})
	ada := env.Agent("ada")
	first, second, third := ada.Asks(deploy("S", "first")), ada.Asks(deploy("S", "second")), ada.Asks(deploy("S", "third"))
	env.Ann().Denies(first)
	env.Equal(schemas.Denied, ada.Gets(deploy("S", "again")).Outcome)
	env.Bob().Allows(second)
	env.soon("the outbox has handled all changes", env.outboxIdle) // it repeats the denial's effects too
	fourth := ada.Asks(deploy("S", "fourth"))

	env.Ann().Denies(third)
	env.Equal(schemas.Denied, ada.Gets(deploy("S", "again-2")).Outcome)
	env.NoError(ada.asker.Detach(env.ctx, "S", "fourth", "the host waits no longer"))
	env.Bob().Allows(fourth)
	env.Equal(schemas.Allowed, ada.Gets(deploy("S", "fifth")).Outcome, "the approval that was given while no call waited counts")
}

// A question is shown when its turn comes, even if it changes at that moment.
func TestAQuestionThatChangesAtItsTurnIsShown(t *testing.T) {
	t.Parallel()
	env := start(t, oneAtATime)
	ada := env.Agent("ada")
	var held []*question
	for i := range 100 {
		session := fmt.Sprint("S", i)
		first := ada.Asks(deploy(session, "first"))
		second := deploy(session, "second")
		second.ActionDetails = []byte(`{"to":"staging"}`)
		held = append(held, ada.Asks(second))
		env.Equal(schemas.EventRelease, env.stored(second.Key()).Record.NextEvent.Kind)
		var both sync.WaitGroup
		both.Go(func() { _, _ = env.Ann().Says(first, "allow_once") })
		both.Go(func() {
			for n := range 5 { // each joins the question
				again := second
				again.PendingID = fmt.Sprint("again-", n)
				_, _ = ada.Sends(again, false)
			}
		})
		both.Wait()
	}
	for _, q := range held {
		env.soon("the question is shown", func() bool { return env.stored(q.Key).Record.NextEvent.Kind == schemas.EventDeadline })
	}
}

// A question that could not be delivered to a phone does not hold back the next one.
func TestAQuestionThatCouldNotBeShownHoldsBackNone(t *testing.T) {
	t.Parallel()
	env := start(t, oneAtATime)
	ada := env.Agent("ada")
	ada.Asks(deploy("S", "first"))
	second := deploy("S", "second")
	second.ActionDetails = []byte(`{"to":"staging"}`)
	held := ada.Asks(second)
	_, err := env.conn(roles.ConnectorID("tg")).Call(env.ctx, schemas.DeliverySubject("tg"), schemas.Delivery{
		Type: schemas.TypeDelivery, Recipient: "7", SessionID: "S", PendingID: "first", State: schemas.DeliveryFailed, Reason: "blocked",
	})
	env.NoError(err)
	env.soon("the second is shown", func() bool { return env.stored(held.Key).Record.NextEvent.Kind == schemas.EventDeadline })
}

// Phones are shown at most open_prompts questions of a session at a time, oldest first.
// A list holds all of them, and none is lost.
func TestMoreQuestionsWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) {
		s.settings = `{"permissions": {"open_prompts": 3}, "approvers": {"people": [
			{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]}]}}`
	})
	queue, err := env.raw.Stream(env.ctx, "permission_prompts")
	env.NoError(err)
	ada := env.Agent("ada")
	var all []*question
	for i := range 8 {
		r := deploy("S", fmt.Sprintf("q-%d", i))
		r.ActionDetails = fmt.Appendf(nil, `{"to":"%d"}`, i)
		all = append(all, ada.Asks(r))
	}
	env.Len(env.listed("S"), 8)
	carried := func() int {
		info, err := queue.Info(env.ctx, jetstream.WithSubjectFilter("nod.v1.prompt.tg.S.*"))
		env.NoError(err)
		return len(info.State.Subjects)
	}
	env.soon("three prompts are queued", func() bool { return carried() == 3 && env.outboxIdle() })
	env.Equal(3, carried())
	for i, q := range all {
		env.Ann().Allows(q)
		q.Ends(schemas.Allowed)
		env.soon("the next question is queued", func() bool { return carried() == min(i+4, 8) })
	}
}
