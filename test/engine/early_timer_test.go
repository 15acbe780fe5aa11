package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// A slow engine stores a question's record only after the question's timer has fired. Another engine handles
// the fired timer and finds no record. The question still times out.
func TestAQuestionTimesOutIfItsTimerFiresBeforeItIsStored(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, rig.OverTheNetwork, func(s *rig.Setup) { s.Engines = 0 })
	wire := env.Wire()
	wire.LoseAll("MSG.NEXT.KV_pending_permissions.nod-clock") // this engine gets no fired timers, so another engine must handle the question's timer
	slow := env.Dial(roles.ID{Role: roles.EngineStore}, wire.URL)
	env.Wires = append(env.Wires, slow.Close)
	n := env.Engine(engine.Options{Store: slow})
	_, err := n.ApplySettings(env.Ctx, rig.Apart(rig.Everybody), "test")
	env.NoError(err)

	ada := env.Agent("ada")
	locked := wire.HoldOn("HPUB nod.v1.timer.S.")
	decided := make(chan schemas.Decision, 1)
	go func() {
		defer close(decided)
		r := rig.Permission("S", "1", "to fetch", "@network")
		r.TimeoutSeconds = 1
		asked, err := ada.Asker.Submit(env.Ctx, r) // on a busy machine the reply is already the decision
		if !assert.NoError(t, err) {
			return
		}
		d, err := asked.Await(env.Ctx)
		if assert.NoError(t, err) {
			decided <- d
		}
	}()
	<-locked
	env.Engine(engine.Options{})
	env.Soon("the timer has fired, and was handled", func() bool {
		due, err := env.Raw.Consumer(env.Ctx, "KV_pending_permissions", "nod-clock")
		return err == nil && due.CachedInfo().AckFloor.Consumer > 0 && due.CachedInfo().NumAckPending == 0
	})
	wire.Release()
	env.Equal(schemas.TimedOut, (<-decided).Outcome)
}
