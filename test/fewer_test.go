package test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// fewer has identical calls asked about once.
const fewer = `{
	"permissions": {"allow": ["Lookup"], "join_identical": true, "remember_denials_seconds": 600},
	"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]},
		{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]}
	]}
}`

func fewerPrompts(s *setup) { s.settings, s.engines = fewer, 2 }

// listed are the ids that wait for an answer.
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

// "Once" is for the newest that asks, and what asked before hears that.
func TestIdenticalCallsAreAskedAboutOnceAndAllowedOnce(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	first, second, third := ada.Asks(deploy("S", "first")), ada.Asks(deploy("S", "second")), ada.Asks(deploy("S", "third"))
	other := deploy("S", "other")
	other.ActionDetails = []byte(`{"to":"staging"}`)
	ada.Asks(other)
	env.Agent("ada").Asks(deploy("T", "elsewhere"))
	env.Equal([]string{"first", "other"}, env.listed("S"))
	p, _, err := env.Ann().Show(env.ctx, "S", "first")
	env.NoError(err)
	env.Equal([]string{"second", "third"}, p.Joined)
	_, err = env.Ann().Says(second, "allow_once")
	env.Error(err, "it is answered with the one that is shown")

	d, err := env.Ann().Says(first, "allow_once")
	env.NoError(err)
	env.Equal("third", d.PendingID)
	env.Equal(schemas.Allowed, third.Ends(schemas.Allowed).Outcome)
	env.Contains(first.Ends(schemas.Withdrawn).Message, "allowed once, as third")
	second.Ends(schemas.Withdrawn)
	again, err := env.Ann().Says(first, "allow_once") // the tap came twice
	env.NoError(err)
	env.Equal(d, again)
	_, err = env.Bob().Says(first, "reject_once") // another person, too late
	env.Equal(d, *env.refusal(err, schemas.CodeConflict).Decision())
	env.soon("all of it has happened", env.outboxIdle)
	env.Empty(env.listed("S")[1:], "the other call alone waits")
}

// Who gave up is skipped; a denial is for all; who waits alone is allowed as ever.
func TestWhatJoinedFollowsWhatItJoined(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	first, second, third := ada.Asks(deploy("S", "first")), ada.Asks(deploy("S", "second")), ada.Asks(deploy("S", "third"))
	ada.Withdraws("S", "third")
	third.Ends(schemas.Withdrawn)
	d, err := env.Ann().Says(first, "allow_once")
	env.NoError(err)
	env.Equal("second", d.PendingID)
	second.Ends(schemas.Allowed)
	first.Ends(schemas.Withdrawn)

	first = ada.Asks(deploy("T", "first"))
	ada.Asks(deploy("T", "second"))
	ada.Withdraws("T", "second")
	env.Ann().Allows(first)
	first.Ends(schemas.Allowed)

	// The one that is shown is withdrawn: the other takes its place.
	ada.Asks(deploy("U", "first"))
	second = ada.Asks(deploy("U", "second"))
	ada.Withdraws("U", "first")
	env.soon("the second is shown", func() bool { ids := env.listed("U"); return len(ids) == 1 && ids[0] == "second" })
	env.Ann().Allows(second)
	second.Ends(schemas.Allowed)

	first, second = ada.Asks(deploy("V", "first")), ada.Asks(deploy("V", "second"))
	a := env.Ann().answer(first, "reject_once")
	a.Message = "not on a Friday"
	_, err = env.Ann().Answer(env.ctx, a)
	env.NoError(err)
	first.Ends(schemas.Denied)
	env.Equal("not on a Friday", second.Ends(schemas.Denied).Message)
}

// A denial answers the same call for a while, says so, and nothing else.
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

// oneAtATime has a phone shown one question of a session at a time.
func oneAtATime(s *setup) {
	s.settings = `{"permissions": {"open_prompts": 1, "join_identical": true}, "approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]}]}}`
	s.engines = 2
}

// A record that cannot be read keeps none of its session's other requests waiting.
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
	env.soon("its turn has come", func() bool { return env.stored(held.Key).Record.NextEvent.Kind == schemas.EventDeadline })
	frozen, err := env.Ann().Freeze(env.ctx, schemas.Brake{From: ann()})
	env.NoError(err)
	env.Equal(1, frozen.Denied)
	held.Ends(schemas.Denied)
}

// Of a denial that is remembered and an allow, the newer one counts.
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
	env.soon("all that follows has happened", env.outboxIdle) // also of the denial, once more
	fourth := ada.Asks(deploy("S", "fourth"))

	env.Ann().Denies(third)
	env.Equal(schemas.Denied, ada.Gets(deploy("S", "again-2")).Outcome)
	env.NoError(ada.asker.Detach(env.ctx, "S", "fourth", "the host waits no longer"))
	env.Bob().Allows(fourth)
	env.Equal(schemas.Allowed, ada.Gets(deploy("S", "fifth")).Outcome, "what was allowed when nobody waited")
}

// A question whose turn has come is shown, whatever else happens to it then.
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
			for n := range 5 { // each is noted in it
				again := second
				again.PendingID = fmt.Sprint("again-", n)
				_, _ = ada.Sends(again, false)
			}
		})
		both.Wait()
	}
	for _, q := range held {
		env.soon("it is shown", func() bool { return env.stored(q.Key).Record.NextEvent.Kind == schemas.EventDeadline })
	}
}

// What could be shown to nobody on a phone stands in nothing's way there.
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

// Phones are shown so many questions of a session at a time, the oldest first;
// those who look see all of them, and none is lost.
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
	env.soon("three are carried", func() bool { return carried() == 3 && env.outboxIdle() })
	env.Equal(3, carried())
	for i, q := range all {
		env.Ann().Allows(q)
		q.Ends(schemas.Allowed)
		env.soon("the next one's turn", func() bool { return carried() == min(i+4, 8) })
	}
}
