package engine

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The tests of this file are about the timer of a record.

func TestAskingAgainMovesNeitherTimerNorDeadline(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	env.Timeout("S", time.Hour)
	first := ada.Asks(rig.Deploy("S", "1"))
	armed := env.Timer("S.1")
	env.Timeout("S", 2*time.Hour) // a deadline that is computed anew would be later
	env.Ann().Does(schemas.PresenceLock, "S", "laptop", "terminal")

	again := ada.Asks(rig.Deploy("S", "1"))
	env.Equal(first.Receipt, again.Receipt)
	env.Equal(armed, env.Timer("S.1"))
	env.Len(env.Armed(), 1)

	// The agent sends the request again without the mark of a repeated request.
	for _, override := range []time.Duration{2 * time.Hour, time.Minute} {
		env.Timeout("S", override)
		reply, err := ada.Sends(rig.Deploy("S", "1"), false)
		env.NoError(err)
		var receipt schemas.Receipt
		env.NoError(reply.Into(&receipt))
		env.Equal(first.Receipt, receipt)
		env.Equal(armed, env.Timer("S.1"))
	}
}

func TestALostTimerIsArmedWhenTheRequestIsAskedAgain(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	env.Timeout("S", 5*time.Second)
	q := ada.Asks(rig.Deploy("S", "1"))
	env.LoseTimer("S.1")
	ada.Asks(rig.Deploy("S", "1"))
	env.Contains(env.Armed(), "S.1")
	env.Equal(schemas.ByClock, q.Ends(schemas.TimedOut).By.Kind)
}

func TestALostTimerIsArmedByTheSweep(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	env.Timeout("S", 8*time.Second)
	q := ada.Asks(rig.Deploy("S", "1"))
	env.LoseTimer("S.1")
	env.Engine(engine.Options{}) // an engine sweeps the records when it starts
	env.Soon("the sweep arms the timer", func() bool { return len(env.Armed()) == 1 })
	q.Ends(schemas.TimedOut)
}

func TestTheSweepTimesOutRequestsWithoutATimer(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	env.Timeout("S", 3*time.Second)
	q := ada.Asks(rig.Deploy("S", "1"))
	env.LoseTimer("S.1") // the timer is gone, as if it had fired long ago and the broker had dropped it
	env.Passed(q.Receipt.Deadline)
	env.Nil(env.Stored("S.1").Record.Decision)
	env.Engine(engine.Options{})
	q.Ends(schemas.TimedOut)
}

// The request's timer is armed for a wrong time, and its record is missing, because an earlier
// attempt to store the request failed. If the request is sent again, the engine corrects the timer
// before it sends the receipt.
func TestATimerArmedTooLateIsOverwrittenBeforeTheReceipt(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Timeout("S", 5*time.Second)
	ada := env.Agent("ada")
	ada.Asks(rig.Deploy("S", "1"))
	orphan := env.Stored("S.1")
	orphan.Record.NextEvent = &schemas.Event{At: time.Now().Add(time.Hour).UTC(), Kind: schemas.EventDeadline}
	env.NoError(env.Store.Records.Rearm(env.Ctx, &orphan))
	stream, err := env.Raw.Stream(env.Ctx, "KV_pending_permissions")
	env.NoError(err)
	env.NoError(stream.Purge(env.Ctx, jetstream.WithPurgeSubject("$KV.pending_permissions.S.1"))) // removes the record, as if it had never been stored
	q := ada.Asks(rig.Deploy("S", "1"))
	armed, err := time.Parse(time.RFC3339Nano, env.Timer("S.1"))
	env.NoError(err)
	env.WithinDuration(q.Receipt.Deadline, armed, 0)
	q.Ends(schemas.TimedOut)
}

func TestATimerOfAnotherEventIsArmedAgain(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Timeout("S", 5*time.Second)
	early := schemas.Event{At: time.Now().Add(-time.Second).UTC(), Kind: schemas.EventEscalate}
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	env.Arms("S.1", early) // the event is in the past, so the timer fires at once
	env.Soon("the timer is armed again", func() bool {
		entry := env.Stored("S.1")
		armed, err := env.Store.Records.Armed(env.Ctx, &entry) // Armed fails until the engine has replaced the fired timer
		return err == nil && armed.At.Equal(q.Receipt.Deadline) && armed.Kind == schemas.EventDeadline
	})
	env.Nil(env.Stored("S.1").Record.Decision, "a timer of another event ended the request")
	q.Ends(schemas.TimedOut)
}

func TestADecisionCancelsTheTimer(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	env.Contains(env.Armed(), "S.1")
	env.Ann().Allows(q)
	env.Empty(env.Armed())
}

// An answer after the deadline does not count, even if the deadline's timer is lost.
func TestALateAnswerIsRefusedByTheBrokersTime(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Timeout("S", 3*time.Second)
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	env.LoseTimer("S.1")
	env.Passed(q.Receipt.Deadline)
	_, err := env.Ann().Says(q, "allow_once")
	stale := env.Refusal(err, schemas.CodeStale)
	env.Equal(schemas.TimedOut, stale.Decision().Outcome)
	env.Equal(*stale.Decision(), q.Ends(schemas.TimedOut))
}

func TestATimeoutSaysHowLongTheRequestWaited(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.Timeout("S", time.Second)
	ada := env.Agent("ada")
	env.Equal("Permission request timed out after 1 second.", ada.Asks(rig.Deploy("S", "1")).Hears().Message)
	r := rig.Deploy("S", "2")
	r.Kind, r.ToolName, r.Permissions, r.TimeoutSeconds = schemas.KindPermission, "", []string{"@network"}, 2
	r.Reason = "to fetch"
	q := ada.Asks(r)
	env.Equal(schemas.TierRequest, q.Receipt.Tier)
	env.Equal("Permission request timed out after 2 seconds", q.Hears().Message)
}
