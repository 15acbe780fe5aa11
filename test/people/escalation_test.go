package people

import (
	"strings"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// somebodyThere starts nod and lets Ann take the input lock of session S at the terminal. Phones
// then get the prompts of S later, by the given number of seconds.
func somebodyThere(t *testing.T, seconds string) (*rig.Env, *rig.Ledger) {
	env := rig.Start(t, func(s *rig.Setup) {
		s.Engines = 2
		s.Settings = strings.Replace(rig.WithCarrier, `"permissions": {`, `"permissions": {"notify_after_seconds": `+seconds+`, `, 1)
	})
	phone := env.Carrier()
	env.Ann().Does(schemas.PresenceJoin, "S", "laptop", "terminal")
	env.True(env.Ann().Does(schemas.PresenceLock, "S", "laptop", "terminal").Granted)
	return env, phone
}

func TestAPhoneIsNotifiedLaterIfAnApproverIsPresent(t *testing.T) {
	t.Parallel()
	env, phone := somebodyThere(t, "5")
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	env.Equal(schemas.TierConnected, q.Receipt.Tier)
	first := env.Stored("S.1")
	env.Equal(schemas.EventEscalate, first.Record.NextEvent.Kind)
	env.Soon("the outbox has handled the request", func() bool { return env.Logged(schemas.LogAsked)["S.1"] == 1 })
	env.Zero(phone.Times("S.1", first.Revision), "Ann is there, so the phone is not notified yet")

	env.Soon("the phone is notified", func() bool { return phone.Times("S.1", env.Stored("S.1").Revision) == 1 })
	told := env.Stored("S.1")
	env.Equal(schemas.Event{At: q.Receipt.Deadline, Kind: schemas.EventDeadline}, *told.Record.NextEvent)
	env.Equal(first.Record.Deadline, told.Record.Deadline, "no deadline moves")
	env.Equal(q.Receipt.Deadline.Format(time.RFC3339Nano), env.Timer("S.1"))
	env.Ann().Denies(q)
	env.Soon("the phone's buttons go", func() bool { return phone.Times("S.1", env.Stored("S.1").Revision) == 1 })

	elsewhere := env.Agent("ada").Asks(rig.Deploy("nobody-there", "1"))
	env.Equal(schemas.EventDeadline, env.Stored(elsewhere.Key).Record.NextEvent.Kind)
	env.Soon("the phone is notified at once", func() bool { return phone.Times(elsewhere.Key, elsewhere.Receipt.Revision) == 1 })
}

func TestAPhoneIsNotNotifiedAfterAnEarlyAnswer(t *testing.T) {
	t.Parallel()
	env, phone := somebodyThere(t, "3600")
	env.Timeout("S", 0)
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	env.Equal(schemas.EventDeadline, env.Stored("S.1").Record.NextEvent.Kind, "the deadline comes sooner")
	env.Ann().Allows(q)
	env.Apply(strings.Replace(rig.WithCarrier, `"permissions": {`, `"permissions": {"notify_after_seconds": 30, `, 1))
	q = env.Agent("ada").Asks(rig.Deploy("S", "2"))
	asked := q.Receipt.Revision
	env.Ann().Allows(q)
	env.Soon("the outbox has handled the request", func() bool { return env.Logged(schemas.LogDecided)["S.2"] == 1 })
	env.Zero(phone.Times("S.2", asked))
	env.Zero(phone.Times("S.2", env.Stored("S.2").Revision), "the phone does not get the outcome either")
}

// The timer is armed for the deadline, although the record's next event is the escalation. The
// request still ends at its deadline.
func TestARequestEndsAtItsDeadlineWithoutItsEscalation(t *testing.T) {
	t.Parallel()
	env, _ := somebodyThere(t, `3, "connected_timeout_seconds": 6`)
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	env.Equal(schemas.EventEscalate, env.Stored("S.1").Record.NextEvent.Kind)
	env.Arms("S.1", schemas.Event{At: q.Receipt.Deadline, Kind: schemas.EventDeadline})
	env.Equal("Permission request timed out after 6 seconds.", q.Ends(schemas.TimedOut).Message)
}
