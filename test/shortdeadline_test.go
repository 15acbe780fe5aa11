package test

import (
	"testing"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// A question's timer fires before its record is stored, because the store is slow.
// Another engine handles the timer and finds no record; the question still times out.
func TestATimerThatFiresBeforeItsRecordIsStored(t *testing.T) {
	t.Parallel()
	env := start(t, func(s *setup) { s.engines = 0 })
	wire := env.wire()
	wire.loseAll("MSG.NEXT.KV_pending_permissions.nod-clock") // another engine gets the timer
	slow := env.dial(roles.ID{Role: roles.EngineStore}, wire.url)
	env.wires = append(env.wires, slow.Close)
	n := env.engine(engine.Options{Store: slow})
	_, err := n.ApplySettings(env.ctx, apart(everybody), "test")
	env.NoError(err)

	ada := env.Agent("ada")
	locked := wire.holdOn("HPUB nod.v1.timer.S.")
	asked := make(chan *question, 1)
	go func() {
		r := permission("S", "1", "to fetch", "@network")
		r.TimeoutSeconds = 1
		asked <- ada.Asks(r)
	}()
	<-locked
	env.engine(engine.Options{})
	env.soon("the timer has fired, and was handled", func() bool {
		due, err := env.raw.Consumer(env.ctx, "KV_pending_permissions", "nod-clock")
		return err == nil && due.CachedInfo().AckFloor.Consumer > 0 && due.CachedInfo().NumAckPending == 0
	})
	wire.release()
	q := <-asked
	q.Ends(schemas.TimedOut)
}
