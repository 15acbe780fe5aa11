package engine

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
	"github.com/nodbus/nod/test/internal/rig"
)

// fewer is settings under which identical calls become one question and nod remembers denials.
const fewer = `{
	"permissions": {"allow": ["Lookup"], "join_identical": true, "remember_denials_seconds": 600},
	"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]},
		{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]}
	]}
}`

func fewerPrompts(s *rig.Setup) { s.Settings, s.Engines = fewer, 2 }

func listed(e *rig.Env, session string) []string {
	e.T.Helper()
	all, err := e.Ann().Pending(e.Ctx, schemas.Query{SessionID: session})
	e.NoError(err)
	ids := []string{}
	for _, p := range all {
		ids = append(ids, p.PendingID)
	}
	return ids
}

// Identical calls that wait at the same time are one question. "Allow once" allows only the
// calls that the prompt counted.
func TestIdenticalCallsAreOneQuestion(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	first, second := ada.Asks(rig.Deploy("S", "first")), ada.Asks(rig.Deploy("S", "second"))
	other := rig.Deploy("S", "other")
	other.ActionDetails = []byte(`{"to":"staging"}`)
	ada.Asks(other)
	env.Agent("ada").Asks(rig.Deploy("T", "elsewhere"))
	env.Equal([]string{"first", "other"}, listed(env, "S"))
	p, _, err := env.Ann().Show(env.Ctx, "S", "first")
	env.NoError(err)
	env.Equal([2]int{2, 2}, [2]int{p.Waiters, p.Waiting})
	_, err = env.Ann().Says(second, "allow_once")
	env.Error(err, "a waiter is answered only through its question")
	same, _, err := env.Ann().Show(env.Ctx, "S", "second")
	env.NoError(err)
	env.Equal(p, same, "the id of a waiter shows its question")

	third := ada.Asks(rig.Deploy("S", "third")) // this call joins after Ann has read the prompt, which counts two calls
	d, err := env.Ann().SaysOf(first, "allow_once", p.Waiters)
	env.NoError(err)
	env.Equal("first", d.PendingID)
	for _, q := range []*rig.Question{first, second} {
		heard := q.Ends(schemas.Allowed)
		env.Equal(q.PendingID, heard.PendingID)
		env.Equal(q.Receipt.Digest, heard.Digest)
		env.Equal(d.DecisionID, heard.DecisionID)
	}
	env.Soon("the third is a question of its own", func() bool { return slices.Contains(listed(env, "S"), "third") })
	again, err := env.Ann().SaysOf(first, "allow_once", 2) // the same answer arrives twice
	env.NoError(err)
	env.Equal(d, again)
	_, err = env.Bob().SaysOf(first, "reject_once", 3) // the answer of another person comes too late
	env.Equal(d, *env.Refusal(err, schemas.CodeConflict).Decision())
	_, err = env.Bob().SaysOf(first, "allow_once", 3) // the answer is about three calls instead of two
	env.Refusal(err, schemas.CodeConflict)
	env.Ann().Denies(third)
	third.Ends(schemas.Denied)
	env.Soon("the outbox has handled all changes", env.OutboxIdle)
	env.Equal([]string{"other"}, listed(env, "S"))
	for _, id := range []string{"first", "second", "third"} { // an agent that asks again finds its decision
		env.NotNil(env.Stored("S." + id).Record.Decision)
	}
}

// Identical calls that are sent at the same instant, to any engines, are one question.
func TestConcurrentIdenticalCallsAreOneQuestion(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { fewerPrompts(s); s.Engines = 3 })
	ada := env.Agent("ada")
	for i := range 20 {
		session := fmt.Sprint("S", i)
		const calls = 5
		asked := make([]*rig.Question, calls)
		var all sync.WaitGroup
		for n := range calls {
			all.Go(func() { asked[n] = ada.Asks(rig.Deploy(session, fmt.Sprint("call-", n))) })
		}
		all.Wait()
		listed := listed(env, session)
		env.Len(listed, 1)
		p, _, err := env.Ann().Show(env.Ctx, session, listed[0])
		env.NoError(err)
		env.Equal([2]int{calls, calls}, [2]int{p.Waiters, p.Waiting})
		shown := *asked[slices.IndexFunc(asked, func(q *rig.Question) bool { return q.PendingID == listed[0] })]
		_, err = env.Bob().SaysOf(&shown, "allow_once", calls)
		env.NoError(err)
		for _, q := range asked {
			q.Ends(schemas.Allowed)
		}
	}
}

func TestACallThatEndsLeavesTheQuestionToTheOthers(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	first, second, third := ada.Asks(rig.Deploy("S", "first")), ada.Asks(rig.Deploy("S", "second")), ada.Asks(rig.Deploy("S", "third"))
	env.Equal(schemas.Withdrawn, ada.Withdraws("S", "third").Outcome)
	third.Ends(schemas.Withdrawn)
	ada.Withdraws("S", "first") // the question keeps the id of its first call, which is withdrawn here
	first.Ends(schemas.Withdrawn)
	p, _, err := env.Ann().Show(env.Ctx, "S", "first")
	env.NoError(err)
	env.Equal([2]int{3, 1}, [2]int{p.Waiters, p.Waiting})
	_, err = env.Ann().SaysOf(first, "allow_once", 3)
	env.NoError(err)
	second.Ends(schemas.Allowed)
	env.Equal(schemas.Withdrawn, ada.Withdraws("S", "first").Outcome, "a withdrawn call keeps its own decision")
	env.Equal(schemas.Allowed, ada.Withdraws("S", "second").Outcome)

	first, second = ada.Asks(rig.Deploy("V", "first")), ada.Asks(rig.Deploy("V", "second"))
	a := env.Ann().AnswerTo(first, "reject_once")
	a.Message, a.Waiters = "not on a Friday", 2
	_, err = env.Ann().Answer(env.Ctx, a)
	env.NoError(err)
	first.Ends(schemas.Denied)
	env.Equal("not on a Friday", second.Ends(schemas.Denied).Message)

	// An answer is stale if all calls that it counted have ended.
	first, second = ada.Asks(rig.Deploy("W", "first")), ada.Asks(rig.Deploy("W", "second"))
	ada.Withdraws("W", "first")
	_, err = env.Ann().SaysOf(first, "allow_once", 1)
	env.Refusal(err, schemas.CodeStale)
	env.Nil(env.Stored(second.Key).Record.Decision)
	_, err = env.Ann().SaysOf(first, "allow_once", 2)
	env.NoError(err)
	second.Ends(schemas.Allowed)
}

func TestEachCallOfAQuestionHasItsOwnDeadline(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	env.Timeout("S", 4*time.Second)
	first := ada.Asks(rig.Deploy("S", "first"))
	env.Timeout("S", time.Hour)
	second := ada.Asks(rig.Deploy("S", "second"))
	env.Equal([]string{"first"}, listed(env, "S"))
	d := first.Ends(schemas.TimedOut)
	env.WithinDuration(first.Receipt.Deadline, d.DecidedAt, time.Second)
	env.Soon("the second waits alone", func() bool {
		p, _, err := env.Ann().Show(env.Ctx, "S", "first")
		return err == nil && p.Waiting == 1 && p.Decision == nil && p.Deadline.Equal(second.Receipt.Deadline)
	})
	_, err := env.Ann().SaysOf(first, "allow_once", 2)
	env.NoError(err)
	second.Ends(schemas.Allowed)

	// The second call has a shorter timeout than the first one, and times out first.
	env.Timeout("T", time.Hour)
	third := ada.Asks(rig.Deploy("T", "third"))
	env.Timeout("T", 4*time.Second)
	fourth := ada.Asks(rig.Deploy("T", "fourth"))
	fourth.Ends(schemas.TimedOut)
	env.Ann().Allows(third)
	third.Ends(schemas.Allowed)
}

func TestARememberedDenialDeniesIdenticalCalls(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	q := ada.Asks(rig.Deploy("S", "first"))
	a := env.Ann().AnswerTo(q, "reject_once")
	a.Message = "use make clean"
	_, err := env.Ann().Answer(env.Ctx, a)
	env.NoError(err)
	q.Ends(schemas.Denied)
	d := ada.Gets(rig.Deploy("S", "second"))
	env.Equal(schemas.Denied, d.Outcome)
	env.Contains(d.Message, "Ann denied the same call")
	env.Contains(d.Message, "use make clean")
	env.Equal("denied by Ann", d.By.Name)
	other := rig.Deploy("S", "other")
	other.ActionDetails = []byte(`{"to":"staging"}`)
	ada.Asks(other)
	ada.Asks(rig.Deploy("T", "elsewhere"))
}

func oneAtATime(s *rig.Setup) {
	s.Settings = `{"permissions": {"open_prompts": 1, "join_identical": true}, "approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]}]}}`
	s.Engines = 2
}

// A record that cannot be decoded does not delay the other requests of its session.
func TestAnUnreadableRecordHoldsBackNoOtherRequest(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, oneAtATime)
	ada := env.Agent("ada")
	to := func(id string) *rig.Question {
		r := rig.Deploy("S", id)
		r.ActionDetails = fmt.Appendf(nil, `{"to":%q}`, id)
		return ada.Asks(r)
	}
	to("spoilt")
	held := to("held")
	env.Equal(schemas.EventRelease, env.Stored(held.Key).Record.NextEvent.Kind)
	kv, err := env.Raw.KeyValue(env.Ctx, "pending_permissions")
	env.NoError(err)
	_, err = kv.Put(env.Ctx, "S.spoilt", []byte(`{"type":"nod.v9.record"}`))
	env.NoError(err)
	to("other")
	env.Equal([]string{"held", "other"}, listed(env, "S"))
	ada.Withdraws("S", "other")
	env.Soon("the held question's turn has come", func() bool { return env.Stored(held.Key).Record.NextEvent.Kind == schemas.EventDeadline })
	frozen, err := env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	env.Equal(1, frozen.Denied)
	held.Ends(schemas.Denied)
}

func TestTheNewerOfADenialAndAnApprovalCounts(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) {
		s.Settings = strings.Replace(fewer, `"join_identical": true`, `"join_identical": false`, 1)
	})
	ada := env.Agent("ada")
	first, second, third := ada.Asks(rig.Deploy("S", "first")), ada.Asks(rig.Deploy("S", "second")), ada.Asks(rig.Deploy("S", "third"))
	env.Ann().Denies(first)
	env.Equal(schemas.Denied, ada.Gets(rig.Deploy("S", "again")).Outcome)
	env.Bob().Allows(second)
	env.Soon("the outbox has handled all changes", env.OutboxIdle) // the outbox handles the denied record again, and must not bring back the denial that Bob's allow has ended
	fourth := ada.Asks(rig.Deploy("S", "fourth"))

	env.Ann().Denies(third)
	env.Equal(schemas.Denied, ada.Gets(rig.Deploy("S", "again-2")).Outcome)
	env.NoError(ada.Asker.Detach(env.Ctx, "S", "fourth", "the host waits no longer"))
	env.Bob().Allows(fourth)
	env.Equal(schemas.Allowed, ada.Gets(rig.Deploy("S", "fifth")).Outcome, "the approval that was given while no call waited counts")
}

// If phones show one question of a session at a time, they show the next question in its turn, even
// if a call joins that question at the same moment.
func TestAQuestionThatChangesAtItsTurnIsShown(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestPhonesShowAtMostTheLimitOfQuestions has as many questions")
	env := rig.Start(t, oneAtATime)
	ada := env.Agent("ada")
	var held []*rig.Question
	for i := range 100 {
		session := fmt.Sprint("S", i)
		first := ada.Asks(rig.Deploy(session, "first"))
		second := rig.Deploy(session, "second")
		second.ActionDetails = []byte(`{"to":"staging"}`)
		held = append(held, ada.Asks(second))
		env.Equal(schemas.EventRelease, env.Stored(second.Key()).Record.NextEvent.Kind)
		var both sync.WaitGroup
		both.Go(func() { _, _ = env.Ann().Says(first, "allow_once") })
		both.Go(func() {
			for n := range 5 { // each of these requests joins the question
				again := second
				again.PendingID = fmt.Sprint("again-", n)
				_, _ = ada.Sends(again, false)
			}
		})
		both.Wait()
	}
	for _, q := range held {
		env.Soon("the question is shown", func() bool { return env.Stored(q.Key).Record.NextEvent.Kind == schemas.EventDeadline })
	}
}

func TestAnUndeliveredQuestionHoldsBackNoOther(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, oneAtATime)
	ada := env.Agent("ada")
	ada.Asks(rig.Deploy("S", "first"))
	second := rig.Deploy("S", "second")
	second.ActionDetails = []byte(`{"to":"staging"}`)
	held := ada.Asks(second)
	_, err := env.Conn(roles.ConnectorID("tg")).Call(env.Ctx, schemas.DeliverySubject("tg"), schemas.Delivery{
		Type: schemas.TypeDelivery, Recipient: "7", SessionID: "S", PendingID: "first", State: schemas.DeliveryFailed, Reason: "blocked",
	})
	env.NoError(err)
	env.Soon("the second is shown", func() bool { return env.Stored(held.Key).Record.NextEvent.Kind == schemas.EventDeadline })
}

// Of each session, phones show at most as many questions at a time as the setting open_prompts says, oldest
// first. They show the other questions in their turn. Lists contain all questions.
func TestPhonesShowAtMostTheLimitOfQuestions(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) {
		s.Settings = `{"permissions": {"open_prompts": 3}, "approvers": {"people": [
			{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]}]}}`
	})
	queue, err := env.Raw.Stream(env.Ctx, "permission_prompts")
	env.NoError(err)
	ada := env.Agent("ada")
	var all []*rig.Question
	for i := range 8 {
		r := rig.Deploy("S", fmt.Sprintf("q-%d", i))
		r.ActionDetails = fmt.Appendf(nil, `{"to":"%d"}`, i)
		all = append(all, ada.Asks(r))
	}
	env.Len(listed(env, "S"), 8)
	carried := func() int {
		info, err := queue.Info(env.Ctx, jetstream.WithSubjectFilter("nod.v1.prompt.tg.S.*"))
		env.NoError(err)
		return len(info.State.Subjects)
	}
	env.Soon("three prompts are queued", func() bool { return carried() == 3 && env.OutboxIdle() })
	env.Equal(3, carried())
	for i, q := range all {
		env.Ann().Allows(q)
		q.Ends(schemas.Allowed)
		env.Soon("the next question is queued", func() bool { return carried() == min(i+4, 8) })
	}
}
