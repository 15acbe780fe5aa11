package engine

import (
	"testing"
	"time"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// If a request is answered before its agent has received the receipt, the agent gets the
// decision without asking again.
func TestAnAnswerBeforeTheReceiptWasReadIsNotLost(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	again := env.AskedAgain()
	wire := env.Wire()
	conn := env.Dial(roles.AgentID("ada"), wire.URL)
	defer conn.Close()
	asker := bus.NewAsker(conn, "ada")
	defer asker.Close()

	heard := wire.HoldOn("PUB nod.v1.request.ada.S.1 ")
	submitted := make(chan *bus.OpenRequest, 1)
	go func() {
		defer close(submitted)
		q, err := asker.Submit(env.Ctx, rig.Deploy("S", "1"))
		if err != nil {
			t.Error(err)
			return
		}
		submitted <- q
	}()
	<-heard
	var pending []schemas.Prompt
	var err error
	env.Soon("the request is pending", func() bool {
		pending, err = env.Ann().Pending(env.Ctx, schemas.Query{})
		return err == nil && len(pending) == 1
	})
	env.Empty(submitted)
	d, err := env.Ann().Answer(env.Ctx, schemas.Answer{
		SessionID: "S", PendingID: "1", Digest: pending[0].Digest, OptionID: "allow_once", From: schemas.From{UserID: "ann"},
	})
	env.NoError(err)
	env.Soon("the outbox is idle", env.OutboxIdle)
	wire.Release()
	q := <-submitted
	env.NotNil(q)
	got, err := q.Await(env.Ctx)
	env.NoError(err)
	env.Equal(d, got)
	env.Zero(again(), "the agent got the decision only by asking again, much later")
}

// If the acknowledgement of a write is lost, the engine finds out whether the write was stored.
func TestAWriteWithALostAcknowledgementIsLookedUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		marker string
		fresh  schemas.Request
		act    func(*rig.Env, *rig.Question) (schemas.Decision, error)
	}{
		// The test sends the answer without the retries of a client, so the first reply must be the decision.
		"an answer": {"PUB $KV.pending_permissions.S.1 ", rig.Deploy("S", "1"), func(e *rig.Env, q *rig.Question) (d schemas.Decision, err error) {
			a := e.Ann().AnswerTo(q, "allow_once")
			a.Type = schemas.TypeAnswer
			data, err := schemas.Encode(a)
			e.NoError(err)
			reply, err := e.RawConn(roles.ConnectorID("terminal")).RequestWithContext(e.Ctx, schemas.AnswerSubject("terminal", "S", "1"), data)
			e.NoError(err)
			return d, schemas.Decode(reply.Data, &d)
		}},
		"an ask": {"PUB $KV.pending_permissions.S.2 ", rig.Deploy("S", "1"), func(e *rig.Env, _ *rig.Question) (schemas.Decision, error) {
			return e.Ann().Allows(e.Agent("ada").Asks(rig.Deploy("S", "2"))), nil
		}},
		"an automatic decision": {"PUB nod.v1.log.S ", rig.Deploy("S", "1"), func(e *rig.Env, _ *rig.Question) (schemas.Decision, error) {
			return e.Agent("ada").Gets(rig.Lookup("S", "2")), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := rig.Start(t, rig.OverTheNetwork, func(s *rig.Setup) { s.Engines = 0 })
			wire := env.Wire()
			store := env.Dial(roles.ID{Role: roles.EngineStore}, wire.URL)
			n := env.Engine(engine.Options{Store: store, AckWait: time.Second})
			n.Close = append(n.Close, store.Close)
			_, err := n.ApplySettings(env.Ctx, rig.Apart(rig.Everybody), "test")
			env.NoError(err)
			q := env.Agent("ada").Asks(c.fresh)
			env.Soon("the outbox is idle", env.OutboxIdle)
			before := writes(env)
			heard := wire.HoldOn(c.marker)
			go func() {
				<-heard
				for env.Ctx.Err() == nil && writes(env) == before { // the loop ends when the server has stored the write
				}
				wire.Cut()
			}()
			d, err := c.act(env, q)
			env.NoError(err)
			env.Equal(schemas.Allowed, d.Outcome)
			env.Soon("the outbox is idle", env.OutboxIdle)
			if entry, err := env.Store.Records.Get(env.Ctx, schemas.Key(d.SessionID, d.PendingID)); err == nil {
				env.Equal(d, *entry.Record.Decision)
			}
		})
	}
}

// writes counts all messages ever stored in the streams of the records and of the log.
func writes(e *rig.Env) (n uint64) {
	for _, name := range []string{"KV_pending_permissions", "permission_log"} {
		if stream, err := e.Raw.Stream(e.Ctx, name); err == nil {
			n += stream.CachedInfo().State.LastSeq
		}
	}
	return n
}
