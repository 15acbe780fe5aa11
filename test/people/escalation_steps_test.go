package people

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// onCall returns settings by which a request goes to Ann, after bob seconds to Bob, and after ops
// seconds to the group ops. The text more adds settings of Ann.
func onCall(more string, bob, ops int) string {
	return fmt.Sprintf(`{"approvers": {"people": [
		{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "1001"}]%s},
		{"name": "Bob", "identities": [{"connector": "tg", "user_id": "1002"}]},
		{"name": "Cleo", "identities": [{"connector": "tg", "user_id": "1003"}]},
		{"name": "Dan", "identities": [{"connector": "tg", "user_id": "1004"}]}],
		"groups": [{"name": "ops", "people": ["Bob", "Cleo", "Dan"]}],
		"escalation": [{"risk": "low", "steps": [{"to": ["Ann"]}, {"to": ["Bob"], "after_seconds": %d}, {"to": ["ops"], "after_seconds": %d}]}]}}`, more, bob, ops)
}

// prompts holds the prompts that a carrier's worker got, by request and recipient.
type prompts struct {
	mu  sync.Mutex
	all map[string][]schemas.Prompt
}

// takesPrompts registers a worker of the connector tg. The worker takes all prompts from the queue
// and records them.
func takesPrompts(env *rig.Env) *prompts {
	got := &prompts{all: map[string][]schemas.Prompt{}}
	env.Registers("tg", "worker", false)
	queue, err := env.Conn(roles.ConnectorID("tg")).PromptQueue(env.Ctx, "tg")
	env.NoError(err)
	stop, err := queue.Consume(func(d *bus.Delivery) {
		var p schemas.Prompt
		if schemas.Decode(d.Data, &p) == nil {
			got.mu.Lock()
			got.all[p.Key()+" "+p.Recipient] = append(got.all[p.Key()+" "+p.Recipient], p)
			got.mu.Unlock()
		}
		d.Done()
	})
	env.NoError(err)
	env.Wires = append(env.Wires, stop)
	return got
}

// The method of returns the prompts about a request for one recipient, oldest version first.
func (g *prompts) of(q *rig.Question, recipient string) []schemas.Prompt {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := slices.Clone(g.all[q.Key+" "+recipient])
	slices.SortFunc(all, func(a, b schemas.Prompt) int { return cmp.Compare(a.Revision, b.Revision) })
	return all
}

// The method asked requires that the given recipients get the newest version of the record, and that no other
// recipient gets a prompt.
func (g *prompts) asked(env *rig.Env, q *rig.Question, recipients ...string) {
	env.T.Helper()
	env.Soon(fmt.Sprint("asked are ", recipients), func() bool {
		rev := env.Stored(q.Key).Revision
		for _, r := range recipients {
			if all := g.of(q, r); len(all) == 0 || all[len(all)-1].Revision != rev {
				return false
			}
		}
		return env.OutboxIdle()
	})
	for _, r := range []string{"1001", "1002", "1003", "1004"} {
		env.Equal(strings.Contains(fmt.Sprint(recipients), r), len(g.of(q, r)) > 0, r)
	}
}

func escalating(t *testing.T, settings string) (*rig.Env, *prompts) {
	env := rig.Start(t, func(s *rig.Setup) { s.Settings, s.Engines = settings, 2 })
	return env, takesPrompts(env)
}

// The times of a request's escalation steps are fixed when the request is made. No step changes the request's
// deadline or allows the request. All people who were asked get the outcome.
func TestARequestGoesToTheNextPeople(t *testing.T) {
	t.Parallel()
	env, got := escalating(t, onCall("", 4, 8))
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	first := env.Stored(q.Key)
	asked := q.Receipt.Deadline.Add(-schemas.DefaultDisconnectedTimeout)
	if first.Record.NextEvent.Kind == schemas.EventNext && first.Revision == q.Receipt.Revision {
		env.Equal(schemas.Event{At: asked.Add(4 * time.Second), Kind: schemas.EventNext}, *first.Record.NextEvent)
	}
	env.Soon("Ann is asked", func() bool { return len(got.of(q, "1001")) > 0 })
	env.Equal(&schemas.NextStep{At: asked.Add(4 * time.Second), To: []string{"Bob"}}, got.of(q, "1001")[0].Next)
	env.Soon("all steps have come", func() bool { return env.Stored(q.Key).Record.NextEvent.Kind == schemas.EventDeadline })
	got.asked(env, q, "1001", "1002", "1003", "1004")
	env.Equal(&schemas.NextStep{At: asked.Add(8 * time.Second), To: []string{"Cleo", "Dan"}}, got.of(q, "1002")[0].Next, "Bob is asked a step before the group")
	env.Nil(got.of(q, "1003")[0].Next)
	last := env.Stored(q.Key)
	env.Nil(last.Record.Decision)
	env.Equal(first.Record.Deadline, last.Record.Deadline)
	env.Equal(q.Receipt.Deadline.Format(time.RFC3339Nano), env.Timer(q.Key))
	env.Person("tg", "1003").Allows(q)
	q.Ends(schemas.Allowed)
	got.asked(env, q, "1001", "1002", "1003", "1004")
}

// A decision ends the escalation: people of later steps get neither the question nor its outcome.
func TestADecisionEndsAnEscalation(t *testing.T) {
	t.Parallel()
	env, got := escalating(t, onCall("", 3600, 7200))
	ada := env.Agent("ada")
	q := ada.Asks(rig.Deploy("S", "1"))
	got.asked(env, q, "1001")
	again, err := ada.Sends(rig.Deploy("S", "1"), true)
	env.NoError(err)
	env.Equal(schemas.TypeReceipt, again.Type)
	env.Equal(q.Receipt.Revision, env.Stored(q.Key).Revision, "asking again moves no step")
	env.Person("tg", "1001").Denies(q)
	q.Ends(schemas.Denied)
	got.asked(env, q, "1001")

	env.Timeout("short", 2*time.Second)
	short := ada.Asks(rig.Deploy("short", "1"))
	env.Equal(schemas.EventDeadline, env.Stored(short.Key).Record.NextEvent.Kind, "the deadline comes before the next step")
	short.Ends(schemas.TimedOut)
	got.asked(env, short, "1001")
}

// Answers arrive at two engines at nearly the same time as the next step. Each request has one
// decision, and prompts go only to the people of the steps before the decision.
func TestAnswersRaceTheNextStep(t *testing.T) {
	t.Parallel()
	env, got := escalating(t, onCall("", 1, 3600))
	ada := env.Agent("ada")
	var all sync.WaitGroup
	for i := range 12 {
		q := ada.Asks(rig.Deploy(fmt.Sprint("S", i), "1"))
		all.Go(func() {
			env.Passed(q.Receipt.Deadline.Add(-schemas.DefaultDisconnectedTimeout + time.Second - 40*time.Millisecond))
			_, err := env.Ann().Says(q, "allow_once")
			env.NoError(err)
		})
	}
	all.Wait()
	env.Soon("the outbox has handled all", env.OutboxIdle)
	for i := range 12 {
		key := fmt.Sprintf("S%d.1", i)
		rec := env.Stored(key).Record
		env.Equal(schemas.Allowed, rec.Decision.Outcome)
		got.mu.Lock()
		bob, cleo := got.all[key+" 1002"], got.all[key+" 1003"]
		got.mu.Unlock()
		env.Empty(cleo)
		bobsStep := rec.Deadline.Add(-schemas.DefaultDisconnectedTimeout + time.Second)
		if next := rec.NextEvent; next != nil && !next.At.After(bobsStep) { // a decided record keeps its next step
			env.Empty(bob, "%s ended before Bob's step", key)
		}
	}
}

// During quiet hours a person's phone gets no prompt, and the phone of the person's stand-in gets the prompt
// at once. A question without a stand-in waits. Quiet hours decide nothing.
func TestQuietHoursLeaveAQuestionToTheStandIn(t *testing.T) {
	t.Parallel()
	always := `, "time_zone": "UTC", "quiet": [{"from": "00:00", "to": "00:00"}]`
	plain := func(more string) string {
		s, _, _ := strings.Cut(onCall(more, 5, 9), `"escalation"`)
		return strings.Replace(strings.TrimSuffix(strings.TrimSpace(s), ",")+"}}", `"user_id": "1004"}]}]`, `"user_id": "1004"}], "for": {"agents": ["ben"]}}]`, 1)
	}
	env, got := escalating(t, onCall(always+`, "stand_in": "Cleo"`, 3600, 7200))
	ada := env.Agent("ada")
	q := ada.Asks(rig.Deploy("S", "1"))
	got.asked(env, q, "1003")
	env.Equal([]string{"Bob"}, got.of(q, "1003")[0].Next.To)
	env.Person("tg", "1003").Allows(q)
	q.Ends(schemas.Allowed)

	env.Apply(onCall(always, 3600, 7200))
	alone := ada.Asks(rig.Deploy("S", "2"))
	env.Equal(schemas.EventNext, env.Stored(alone.Key).Record.NextEvent.Kind)
	got.asked(env, alone)
	env.Nil(env.Stored(alone.Key).Record.Decision)
	env.Ann().Allows(alone) // a person may answer in an inbox during quiet hours

	env.Apply(plain(always + `, "stand_in": "Dan"`)) // Dan may not decide about ada
	others := ada.Asks(rig.Deploy("S", "3"))
	got.asked(env, others, "1002", "1003")
}

// A prompt waits for the end of quiet hours, by the broker's clock.
func TestAPromptComesAtTheEndOfQuietHours(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestQuietHoursLeaveAQuestionToTheStandIn has quiet hours")
	end := time.Now().UTC().Add(90 * time.Minute).Truncate(time.Minute)
	quiet := fmt.Sprintf(`, "time_zone": "UTC", "quiet": [{"from": "%s", "to": "%s"}]`, end.Add(-3*time.Hour).Format("15:04"), end.Format("15:04"))
	env, got := escalating(t, onCall(quiet, 24*3600, 48*3600))
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	next := env.Stored(q.Key).Record.NextEvent
	env.Equal(schemas.EventNext, next.Kind)
	env.WithinDuration(end, next.At, time.Second)
	shown, _, err := env.Ann().Show(env.Ctx, "S", "1")
	env.NoError(err)
	env.Equal([]string{"Ann"}, shown.Next.To)
	got.asked(env, q)
}
