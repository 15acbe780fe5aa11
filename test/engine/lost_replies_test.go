package engine

import (
	"testing"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// A connector gets no reply to its answer, and repeats the answer after a freeze. The reply to the
// repeated answer is the stored decision, and not a refusal.
func TestARepeatedAnswerIsNotRefusedByAFreeze(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	counted := env.Ann().Allows(q)
	_, err := env.Bob().Freeze(env.Ctx, schemas.FreezeRequest{From: schemas.From{UserID: "bob"}})
	env.NoError(err)
	told, err := env.Ann().Says(q, "allow_once")
	env.NoError(err)
	env.Equal(counted.DecisionID, told.DecisionID)
	q.Ends(schemas.Allowed)
}

// If a list request gets no reply, for example because the leader changes, the client sends the
// request again.
func TestALostListRequestIsSentAgain(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, rig.OverTheNetwork)
	env.Agent("ada").Asks(rig.Deploy("S", "1"))
	w := env.Wire()
	conn := env.Dial(roles.ID{Role: roles.EngineStore}, w.URL)
	env.Wires = append(env.Wires, conn.Close)
	store, err := bus.OpenStore(env.Ctx, conn, 1)
	env.NoError(err)
	w.Lose(".STREAM.INFO.")
	keys, err := store.Records.Named(env.Ctx, "1")
	env.NoError(err)
	env.True(w.HasLost())
	env.Equal([]string{"S.1"}, keys)
}
