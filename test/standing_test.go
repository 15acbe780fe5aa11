package test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/nodbus/nod/schemas"
)

// pauseWatches pauses all watches of a store: no engine hears of later changes.
func (e *env) pauseWatches(stream string) {
	e.t.Helper()
	s, err := e.raw.Stream(e.ctx, stream)
	e.NoError(err)
	paused := 0
	consumers := s.ListConsumers(e.ctx)
	for info := range consumers.Info() {
		_, err := s.PauseConsumer(e.ctx, info.Name, time.Now().Add(time.Hour))
		e.NoError(err)
		paused++
	}
	e.NoError(consumers.Err())
	e.NotZero(paused)
}

// A revoked standing answer allows nothing, even on an engine that has not heard of it.
func TestARevokedAnswerIsObeyedByAnEngineThatHasNotHeard(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines = 3 })
	ada, ann := env.Agent("ada"), env.Ann()
	lasting := ann.Remembers(ada.Asks(shell("S", "1", "make test")), schemas.ScopeSession, 0)
	tagged := ann.Allows(ada.Asks(permission("S", "", "r", "@network")))
	for range 30 { // enough requests that every engine knows both
		env.soon("the standing answer allows the command", func() bool {
			asked, err := ada.asker.Submit(env.ctx, shell("S", "", "make test"))
			env.NoError(err)
			return asked.Receipt.Revision == 0
		})
		env.soon("the session holds the permission", func() bool {
			asked, err := ada.asker.Submit(env.ctx, permission("S", "", "r", "@network"))
			env.NoError(err)
			return asked.Receipt.Revision == 0
		})
	}
	env.pauseWatches("KV_permission_sessions")
	env.NoError(env.owner().Revoke(env.ctx, lasting.Grant))
	env.NoError(env.owner().Revoke(env.ctx, tagged.Grant))
	for range 30 {
		ada.Asks(shell("S", "", "make test")).Drop()
		ada.Asks(permission("S", "", "r", "@network")).Drop()
	}
}

// A revoked denial denies nothing, even on an engine that has not heard of it.
func TestADenialThatWasTakenBackIsObeyedByAnEngineThatHasNotHeard(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { fewerPrompts(s); s.engines = 3 })
	ada := env.Agent("ada")
	env.Ann().Denies(ada.Asks(deploy("S", "first")))
	for i := range 30 {
		env.soon("the standing answer denies the call", func() bool {
			asked, err := ada.asker.Submit(env.ctx, deploy("S", fmt.Sprint("again-", i)))
			env.NoError(err)
			if asked.Receipt.Revision != 0 {
				ada.Withdraws("S", asked.PendingID)
			}
			return asked.Receipt.Revision == 0
		})
	}
	env.pauseWatches("KV_permission_sessions")
	answers, err := env.owner().Grants(env.ctx, "S")
	env.NoError(err)
	env.Len(answers, 1)
	env.NoError(env.owner().Revoke(env.ctx, &answers[0]))
	for i := range 10 {
		ada.Asks(deploy("S", fmt.Sprint("later-", i))).Drop()
	}
}

// If an engine dies between its writes, it blocks no identical call and forgets none.
func TestWhatADeadEngineLeftOfAQuestion(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	purge := func(key string) {
		stream, err := env.raw.Stream(env.ctx, "KV_pending_permissions")
		env.NoError(err)
		env.NoError(stream.Purge(env.ctx, jetstream.WithPurgeSubject("$KV.pending_permissions."+key)))
	}
	t.Run("a lock without a record", func(t *testing.T) {
		ada.Asks(deploy("A", "ghost")).Drop()
		purge("A.ghost")
		began := time.Now()
		q := ada.Asks(deploy("A", "second"))
		env.Greater(time.Since(began), 10*time.Second, "the engine must wait, since the record might still be stored")
		env.Equal([]string{"second"}, env.listed("A"))
		env.Ann().Allows(q)
		q.Ends(schemas.Allowed)
	})
	t.Run("the lock of a question that has ended", func(t *testing.T) {
		first := ada.Asks(deploy("B", "first"))
		orphan := env.stored(first.Key)
		env.Ann().Allows(first)
		env.NoError(env.store.Records.Rearm(env.ctx, &orphan))
		env.Equal(schemas.Allowed, first.Ends(schemas.Allowed).Outcome)
		second := ada.Asks(deploy("B", "second"))
		env.Equal([]string{"second"}, env.listed("B"))
		env.Ann().Allows(second)
		second.Ends(schemas.Allowed)
	})
	t.Run("a request that joined no question", func(t *testing.T) {
		first, second := ada.Asks(deploy("C", "first")), ada.Asks(deploy("C", "second"))
		entry := env.stored(first.Key)
		entry.Record.Waiters = entry.Record.Waiters[:1] // the state before the second call was added
		_, err := env.store.Records.Update(env.ctx, entry)
		env.NoError(err)
		env.Ann().Allows(first)
		first.Ends(schemas.Allowed)
		asked, err := ada.asker.Submit(env.ctx, deploy("C", "second"))
		env.NoError(err)
		env.Equal(second.Receipt.Deadline, asked.Receipt.Deadline)
		env.Equal([]string{"second"}, env.listed("C"))
		env.Ann().Denies(second)
		second.Ends(schemas.Denied)
	})
	t.Run("a call that stays, and that no one asks about", func(t *testing.T) {
		first := ada.Asks(deploy("D", "first"))
		second := ada.Asks(deploy("D", "second"))
		env.stopOutbox()
		_, err := env.Ann().SaysOf(first, "allow_once", 1)
		env.NoError(err)
		env.Nil(env.stored(second.Key).Record.Decision)
		env.resumeOutbox()
		env.soon("the second call is a question of its own", func() bool { ids := env.listed("D"); return len(ids) == 1 && ids[0] == "second" })
		env.Ann().Denies(second)
		second.Ends(schemas.Denied)
	})
}

// resumeOutbox ends the pause that stopOutbox began.
func (e *env) resumeOutbox() {
	e.t.Helper()
	stream, err := e.raw.Stream(e.ctx, "KV_pending_permissions")
	e.NoError(err)
	_, err = stream.ResumeConsumer(e.ctx, "nod-outbox")
	e.NoError(err)
}

// A waiter gets its decision from the question's record, before the outbox acts on it.
func TestAWaiterHearsItsDecisionBeforeAnythingFollowed(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	first, second := ada.Asks(deploy("S", "first")), ada.Asks(deploy("S", "second"))
	env.soon("the outbox is idle", env.outboxIdle)
	env.stopOutbox()
	_, err := env.Ann().SaysOf(first, "reject_once", 2)
	env.NoError(err)
	env.Nil(env.stored(second.Key).Record.Decision)
	env.Equal(schemas.Denied, ada.Gets(deploy("S", "second")).Outcome)
	var reply schemas.AwaitReply
	env.NoError(ada.conn.CallInto(env.ctx, schemas.AwaitSubject("ada"), schemas.Await{Type: schemas.TypeAwait, Requests: []schemas.Awaited{{SessionID: "S", PendingID: "second"}}}, &reply))
	env.Equal("second", reply.Results[0].Decision.PendingID)
	env.Equal(schemas.Denied, ada.Withdraws("S", "second").Outcome)
}

// The first call of a question is past its deadline, and its timer is late. An answer
// to the question times the first call out, as the clock would, and allows the second.
func TestAnAnswerEndsTheCallsWhoseDeadlineHasCome(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	env.timeout("S", 5*time.Second)
	first := ada.Asks(deploy("S", "first"))
	env.timeout("S", time.Minute)
	second := ada.Asks(deploy("S", "second"))
	env.loseTimer("S.first")
	env.passed(first.Receipt.Deadline)
	_, err := env.Ann().SaysOf(first, "allow_once", 2)
	env.NoError(err)
	second.Ends(schemas.Allowed)
	first.Ends(schemas.TimedOut)
	env.Equal(schemas.TimedOut, ada.Gets(deploy("S", "first")).Outcome)
}

// A late detach changes a decided record. It must not remove the timer of the next
// identical call, which is that call's lock.
func TestALateDetachLeavesTheNextCallItsTimer(t *testing.T) {
	t.Parallel()
	env := start(t, fewerPrompts)
	ada := env.Agent("ada")
	first, joined := ada.Asks(deploy("S", "first")), ada.Asks(deploy("S", "joined"))
	_, err := env.Ann().SaysOf(first, "allow_once", 2)
	env.NoError(err)
	first.Ends(schemas.Allowed)
	joined.Ends(schemas.Allowed)
	env.soon("the outbox is idle", env.outboxIdle)
	ada.Asks(deploy("S", "second"))
	env.Equal([]string{"S.second"}, env.armed())
	env.NoError(ada.asker.Detach(env.ctx, "S", "joined", "the host had gone on"))
	env.soon("the outbox is idle", env.outboxIdle)
	env.Equal([]string{"S.second"}, env.armed())
	env.Equal(schemas.Allowed, ada.Gets(deploy("S", "third")).Outcome, "the late detach has left its approval")
	ada.Asks(deploy("S", "fourth"))
	env.Equal([]string{"second"}, env.listed("S"), "the fourth has joined the second")
}

// A used and revoked approval allows nothing, even once its request's record is gone.
func TestAnApprovalOutlivesNoUse(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	d := env.Ann().Allows(ada.detaches(deploy("S", "first")))
	env.Equal(schemas.Allowed, ada.Gets(deploy("S", "first")).Outcome)
	env.soon("the outbox is idle", env.outboxIdle)
	env.NoError(env.owner().Revoke(env.ctx, d.Grant))
	stream, err := env.raw.Stream(env.ctx, "KV_pending_permissions")
	env.NoError(err)
	env.NoError(stream.Purge(env.ctx, jetstream.WithPurgeSubject("$KV.pending_permissions.S.first"))) // as a day later
	ada.Asks(deploy("S", "first"))
}
