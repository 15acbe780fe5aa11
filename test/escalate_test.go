package test

import (
	"strings"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
)

// somebodyThere has Ann hold the lock of session S at the terminal. Phones are notified
// after that many seconds.
func somebodyThere(t *testing.T, seconds string) (*env, *ledger) {
	env := start(t, func(s *setup) {
		s.engines = 2
		s.settings = strings.Replace(withCarrier, `"permissions": {`, `"permissions": {"notify_after_seconds": `+seconds+`, `, 1)
	})
	phone := env.carrier()
	env.Ann().does(schemas.PresenceJoin, "S", "laptop", "terminal")
	env.True(env.Ann().does(schemas.PresenceLock, "S", "laptop", "terminal").Granted)
	return env, phone
}

func TestWhoIsThereIsAskedFirstAndThePhoneAfterAWhile(t *testing.T) {
	t.Parallel()
	env, phone := somebodyThere(t, "5")
	q := env.Agent("ada").Asks(deploy("S", "1"))
	env.Equal(schemas.TierConnected, q.Receipt.Tier)
	first := env.stored("S.1")
	env.Equal(schemas.EventEscalate, first.Record.NextEvent.Kind)
	env.soon("the outbox has handled the request", func() bool { return env.logged(schemas.LogAsked)["S.1"] == 1 })
	env.Zero(phone.times("S.1", first.Revision), "Ann is there, so the phone is not notified yet")

	env.soon("the phone is notified", func() bool { return phone.times("S.1", env.stored("S.1").Revision) == 1 })
	told := env.stored("S.1")
	env.Equal(schemas.Event{At: q.Receipt.Deadline, Kind: schemas.EventDeadline}, *told.Record.NextEvent)
	env.Equal(first.Record.Deadline, told.Record.Deadline, "no deadline moves")
	env.Equal(q.Receipt.Deadline.Format(time.RFC3339Nano), env.timer("S.1"))
	env.Ann().Denies(q)
	env.soon("the phone's buttons go", func() bool { return phone.times("S.1", env.stored("S.1").Revision) == 1 })

	elsewhere := env.Agent("ada").Asks(deploy("nobody-there", "1"))
	env.Equal(schemas.EventDeadline, env.stored(elsewhere.Key).Record.NextEvent.Kind)
	env.soon("the phone is notified at once", func() bool { return phone.times(elsewhere.Key, elsewhere.Receipt.Revision) == 1 })
}

func TestWhoAnswersFirstSparesThePhone(t *testing.T) {
	t.Parallel()
	env, phone := somebodyThere(t, "3600")
	env.timeout("S", 0)
	q := env.Agent("ada").Asks(deploy("S", "1"))
	env.Equal(schemas.EventDeadline, env.stored("S.1").Record.NextEvent.Kind, "the deadline comes sooner")
	env.Ann().Allows(q)
	env.apply(strings.Replace(withCarrier, `"permissions": {`, `"permissions": {"notify_after_seconds": 30, `, 1))
	q = env.Agent("ada").Asks(deploy("S", "2"))
	asked := q.Receipt.Revision
	env.Ann().Allows(q)
	env.soon("the outbox has handled the request", func() bool { return env.logged(schemas.LogDecided)["S.2"] == 1 })
	env.Zero(phone.times("S.2", asked))
	env.Zero(phone.times("S.2", env.stored("S.2").Revision), "the phone does not get the outcome either")
}

// The timer is armed for the deadline although the escalation before it never happened:
// the request still ends at its deadline.
func TestAStepThatWasCutShort(t *testing.T) {
	t.Parallel()
	env, _ := somebodyThere(t, `3, "connected_timeout_seconds": 6`)
	q := env.Agent("ada").Asks(deploy("S", "1"))
	env.Equal(schemas.EventEscalate, env.stored("S.1").Record.NextEvent.Kind)
	env.arms("S.1", schemas.Event{At: q.Receipt.Deadline, Kind: schemas.EventDeadline})
	env.Equal("Permission request timed out after 6 seconds.", q.Ends(schemas.TimedOut).Message)
}
