package engine

import (
	"testing"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The function meanwhile simulates a decision by a second engine. It starts the function act and waits until
// the only engine has read the record with the given key. Then it stores a decision in the record, so that
// the engine continues with an outdated record. It returns the decision once act has returned.
func meanwhile(e *rig.Env, wire *rig.Wire, key string, outcome schemas.Outcome, option string, act func()) schemas.Decision {
	e.T.Helper()
	heard := wire.HoldOn("KV_pending_permissions.$KV.pending_permissions." + key + " ")
	done := make(chan struct{})
	go func() { defer close(done); act() }()
	<-heard
	entry := e.Stored(key)
	session, id := schemas.SplitKey(key)
	d := schemas.Decision{
		Type: schemas.TypeDecision, SessionID: session, PendingID: id, DecisionID: bus.NewID(), Outcome: outcome, Digest: entry.Record.Digest,
		OptionID: option, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "terminal"}, DecidedAt: entry.Record.Deadline.Add(-1),
	}
	entry.Record.Decision, entry.Record.NextEvent = &d, nil
	_, err := e.Store.Records.Decide(e.Ctx, entry)
	e.NoError(err)
	wire.Release()
	<-done
	return d
}

// startWired starts an env with one engine. The engine reaches the stores through the returned
// wire, which can delay and cut the connection.
func startWired(t *testing.T) (*rig.Env, *rig.Wire) {
	t.Helper()
	env := rig.Start(t, rig.OverTheNetwork, func(s *rig.Setup) { s.Engines = 0 })
	wire := env.Wire()
	store := env.Dial(roles.ID{Role: roles.EngineStore}, wire.URL)
	n := env.Engine(engine.Options{Store: store})
	n.Close = append(n.Close, store.Close)
	_, err := n.ApplySettings(env.Ctx, rig.Apart(fewer), "test")
	env.NoError(err)
	return env, wire
}

// A question is decided at the moment when the agent of a detached call asks again. The agent gets
// the decision.
func TestAskingAgainDuringADecisionReturnsIt(t *testing.T) {
	t.Parallel()
	env, wire := startWired(t)
	ada := env.Agent("ada")
	ada.Asks(rig.Deploy("S", "first"))
	ada.Detaches(rig.Deploy("S", "second"))
	env.Soon("the outbox is idle", env.OutboxIdle)
	var reply bus.Reply
	var err error
	d := meanwhile(env, wire, "S.first", schemas.Denied, "reject_once", func() { reply, err = ada.Sends(rig.Deploy("S", "second"), true) })
	env.NoError(err)
	var heard schemas.Decision
	env.NoError(reply.Into(&heard))
	env.Equal(d.DecisionID, heard.DecisionID)
	env.Equal("second", heard.PendingID)
}

// A person allows a call while its agent detaches the call. The allow leaves an approval, which lets the next
// identical call run once.
func TestAnAllowDuringADetachLeavesAnApproval(t *testing.T) {
	t.Parallel()
	env, wire := startWired(t)
	ada := env.Agent("ada")
	ada.Asks(rig.Deploy("S", "first"))
	env.Soon("the outbox is idle", env.OutboxIdle)
	var err error
	meanwhile(env, wire, "S.first", schemas.Allowed, "allow_once", func() { err = ada.Asker.Detach(env.Ctx, "S", "first", "the host waits no longer") })
	env.NoError(err)
	env.Equal("approval of first by Ann", ada.Gets(rig.Deploy("S", "second")).By.Name)
	ada.Asks(rig.Deploy("S", "third"))
}
