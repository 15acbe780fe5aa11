package test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// phonesShown limits Ann's phone to limit questions of a session at a time.
func phonesShown(limit, engines int) func(*setup) {
	return func(s *setup) {
		s.settings = fmt.Sprintf(`{"permissions": {"open_prompts": %d}, "approvers": {"people": [
			{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]}]}}`, limit)
		s.engines = engines
	}
}

// told reports whether a request is decided or phones are notified of it.
func (e *env) told(key string) bool {
	next := e.stored(key).Record.NextEvent
	return next == nil || next.Kind == schemas.EventDeadline
}

// The cost of ending a question does not grow with the number of pending ones.
func TestAFloodOfWithdrawalsReadsNoSessionWhole(t *testing.T) {
	t.Parallel()
	env := start(t, phonesShown(1, 1))
	ada := env.Agent("ada")
	const questions = 150
	for i := range questions {
		ada.Asks(deployTo("S", fmt.Sprintf("q-%03d", i)))
	}
	env.soon("all are stored", env.outboxIdle)
	var reads, lists atomic.Int64
	nc := env.rawConn(roles.ID{Role: roles.OwnerStore})
	for subject, n := range map[string]*atomic.Int64{
		"$JS.API.DIRECT.GET.KV_pending_permissions.>": &reads, "$JS.API.STREAM.MSG.GET.KV_pending_permissions": &reads,
		"$JS.API.STREAM.INFO.KV_pending_permissions": &lists,
	} {
		_, err := nc.Subscribe(subject, func(*nats.Msg) { n.Add(1) })
		env.NoError(err)
	}
	env.NoError(nc.Flush())
	for i := range questions { // the oldest first: each was just released
		ada.Withdraws("S", fmt.Sprintf("q-%03d", i))
		if i+1 < questions {
			env.soon("the next question is released", func() bool { return env.told(schemas.Key("S", fmt.Sprintf("q-%03d", i+1))) })
			reads.Add(-1) // this test makes at least one of them
		}
	}
	env.soon("the outbox has handled all changes", env.outboxIdle)
	env.NoError(nc.Flush())
	t.Log(reads.Load(), "reads and", lists.Load(), "lists for", questions, "withdrawals")
	env.Less(reads.Load(), int64(40*questions), "reads must not grow with the square of the withdrawals, whose half is %d", questions*questions/2)
	env.Less(lists.Load(), int64(questions/2))
}

// In whatever order and on whichever engine questions end, the oldest of the others are
// shown, as many as the limit allows.
func TestTheOldestAreShownWhoeverEndsTheOthers(t *testing.T) {
	t.Parallel()
	const questions, left, limit = 60, 20, 3
	env := start(t, phonesShown(limit, 2))
	ada := env.Agent("ada")
	ids := make(chan string, questions)
	for i := range questions {
		id := fmt.Sprintf("q-%03d", i)
		ada.Asks(deployTo("S", id))
		if i%3 != 0 {
			ids <- id
		}
	}
	close(ids)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for id := range ids {
				if _, err := ada.asker.Withdraw(env.ctx, "S", id, "changed my mind"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	shown := func() (n int) {
		for i := range left {
			if env.told(schemas.Key("S", fmt.Sprintf("q-%03d", 3*i))) {
				n++
			}
		}
		return n
	}
	env.soon("three are shown", func() bool { return env.outboxIdle() && shown() == limit })
	for i := range limit {
		env.True(env.told(schemas.Key("S", fmt.Sprintf("q-%03d", 3*i))), "the oldest questions are shown")
	}
}

// A phone that was not shown a question is not shown its outcome.
func TestWhatWasHeldBackIsNotCarried(t *testing.T) {
	t.Parallel()
	env, tg := start(t, phonesShown(1, 1)), &chat{}
	env.worker(tg.on(nil, nil))
	ada := env.Agent("ada")
	first := ada.Asks(deployTo("S", "first"))
	ada.Asks(deployTo("S", "held"))
	ada.Withdraws("S", "held")
	env.Ann().Denies(first)
	env.soon("its outcome is shown", tg.settled("first", 1))
	env.soon("the outbox and the queue are empty", func() bool { return env.outboxIdle() && env.queueIdle() })
	_, err := env.store.Shown.Get(env.ctx, "tg.7.S.held", new(schemas.Shown))
	env.Error(err, "nothing was queued for it")
}

// A session that floods a chat delays another's question by at most two of its own.
func TestOneSessionsFloodDelaysNoOthersQuestion(t *testing.T) {
	t.Parallel()
	env, tg := start(t, phonesShown(0, 1)), &chat{}
	freed, order := make(chan struct{}), make(chan string, 1000)
	var once sync.Once
	free := func() { once.Do(func() { close(freed) }) }
	env.worker(tg.on(func(p schemas.Prompt) { <-freed; order <- p.SessionID }, nil))
	env.wires = slices.Insert(env.wires, 0, free)
	ada := env.Agent("ada")
	const flood = 100
	for i := range flood {
		ada.Asks(deployTo("S", fmt.Sprint("q-", i)))
	}
	ada.Asks(deployTo("other", "q"))
	env.soon("the worker has all prompts", func() bool {
		consumer, err := env.raw.Consumer(env.ctx, "permission_prompts", "tg")
		return err == nil && consumer.CachedInfo().NumAckPending == flood+1
	})
	free()
	before := 0
	for session := range order {
		if session == "other" {
			break
		}
		before++
	}
	env.LessOrEqual(before, 2, "of the flood's %d prompts", flood)
}
