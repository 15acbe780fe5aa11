package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// steps is the text of settings under which a request goes to Ann, and after six seconds to Bob.
const steps = `{"approvers": {"people": [
	{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}]},
	{"name": "Bob", "identities": [{"connector": "web", "user_id": "bob"}]}],
	"escalation": [{"risk": "low", "steps": [{"to": ["Ann"]}, {"to": ["Bob"], "after_seconds": 6}]}]}}`

// While a request waits, the clock of the engine's machine is set ten minutes ahead or back. The request goes
// to its next step once, at the right time by the broker's clock, and keeps its deadline.
func TestAnEscalationFollowsTheBrokersClock(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"ahead": 10 * time.Minute, "behind": -10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var set atomic.Int64
			env := rig.Start(t, func(s *rig.Setup) {
				s.Settings = steps
				s.Engine.Wall = func() time.Time { return time.Now().Round(0).Add(time.Duration(set.Load())) }
			})
			q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
			at := q.Receipt.Deadline.Add(-schemas.DefaultDisconnectedTimeout + 6*time.Second)
			set.Store(int64(by))
			env.Soon("the step has come", func() bool {
				came := env.Stored(q.Key).Record.NextEvent.Kind == schemas.EventDeadline
				ahead, err := env.Store.BrokerTime(env.Ctx)
				env.NoError(err)
				env.False(came && time.Now().Add(ahead).Before(at), "the step came early")
				return came
			})
			env.Nil(env.Stored(q.Key).Record.Decision)
			env.Equal(q.Receipt.Deadline.UTC(), env.Stored(q.Key).Record.Deadline.UTC())
		})
	}
}

// If no engine runs at the time of an escalation step, and the step's timer is lost, the next engine takes
// the step when it starts.
func TestAStepThatWasMissedComesLater(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = steps })
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	env.Engines[0].Halt()
	env.LoseTimer(q.Key)
	env.Passed(q.Receipt.Deadline.Add(-schemas.DefaultDisconnectedTimeout + 6*time.Second))
	env.Equal(schemas.EventNext, env.Stored(q.Key).Record.NextEvent.Kind)
	env.Engine(engine.Options{})
	env.Soon("the step has come", func() bool { return env.Stored(q.Key).Record.NextEvent.Kind == schemas.EventDeadline })
	env.Soon("the timer is armed for the deadline", func() bool { return len(env.Armed()) == 1 })
	env.Equal(q.Receipt.Deadline.Format(time.RFC3339Nano), env.Timer(q.Key))
	env.Nil(env.Stored(q.Key).Record.Decision)
	env.Bob().Allows(q)
	q.Ends(schemas.Allowed)
}
