package people

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// A stalled engine takes changes from the outbox and queues their prompts, but acknowledges no
// change. Another engine then handles these changes: agents and viewers get every decision, and the
// carrier and the log get each version once.
func TestAStalledOutboxIsTakenOver(t *testing.T) {
	t.Parallel()
	o := engine.Options{AckWait: time.Second}
	env := rig.Start(t, func(s *rig.Setup) { s.Settings, s.Engine = rig.WithCarrier, o })
	shown, seen := env.Carrier(), env.Viewer()
	var mu sync.Mutex
	held := map[string]int{} // for each record, the number of unacknowledged changes
	stuck, err := bus.OpenStore(env.Ctx, env.Conn(roles.ID{Role: roles.EngineStore}), 1)
	env.NoError(err)
	queue, err := stuck.Records.Outbox(env.Ctx, o.AckWait)
	env.NoError(err)
	prompts, err := bus.OpenPrompts(env.Ctx, env.Conn(roles.ID{Role: roles.EngineStore}), 1)
	env.NoError(err)
	stop, err := queue.Consume(func(d *bus.Delivery) {
		entry, err := stuck.Records.Entry(d)
		if err != nil || !entry.Record.Terminal() {
			return
		}
		if err := prompts.Send(env.Ctx, promptOf(t, entry)); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		held[entry.Key]++
	})
	env.NoError(err)
	var questions []*rig.Question
	for {
		q := env.Agent("ada").Asks(rig.Deploy("S", ""))
		env.Ann().Allows(q)
		questions = append(questions, q)
		mu.Lock()
		enough := len(held) >= 5
		mu.Unlock()
		if enough {
			break
		}
	}
	stop() // the engine ends as if it was killed
	for _, q := range questions {
		now := env.Stored(q.Key)
		env.Soon("viewers see how "+q.Key+" ended", func() bool { return seen.Times(q.Key, now.Revision) > 0 })
		env.Soon("the carrier is sent the decision", func() bool { return shown.Times(q.Key, now.Revision) > 0 })
		env.Equal(*now.Record.Decision, q.Hears())
	}
	env.Soon("the outbox is idle", env.OutboxIdle)
	log := env.Logged(schemas.LogDecided)
	for _, q := range questions {
		env.Equal(1, shown.Times(q.Key, env.Stored(q.Key).Revision), "a prompt was queued twice")
		env.Equal(1, log[q.Key], "logged twice")
	}
}

// promptOf returns the prompt that Ann gets on tg about a record.
func promptOf(t *testing.T, e bus.Entry) schemas.Prompt {
	t.Helper()
	p := schemas.Prompt{
		Type: schemas.TypePrompt, Connector: "tg", Recipient: "1001", Revision: e.Revision, Agent: e.Record.Agent,
		Digest: e.Record.Digest, Risk: e.Record.Risk, Tier: e.Record.Tier, Deadline: e.Record.Deadline, Decision: e.Record.Decision,
	}
	if err := json.Unmarshal(e.Record.Request, &p.Request); err != nil {
		t.Error(err)
	}
	p.SessionID, p.PendingID = p.Request.SessionID, p.Request.PendingID
	return p
}

func TestTheOutboxPublishesUnpublishedDecisions(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	again := env.AskedAgain()
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	env.Soon("the outbox is idle", env.OutboxIdle)
	// The engine dies between the store of the decision and its publication. The agent still gets the
	// decision.
	entry := env.Stored("S.1")
	entry.Record.NextEvent = nil
	entry.Record.Decision = &schemas.Decision{
		Type: schemas.TypeDecision, SessionID: "S", PendingID: "1", DecisionID: "d1", Outcome: schemas.Denied,
		OptionID: "reject_once", OptionKind: schemas.RejectOnce, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "terminal"},
		Digest: entry.Record.Digest, DecidedAt: time.Now().UTC(),
	}
	_, err := env.Store.Records.Decide(env.Ctx, entry)
	env.NoError(err)
	env.Equal("d1", q.Ends(schemas.Denied).DecisionID)
	env.Zero(again(), "the agent got the decision only by asking again, much later")
	_, err = env.Ann().Says(q, "allow_once")
	env.Equal("d1", env.Refusal(err, schemas.CodeConflict).Decision().DecisionID)
	_, err = env.Store.Records.Decide(env.Ctx, entry) // the engine repeats the write, as a client does without an acknowledgement
	env.True(err == nil || errors.Is(err, bus.ErrMoved))
	env.Equal("d1", env.Stored("S.1").Record.Decision.DecisionID)
}

// The prompts' queue is lost, as after a hard kill of its server. The engine's sweep queues each
// prompt again that was not shown, or whose worker died while showing it.
func TestTheSweepQueuesPromptsThatWereNotShown(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = rig.WithCarrier })
	env.Registers("tg", "w1", false)
	ada := env.Agent("ada")
	lost, there := ada.Asks(rig.Deploy("S", "lost")), ada.Asks(rig.Deploy("S", "shown"))
	dead, claimed := ada.Asks(rig.Deploy("S", "dead")), ada.Asks(rig.Deploy("S", "claimed"))
	env.Soon("the outbox is idle", env.OutboxIdle)
	var s schemas.Shown
	env.NoError(env.Conn(roles.ConnectorID("tg")).CallInto(env.Ctx, schemas.ShownSubject("tg"), schemas.Shown{
		Type: schemas.TypeShown, Op: schemas.ShownSet, Recipient: "1001", SessionID: "S", PendingID: "shown", Ref: "m1", Revision: there.Receipt.Revision,
	}, &s))
	for id, until := range map[string]time.Time{"dead": time.Now().Add(-time.Second), "claimed": time.Now().Add(time.Hour)} {
		_, err := env.Store.Shown.Put(env.Ctx, "tg."+schemas.SubjectToken("1001")+".S."+id, schemas.Shown{
			Type: schemas.TypeShown, Op: schemas.ShownSet, Recipient: "1001", SessionID: "S", PendingID: id,
			Claim: &schemas.Claim{Worker: "w0", Try: "t", Until: until.UTC()},
		}, 0, 0)
		env.NoError(err)
	}
	env.NoError(env.Raw.DeleteStream(env.Ctx, "permission_prompts"))

	env.Engine(engine.Options{})
	shown := env.Carrier()
	env.Soon("the lost prompt is there", func() bool { return shown.Times(lost.Key, lost.Receipt.Revision) == 1 })
	env.Soon("the prompt whose worker died is there", func() bool { return shown.Times(dead.Key, dead.Receipt.Revision) == 1 })
	env.Zero(shown.Times(there.Key, there.Receipt.Revision))
	env.Zero(shown.Times(claimed.Key, claimed.Receipt.Revision), "a worker is about to show it")
}
