package test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/schemas"
)

// These tests are about the record and its timer: protocol, section 1.

func TestAskingAgainMovesNeitherTimerNorDeadline(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	env.timeout("S", time.Hour)
	first := ada.Asks(deploy("S", "1"))
	armed := env.timer("S.1")
	env.timeout("S", 2*time.Hour) // a new deadline would differ
	env.Ann().does(schemas.PresenceLock, "S", "laptop", "terminal")

	again := ada.Asks(deploy("S", "1"))
	env.Equal(first.Receipt, again.Receipt)
	env.Equal(armed, env.timer("S.1"))
	env.Len(env.armed(), 1)

	// Two clients that both send the request as if it were new.
	for _, override := range []time.Duration{2 * time.Hour, time.Minute} {
		env.timeout("S", override)
		reply, err := ada.Sends(deploy("S", "1"), false)
		env.NoError(err)
		var receipt schemas.Receipt
		env.NoError(reply.Into(&receipt))
		env.Equal(first.Receipt, receipt)
		env.Equal(armed, env.timer("S.1"))
	}
}

func TestALostTimerIsArmedWhenTheRequestIsAskedAgain(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	env.timeout("S", 5*time.Second)
	q := ada.Asks(deploy("S", "1"))
	env.loseTimer("S.1")
	ada.Asks(deploy("S", "1"))
	env.Contains(env.armed(), "S.1")
	env.Equal(schemas.ByClock, q.Ends(schemas.TimedOut).By.Kind)
}

func TestALostTimerIsArmedByTheSweep(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	env.timeout("S", 8*time.Second)
	q := ada.Asks(deploy("S", "1"))
	env.loseTimer("S.1")
	env.engine(engine.Options{}) // sweeps as it starts
	env.soon("the sweep arms the timer", func() bool { return len(env.armed()) == 1 })
	q.Ends(schemas.TimedOut)
}

func TestTheSweepEndsWhatExpiredWhileNobodyWasThere(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	env.timeout("S", 3*time.Second)
	q := ada.Asks(deploy("S", "1"))
	env.loseTimer("S.1") // like a timer that fired more than an hour ago
	env.passed(q.Receipt.Deadline)
	env.Nil(env.stored("S.1").Record.Decision)
	env.engine(engine.Options{})
	q.Ends(schemas.TimedOut)
}

// A timer left by a lost request occupies the subject of the record's own timer.
func TestATimerArmedTooLateIsOverwrittenBeforeTheReceipt(t *testing.T) {
	t.Parallel()
	env := start(t)
	env.timeout("S", 5*time.Second)
	ada := env.Agent("ada")
	ada.Asks(deploy("S", "1"))
	orphan := env.stored("S.1")
	orphan.Record.NextEvent = &schemas.Event{At: time.Now().Add(time.Hour).UTC(), Kind: schemas.EventDeadline}
	env.NoError(env.store.Records.Rearm(env.ctx, &orphan))
	stream, err := env.raw.Stream(env.ctx, "KV_pending_permissions")
	env.NoError(err)
	env.NoError(stream.Purge(env.ctx, jetstream.WithPurgeSubject("$KV.pending_permissions.S.1"))) // as if it was never stored
	q := ada.Asks(deploy("S", "1"))
	armed, err := time.Parse(time.RFC3339Nano, env.timer("S.1"))
	env.NoError(err)
	env.WithinDuration(q.Receipt.Deadline, armed, 0)
	q.Ends(schemas.TimedOut)
}

func TestATimerArmedForSomethingElseIsArmedAgain(t *testing.T) {
	t.Parallel()
	env := start(t)
	env.timeout("S", 5*time.Second)
	early := schemas.Event{At: time.Now().Add(-time.Second).UTC(), Kind: schemas.EventEscalate}
	q := env.Agent("ada").Asks(deploy("S", "1"))
	env.arms("S.1", early) // fires at once
	env.soon("the timer is armed again", func() bool {
		entry := env.stored("S.1")
		armed, err := env.store.Records.Armed(env.ctx, &entry) // for a moment there is no timer
		return err == nil && armed.At.Equal(q.Receipt.Deadline) && armed.Kind == schemas.EventDeadline
	})
	env.Nil(env.stored("S.1").Record.Decision, "a timer of another event ended the request")
	q.Ends(schemas.TimedOut)
}

func TestADecisionCancelsTheTimer(t *testing.T) {
	t.Parallel()
	env := start(t)
	q := env.Agent("ada").Asks(deploy("S", "1"))
	env.Contains(env.armed(), "S.1")
	env.Ann().Allows(q)
	env.Empty(env.armed())
}

// Even if the deadline's timer is lost, an answer after the deadline does not count.
func TestALateAnswerIsRefusedByTheBrokersTime(t *testing.T) {
	t.Parallel()
	env := start(t)
	env.timeout("S", 3*time.Second)
	q := env.Agent("ada").Asks(deploy("S", "1"))
	env.loseTimer("S.1")
	env.passed(q.Receipt.Deadline)
	_, err := env.Ann().Says(q, "allow_once")
	stale := env.refusal(err, schemas.CodeStale)
	env.Equal(schemas.TimedOut, stale.Decision().Outcome)
	env.Equal(*stale.Decision(), q.Ends(schemas.TimedOut))
}

func TestTheClockSaysHowLongTheRequestWaited(t *testing.T) {
	t.Parallel()
	env := start(t)
	env.timeout("S", time.Second)
	ada := env.Agent("ada")
	env.Equal("Permission request timed out after 1 second.", ada.Asks(deploy("S", "1")).Hears().Message)
	r := deploy("S", "2")
	r.Kind, r.ToolName, r.Permissions, r.TimeoutSeconds = schemas.KindPermission, "", []string{"@network"}, 2
	r.Reason = "to fetch"
	q := ada.Asks(r)
	env.Equal(schemas.TierRequest, q.Receipt.Tier)
	env.Equal("Permission request timed out after 2 seconds", q.Hears().Message)
}
