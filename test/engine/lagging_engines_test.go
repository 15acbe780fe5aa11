package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// pauseWatches pauses all consumers of a stream, so that no engine's watch reports later
// changes.
func pauseWatches(e *rig.Env, stream string) {
	e.T.Helper()
	s, err := e.Raw.Stream(e.Ctx, stream)
	e.NoError(err)
	paused := 0
	consumers := s.ListConsumers(e.Ctx)
	for info := range consumers.Info() {
		_, err := s.PauseConsumer(e.Ctx, info.Name, time.Now().Add(time.Hour))
		e.NoError(err)
		paused++
	}
	e.NoError(consumers.Err())
	e.NotZero(paused)
}

// A revoked grant allows nothing, even on an engine whose watch has not reported the change.
func TestALaggingEngineObeysTheRevokeOfAGrant(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Engines = 3 })
	ada, ann := env.Agent("ada"), env.Ann()
	lasting := ann.Remembers(ada.Asks(rig.Shell("S", "1", "make test")), schemas.ScopeSession, 0)
	tagged := ann.Allows(ada.Asks(rig.Permission("S", "", "r", "@network")))
	for range 30 { // after these requests, every engine has both answers in its cache
		env.Soon("the standing answer allows the command", func() bool {
			asked, err := ada.Asker.Submit(env.Ctx, rig.Shell("S", "", "make test"))
			env.NoError(err)
			return asked.Receipt.Revision == 0
		})
		env.Soon("the session holds the permission", func() bool {
			asked, err := ada.Asker.Submit(env.Ctx, rig.Permission("S", "", "r", "@network"))
			env.NoError(err)
			return asked.Receipt.Revision == 0
		})
	}
	pauseWatches(env, "KV_permission_sessions")
	env.NoError(env.Owner().Revoke(env.Ctx, lasting.Grant))
	env.NoError(env.Owner().Revoke(env.Ctx, tagged.Grant))
	for range 30 {
		ada.Asks(rig.Shell("S", "", "make test")).Drop()
		ada.Asks(rig.Permission("S", "", "r", "@network")).Drop()
	}
}

// A revoked denial denies nothing, even on an engine whose watch has not reported the change.
func TestALaggingEngineObeysTheRevokeOfADenial(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { fewerPrompts(s); s.Engines = 3 })
	ada := env.Agent("ada")
	env.Ann().Denies(ada.Asks(rig.Deploy("S", "first")))
	for i := range 30 {
		env.Soon("the standing answer denies the call", func() bool {
			asked, err := ada.Asker.Submit(env.Ctx, rig.Deploy("S", fmt.Sprint("again-", i)))
			env.NoError(err)
			if asked.Receipt.Revision != 0 {
				ada.Withdraws("S", asked.PendingID)
			}
			return asked.Receipt.Revision == 0
		})
	}
	pauseWatches(env, "KV_permission_sessions")
	answers, err := env.Owner().Grants(env.Ctx, "S")
	env.NoError(err)
	env.Len(answers, 1)
	env.NoError(env.Owner().Revoke(env.Ctx, &answers[0]))
	for i := range 10 {
		ada.Asks(rig.Deploy("S", fmt.Sprint("later-", i))).Drop()
	}
}

// An engine dies between two writes for one call. Agents can still send identical calls, and people
// see a question for each call that waits.
func TestADeadEngineBlocksNoIdenticalCall(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	purge := func(key string) {
		stream, err := env.Raw.Stream(env.Ctx, "KV_pending_permissions")
		env.NoError(err)
		env.NoError(stream.Purge(env.Ctx, jetstream.WithPurgeSubject("$KV.pending_permissions."+key)))
	}
	t.Run("a lock without a record", func(t *testing.T) {
		ada.Asks(rig.Deploy("A", "ghost")).Drop()
		purge("A.ghost")
		began := time.Now()
		q := ada.Asks(rig.Deploy("A", "second"))
		env.Greater(time.Since(began), 10*time.Second, "the engine must wait, since the record might still be stored")
		env.Equal([]string{"second"}, listed(env, "A"))
		env.Ann().Allows(q)
		q.Ends(schemas.Allowed)
	})
	t.Run("the lock of a question that has ended", func(t *testing.T) {
		first := ada.Asks(rig.Deploy("B", "first"))
		orphan := env.Stored(first.Key)
		env.Ann().Allows(first)
		env.NoError(env.Store.Records.Rearm(env.Ctx, &orphan))
		env.Equal(schemas.Allowed, first.Ends(schemas.Allowed).Outcome)
		second := ada.Asks(rig.Deploy("B", "second"))
		env.Equal([]string{"second"}, listed(env, "B"))
		env.Ann().Allows(second)
		second.Ends(schemas.Allowed)
	})
	t.Run("a request that joined no question", func(t *testing.T) {
		first, second := ada.Asks(rig.Deploy("C", "first")), ada.Asks(rig.Deploy("C", "second"))
		entry := env.Stored(first.Key)
		entry.Record.Waiters = entry.Record.Waiters[:1] // only the first call stays, as if the engine had died before it added the second call
		_, err := env.Store.Records.Update(env.Ctx, entry)
		env.NoError(err)
		env.Ann().Allows(first)
		first.Ends(schemas.Allowed)
		asked, err := ada.Asker.Submit(env.Ctx, rig.Deploy("C", "second"))
		env.NoError(err)
		env.Equal(second.Receipt.Deadline, asked.Receipt.Deadline)
		env.Equal([]string{"second"}, listed(env, "C"))
		env.Ann().Denies(second)
		second.Ends(schemas.Denied)
	})
	t.Run("a call that stays, and that no one asks about", func(t *testing.T) {
		first := ada.Asks(rig.Deploy("D", "first"))
		second := ada.Asks(rig.Deploy("D", "second"))
		env.StopOutbox()
		_, err := env.Ann().SaysOf(first, "allow_once", 1)
		env.NoError(err)
		env.Nil(env.Stored(second.Key).Record.Decision)
		resumeOutbox(env)
		env.Soon("the second call is a question of its own", func() bool { ids := listed(env, "D"); return len(ids) == 1 && ids[0] == "second" })
		env.Ann().Denies(second)
		second.Ends(schemas.Denied)
	})
}

// resumeOutbox ends the pause that Env.StopOutbox began.
func resumeOutbox(e *rig.Env) {
	e.T.Helper()
	stream, err := e.Raw.Stream(e.Ctx, "KV_pending_permissions")
	e.NoError(err)
	_, err = stream.ResumeConsumer(e.Ctx, "nod-outbox")
	e.NoError(err)
}

// An agent that asks again gets its decision from the question's record, even before the outbox has
// copied the decision to the request's own record.
func TestAWaiterGetsItsDecisionBeforeTheOutboxRuns(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	first, second := ada.Asks(rig.Deploy("S", "first")), ada.Asks(rig.Deploy("S", "second"))
	env.Soon("the outbox is idle", env.OutboxIdle)
	env.StopOutbox()
	_, err := env.Ann().SaysOf(first, "reject_once", 2)
	env.NoError(err)
	env.Nil(env.Stored(second.Key).Record.Decision)
	env.Equal(schemas.Denied, ada.Gets(rig.Deploy("S", "second")).Outcome)
	var reply schemas.AwaitReply
	env.NoError(ada.Conn.CallInto(env.Ctx, schemas.AwaitSubject("ada"), schemas.Await{Type: schemas.TypeAwait, Requests: []schemas.Awaited{{SessionID: "S", PendingID: "second"}}}, &reply))
	env.Equal("second", reply.Results[0].Decision.PendingID)
	env.Equal(schemas.Denied, ada.Withdraws("S", "second").Outcome)
}

// Two identical calls wait for one question. The deadline of the first call has passed, and its timer is
// lost. If a person now allows the question, the first call times out and the second call is allowed.
func TestAnAnswerTimesOutCallsPastTheirDeadline(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	env.Timeout("S", 5*time.Second)
	first := ada.Asks(rig.Deploy("S", "first"))
	env.Timeout("S", time.Minute)
	second := ada.Asks(rig.Deploy("S", "second"))
	env.LoseTimer("S.first")
	env.Passed(first.Receipt.Deadline)
	_, err := env.Ann().SaysOf(first, "allow_once", 2)
	env.NoError(err)
	second.Ends(schemas.Allowed)
	first.Ends(schemas.TimedOut)
	env.Equal(schemas.TimedOut, ada.Gets(rig.Deploy("S", "first")).Outcome)
}

// A late detach changes a decided record. The timer of the next identical call must stay, because it
// is also the lock of the new question.
func TestALateDetachKeepsTheNextCallsTimer(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, fewerPrompts)
	ada := env.Agent("ada")
	first, joined := ada.Asks(rig.Deploy("S", "first")), ada.Asks(rig.Deploy("S", "joined"))
	_, err := env.Ann().SaysOf(first, "allow_once", 2)
	env.NoError(err)
	first.Ends(schemas.Allowed)
	joined.Ends(schemas.Allowed)
	env.Soon("the outbox is idle", env.OutboxIdle)
	ada.Asks(rig.Deploy("S", "second"))
	env.Equal([]string{"S.second"}, env.Armed())
	env.NoError(ada.Asker.Detach(env.Ctx, "S", "joined", "the host had gone on"))
	env.Soon("the outbox is idle", env.OutboxIdle)
	env.Equal([]string{"S.second"}, env.Armed())
	env.Equal(schemas.Allowed, ada.Gets(rig.Deploy("S", "third")).Outcome, "the late detach has left its approval")
	ada.Asks(rig.Deploy("S", "fourth"))
	env.Equal([]string{"second"}, listed(env, "S"), "the fourth has joined the second")
}

// An approval that was used once and then revoked allows no further call, even after the record of
// the approved request has expired.
func TestAUsedAndRevokedApprovalAllowsNothing(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	d := env.Ann().Allows(ada.Detaches(rig.Deploy("S", "first")))
	env.Equal(schemas.Allowed, ada.Gets(rig.Deploy("S", "first")).Outcome)
	env.Soon("the outbox is idle", env.OutboxIdle)
	env.NoError(env.Owner().Revoke(env.Ctx, d.Grant))
	stream, err := env.Raw.Stream(env.Ctx, "KV_pending_permissions")
	env.NoError(err)
	env.NoError(stream.Purge(env.Ctx, jetstream.WithPurgeSubject("$KV.pending_permissions.S.first"))) // removes the record from the store, as if it had expired
	ada.Asks(rig.Deploy("S", "first"))
}
