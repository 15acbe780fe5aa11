package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

func TestAFreezeIsObeyedOnceEarlierRequestsHaveTheirReply(t *testing.T) {
	var b freezeState
	at := func(revision uint64) {
		cacheReading(&b.watchedCache, frozenKey, reading[schemas.FreezeState]{schemas.FreezeState{Revision: revision}, revision, time.Now()})
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
