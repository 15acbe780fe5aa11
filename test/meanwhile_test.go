package test

import (
	"testing"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// meanwhile starts act and waits until env's only engine has read the question under
// key. It then stores a decision of that question, as another engine would, so that
// the first engine goes on with an outdated record.
func (e *env) meanwhile(wire *wire, key string, outcome schemas.Outcome, option string, act func()) schemas.Decision {
	e.t.Helper()
	heard := wire.holdOn("KV_pending_permissions.$KV.pending_permissions." + key + " ")
	done := make(chan struct{})
	go func() { defer close(done); act() }()
	<-heard
	entry := e.stored(key)
	session, id := schemas.SplitKey(key)
	d := schemas.Decision{
		Type: schemas.TypeDecision, SessionID: session, PendingID: id, DecisionID: bus.NewID(), Outcome: outcome, Digest: entry.Record.Digest,
		OptionID: option, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "terminal"}, DecidedAt: entry.Record.Deadline.Add(-1),
	}
	entry.Record.Decision, entry.Record.NextEvent = &d, nil
	_, err := e.store.Records.Decide(e.ctx, entry)
	e.NoError(err)
	wire.release()
	<-done
	return d
}

// startWired starts an env whose only engine reaches the stores through the wire.
func startWired(t *testing.T) (*env, *wire) {
	t.Helper()
	env := start(t, func(s *setup) { s.engines = 0 })
	wire := env.wire()
	store := env.dial(roles.ID{Role: roles.EngineStore}, wire.url)
	n := env.engine(engine.Options{Store: store})
	n.close = append(n.close, store.Close)
	_, err := n.ApplySettings(env.ctx, apart(fewer), "test")
	env.NoError(err)
	return env, wire
}

// A question is decided while a detached call asks again: the call gets the decision.
func TestAskingAgainWhileItIsDecidedHearsTheDecision(t *testing.T) {
	t.Parallel()
	env, wire := startWired(t)
	ada := env.Agent("ada")
	ada.Asks(deploy("S", "first"))
	ada.detaches(deploy("S", "second"))
	env.soon("the outbox is idle", env.outboxIdle)
	var reply bus.Reply
	var err error
	d := env.meanwhile(wire, "S.first", schemas.Denied, "reject_once", func() { reply, err = ada.Sends(deploy("S", "second"), true) })
	env.NoError(err)
	var heard schemas.Decision
	env.NoError(reply.Into(&heard))
	env.Equal(d.DecisionID, heard.DecisionID)
	env.Equal("second", heard.PendingID)
}

// A call is allowed while its agent detaches: the next identical call may run instead.
func TestACallThatIsAllowedWhileItsAskerGoesIsNotLost(t *testing.T) {
	t.Parallel()
	env, wire := startWired(t)
	ada := env.Agent("ada")
	ada.Asks(deploy("S", "first"))
	env.soon("the outbox is idle", env.outboxIdle)
	var err error
	env.meanwhile(wire, "S.first", schemas.Allowed, "allow_once", func() { err = ada.asker.Detach(env.ctx, "S", "first", "the host waits no longer") })
	env.NoError(err)
	env.Equal("approval of first by Ann", ada.Gets(deploy("S", "second")).By.Name)
	ada.Asks(deploy("S", "third"))
}
