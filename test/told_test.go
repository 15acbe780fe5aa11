package test

import (
	"testing"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// A connector that did not hear whether its answer counted sends it again, after a
// freeze. It gets the decision that the answer made, not a refusal.
func TestAnAnswerThatCountedIsNotRefusedByAFreeze(t *testing.T) {
	t.Parallel()
	env := start(t)
	q := env.Agent("ada").Asks(deploy("S", "1"))
	counted := env.Ann().Allows(q)
	_, err := env.Bob().Freeze(env.ctx, schemas.FreezeRequest{From: schemas.From{UserID: "bob"}})
	env.NoError(err)
	told, err := env.Ann().Says(q, "allow_once")
	env.NoError(err)
	env.Equal(counted.DecisionID, told.DecisionID)
	q.Ends(schemas.Allowed)
}

// A list request without an answer, as during a change of leader, is sent again.
func TestAListThatIsLostIsAskedForAgain(t *testing.T) {
	t.Parallel()
	env := start(t)
	env.Agent("ada").Asks(deploy("S", "1"))
	w := env.wire()
	conn := env.dial(roles.ID{Role: roles.EngineStore}, w.url)
	env.wires = append(env.wires, conn.Close)
	store, err := bus.OpenStore(env.ctx, conn, 1)
	env.NoError(err)
	w.lose(".STREAM.INFO.")
	keys, err := store.Records.Named(env.ctx, "1")
	env.NoError(err)
	env.True(w.hasLost())
	env.Equal([]string{"S.1"}, keys)
}
