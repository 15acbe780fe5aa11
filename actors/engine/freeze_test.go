package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// An engine says that it obeys a freeze when nothing is on its way any more that
// was judged before it heard.
func TestAFreezeIsObeyedWhenWhatWasJudgedBeforeIsOver(t *testing.T) {
	var b freezeState
	at := func(revision uint64) {
		b.current.Store(&freezeSnapshot{FreezeState: schemas.FreezeState{Revision: revision}})
	}
	at(1)
	_, first := b.enter()
	_, second := b.enter()
	at(2)
	require.EqualValues(t, 1, b.obeyed())
	now, third := b.enter()
	require.EqualValues(t, 2, now.Revision)
	first()
	require.EqualValues(t, 1, b.obeyed())
	second()
	require.EqualValues(t, 2, b.obeyed())
	at(3)
	require.EqualValues(t, 2, b.obeyed())
	third()
	require.EqualValues(t, 3, b.obeyed())
}
