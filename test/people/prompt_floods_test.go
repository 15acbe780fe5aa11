package people

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// phonesShown sets the number of engines, and limits the questions of one session that Ann's phone
// shows at a time.
func phonesShown(limit, engines int) func(*rig.Setup) {
	return func(s *rig.Setup) {
		s.Settings = fmt.Sprintf(`{"permissions": {"open_prompts": %d}, "approvers": {"people": [
			{"name": "Ann", "identities": [{"connector": "terminal", "user_id": "ann"}, {"connector": "tg", "user_id": "7"}]}]}}`, limit)
		s.Engines = engines
	}
}

// The function told reports whether a request is decided, or may be shown on phones.
func told(e *rig.Env, key string) bool {
	next := e.Stored(key).Record.NextEvent
	return next == nil || next.Kind == schemas.EventDeadline
}

func TestTheCostOfAWithdrawalDoesNotGrow(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, phonesShown(1, 1))
	ada := env.Agent("ada")
	questions := rig.Times(t, 80, 150)
	for i := range questions {
		ada.Asks(deployTo("S", fmt.Sprintf("q-%03d", i)))
	}
	env.Soon("all are stored", env.OutboxIdle)
	var reads, lists atomic.Int64
	nc := env.RawConn(roles.ID{Role: roles.OwnerStore})
	for subject, n := range map[string]*atomic.Int64{
		"$JS.API.DIRECT.GET.KV_pending_permissions.>": &reads, "$JS.API.STREAM.MSG.GET.KV_pending_permissions": &reads,
		"$JS.API.STREAM.INFO.KV_pending_permissions": &lists,
	} {
		_, err := nc.Subscribe(subject, func(*nats.Msg) { n.Add(1) })
		env.NoError(err)
	}
	env.NoError(nc.Flush())
	for i := range questions { // the oldest question, which the phone shows, ends first
		ada.Withdraws("S", fmt.Sprintf("q-%03d", i))
		if i+1 < questions {
			env.Soon("the next question is released", func() bool { return told(env, schemas.Key("S", fmt.Sprintf("q-%03d", i+1))) })
			reads.Add(-1) // does not count the read by the function told
		}
	}
	env.Soon("the outbox has handled all changes", env.OutboxIdle)
	env.NoError(nc.Flush())
	t.Log(reads.Load(), "reads and", lists.Load(), "lists for", questions, "withdrawals")
	env.Less(reads.Load(), int64(40*questions), "reads must not grow with the square of the withdrawals, whose half is %d", questions*questions/2)
	env.Less(lists.Load(), int64(questions/2))
}

// The phone shows the oldest remaining questions up to the limit, whichever questions end and on
// whichever engine.
func TestPhonesShowTheOldestRemainingQuestions(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAFloodingSessionDoesNotDelayOthers sends as many questions")
	const questions, left, limit = 60, 20, 3
	env := rig.Start(t, phonesShown(limit, 2))
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
				if _, err := ada.Asker.Withdraw(env.Ctx, "S", id, "changed my mind"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	shown := func() (n int) {
		for i := range left {
			if told(env, schemas.Key("S", fmt.Sprintf("q-%03d", 3*i))) {
				n++
			}
		}
		return n
	}
	env.Soon("three are shown", func() bool { return env.OutboxIdle() && shown() == limit })
	for i := range limit {
		env.True(told(env, schemas.Key("S", fmt.Sprintf("q-%03d", 3*i))), "the oldest questions are shown")
	}
}

func TestAQuestionThatWasNotShownShowsNoOutcome(t *testing.T) {
	t.Parallel()
	env, tg := rig.Start(t, phonesShown(1, 1)), &chat{}
	startWorker(env, tg.on(nil, nil))
	ada := env.Agent("ada")
	first := ada.Asks(deployTo("S", "first"))
	env.Soon("the first question is shown", func() bool { return tg.choices("first") == 1 })
	ada.Asks(deployTo("S", "held"))
	ada.Withdraws("S", "held")
	env.Ann().Denies(first)
	env.Soon("its outcome is shown", tg.settled("first", 1))
	env.Soon("the outbox and the queue are empty", func() bool { return env.OutboxIdle() && queueIdle(env) })
	_, err := env.Store.Shown.Get(env.Ctx, "tg.7.S.held", new(schemas.Shown))
	env.Error(err, "nothing was queued for it")
}

// If a session floods a chat, at most two of its questions come before a question of another session.
func TestAFloodingSessionDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	env, tg := rig.Start(t, phonesShown(0, 1)), &chat{}
	freed, order := make(chan struct{}), make(chan string, 1000)
	var once sync.Once
	free := func() { once.Do(func() { close(freed) }) }
	startWorker(env, tg.on(func(p schemas.Prompt) { <-freed; order <- p.SessionID }, nil))
	env.Workers = slices.Insert(env.Workers, 0, free)
	ada := env.Agent("ada")
	const flood = 100
	for i := range flood {
		ada.Asks(deployTo("S", fmt.Sprint("q-", i)))
	}
	ada.Asks(deployTo("other", "q"))
	env.Soon("the worker has all prompts", func() bool {
		consumer, err := env.Raw.Consumer(env.Ctx, "permission_prompts", "tg")
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
