package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// ledger counts the messages about each version of each record.
type ledger struct {
	mu    sync.Mutex
	heard map[string]int // <key>@<revision>
}

func (l *ledger) add(p schemas.Prompt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.heard == nil {
		l.heard = map[string]int{}
	}
	l.heard[fmt.Sprintf("%s@%d", p.Key(), p.Revision)]++
}

func (l *ledger) times(key string, revision uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard[fmt.Sprintf("%s@%d", key, revision)]
}

// withCarrier is everybody, with Ann also on the carrier tg.
var withCarrier = strings.Replace(everybody, `"user_id": "ann"}`, `"user_id": "ann"}, {"connector": "tg", "user_id": "1001"}`, 1)

// carrier takes all prompts of tg from the queue and counts Ann's.
func (e *env) carrier() *ledger {
	e.t.Helper()
	var shown ledger
	e.registers("tg", "carrier", false)
	queue, err := e.conn(roles.ConnectorID("tg")).PromptQueue(e.ctx, "tg")
	e.NoError(err)
	stop, err := queue.Consume(func(d *bus.Delivery) {
		var p schemas.Prompt
		if schemas.Decode(d.Data, &p) == nil && p.Recipient == "1001" {
			shown.add(p)
		}
		d.Done()
	})
	e.NoError(err)
	e.wires = append(e.wires, stop)
	return &shown
}

// viewer counts all view messages.
func (e *env) viewer() *ledger {
	e.t.Helper()
	var seen ledger
	_, err := e.conn(roles.ConnectorID("terminal")).Subscribe("nod.v1.view.>", func(m bus.Message) {
		var p schemas.Prompt
		if schemas.Decode(m.Data, &p) == nil {
			seen.add(p)
		}
	})
	e.NoError(err)
	e.NoError(e.conn(roles.ConnectorID("terminal")).Flush(e.ctx))
	return &seen
}

// logged counts the log entries of one kind, by request.
func (e *env) logged(kind schemas.LogKind) map[string]int {
	e.t.Helper()
	stream, err := e.raw.Stream(e.ctx, "permission_log")
	e.NoError(err)
	entries := map[string]int{}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		entry, err := e.store.Log.Read(e.ctx, seq)
		e.NoError(err)
		if entry.Kind == kind {
			entries[schemas.Key(entry.SessionID, entry.PendingID)]++
		}
	}
	return entries
}

// An engine takes changes from the outbox, queues their prompts and hangs for longer
// than the broker waits. Another engine gets the changes: agents and viewers hear of
// every decision; the carrier and the log get each version once.
func TestAStalledOutboxIsTakenOver(t *testing.T) {
	t.Parallel()
	o := engine.Options{AckWait: time.Second}
	env := start(t, func(s *setup) { s.settings, s.engine = withCarrier, o })
	shown, seen := env.carrier(), env.viewer()
	var mu sync.Mutex
	held := map[string]int{} // unacknowledged changes, by record
	stuck, err := bus.OpenStore(env.ctx, env.conn(roles.ID{Role: roles.EngineStore}), 1)
	env.NoError(err)
	queue, err := stuck.Records.Outbox(env.ctx, o.AckWait)
	env.NoError(err)
	prompts, err := bus.OpenPrompts(env.ctx, env.conn(roles.ID{Role: roles.EngineStore}), 1)
	env.NoError(err)
	stop, err := queue.Consume(func(d *bus.Delivery) {
		entry, err := stuck.Records.Entry(d)
		if err != nil || !entry.Record.Terminal() {
			return
		}
		if err := prompts.Send(env.ctx, promptOf(t, entry)); err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		held[entry.Key]++
	})
	env.NoError(err)
	var questions []*question
	for {
		q := env.Agent("ada").Asks(deploy("S", ""))
		env.Ann().Allows(q)
		questions = append(questions, q)
		mu.Lock()
		enough := len(held) >= 5
		mu.Unlock()
		if enough {
			break
		}
	}
	stop() // as if its process was killed
	for _, q := range questions {
		now := env.stored(q.Key)
		env.soon("viewers see how "+q.Key+" ended", func() bool { return seen.times(q.Key, now.Revision) > 0 })
		env.soon("the carrier is sent the decision", func() bool { return shown.times(q.Key, now.Revision) > 0 })
		env.Equal(*now.Record.Decision, q.Hears())
	}
	env.soon("the outbox is idle", env.outboxIdle)
	log := env.logged(schemas.LogDecided)
	for _, q := range questions {
		env.Equal(1, shown.times(q.Key, env.stored(q.Key).Revision), "a prompt was queued twice")
		env.Equal(1, log[q.Key], "logged twice")
	}
}

// promptOf is the prompt for Ann on tg about a record.
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

// The outbox sends the agent a decision that was stored but not published.
func TestTheOutboxTellsTheAgentToo(t *testing.T) {
	t.Parallel()
	env := start(t)
	again := env.askedAgain()
	q := env.Agent("ada").Asks(deploy("S", "1"))
	env.soon("the outbox is idle", env.outboxIdle)
	// The engine dies after it stored the decision and before it published it.
	entry := env.stored("S.1")
	entry.Record.NextEvent = nil
	entry.Record.Decision = &schemas.Decision{
		Type: schemas.TypeDecision, SessionID: "S", PendingID: "1", DecisionID: "d1", Outcome: schemas.Denied,
		OptionID: "reject_once", OptionKind: schemas.RejectOnce, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "terminal"},
		Digest: entry.Record.Digest, DecidedAt: time.Now().UTC(),
	}
	_, err := env.store.Records.Decide(env.ctx, entry)
	env.NoError(err)
	env.Equal("d1", q.Ends(schemas.Denied).DecisionID)
	env.Zero(again(), "the agent got the decision only by asking again, much later")
	_, err = env.Ann().Says(q, "allow_once")
	env.Equal("d1", env.refusal(err, schemas.CodeConflict).Decision().DecisionID)
	_, err = env.store.Records.Decide(env.ctx, entry) // the same write repeated, as after a lost acknowledgement
	env.True(err == nil || errors.Is(err, bus.ErrMoved))
	env.Equal("d1", env.stored("S.1").Record.Decision.DecisionID)
}

// If the prompt queue is lost, as after a hard kill, the sweep queues again the
// prompts that were not shown or whose worker died.
func TestTheSweepQueuesPromptsThatNobodyWasShown(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.settings = withCarrier })
	env.registers("tg", "w1", false)
	ada := env.Agent("ada")
	lost, there := ada.Asks(deploy("S", "lost")), ada.Asks(deploy("S", "shown"))
	dead, claimed := ada.Asks(deploy("S", "dead")), ada.Asks(deploy("S", "claimed"))
	env.soon("the outbox is idle", env.outboxIdle)
	var s schemas.Shown
	env.NoError(env.conn(roles.ConnectorID("tg")).CallInto(env.ctx, schemas.ShownSubject("tg"), schemas.Shown{
		Type: schemas.TypeShown, Op: schemas.ShownSet, Recipient: "1001", SessionID: "S", PendingID: "shown", Ref: "m1", Revision: there.Receipt.Revision,
	}, &s))
	for id, until := range map[string]time.Time{"dead": time.Now().Add(-time.Second), "claimed": time.Now().Add(time.Hour)} {
		_, err := env.store.Shown.Put(env.ctx, "tg."+schemas.Token("1001")+".S."+id, schemas.Shown{
			Type: schemas.TypeShown, Op: schemas.ShownSet, Recipient: "1001", SessionID: "S", PendingID: id,
			Claim: &schemas.Claim{Worker: "w0", Try: "t", Until: until.UTC()},
		}, 0, 0)
		env.NoError(err)
	}
	env.NoError(env.raw.DeleteStream(env.ctx, "permission_prompts"))

	env.engine(engine.Options{})
	shown := env.carrier()
	env.soon("the lost prompt is there", func() bool { return shown.times(lost.Key, lost.Receipt.Revision) == 1 })
	env.soon("the prompt whose worker died is there", func() bool { return shown.times(dead.Key, dead.Receipt.Revision) == 1 })
	env.Zero(shown.times(there.Key, there.Receipt.Revision))
	env.Zero(shown.times(claimed.Key, claimed.Receipt.Revision), "a worker is about to show it")
}
