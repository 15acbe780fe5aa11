package golden

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// The test of a transcript fails if nod gets a message that is not in the transcript.
func TestWhatNoLinePlaysIsSeen(t *testing.T) {
	nod := NewNod()
	assert.Empty(t, nod.unplayed())

	require.NoError(t, nod.HostResolved(t.Context(), schemas.HostResolved{PendingID: "p1"}))
	passed := nod.unplayed()
	require.Len(t, passed, 1)
	assert.Contains(t, passed[0], `HostResolved: {`)

	require.NoError(t, nod.Withdraw(t.Context(), "s1", "p1", "no longer needed"))
	assert.Equal(t, []string{"withdrawal: no longer needed"}, nod.unplayed())

	ctx, stop := context.WithCancel(t.Context())
	stop()
	ask := func() { // Ask returns at once, because the context has ended
		_, err := nod.Ask(ctx, schemas.Request{SessionID: "s1", PendingID: "p1", CreatedAt: time.Now()})
		require.Error(t, err)
	}
	ask()
	assert.Equal(t, []string{"request: p1"}, nod.unplayed())

	ask()
	nod.open = append(nod.open, <-nod.asks)
	assert.Equal(t, []string{"pending: p1"}, nod.unplayed())
	require.NoError(t, nod.Withdraw(t.Context(), "s1", "p1", "no longer needed"))
	nod.playLine(t, "> withdrawn", "no longer needed")
	assert.Empty(t, nod.unplayed(), "a withdrawn request is not pending")
}
