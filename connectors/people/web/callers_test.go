package web

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// At most maxCallers callers have separate rate limits; all others share one. To make space for a new
// caller, the server drops the rate limit of an idle caller.
func TestRememberedCallersAreBounded(t *testing.T) {
	t.Parallel()
	l := newLimits(1e-6, 1)
	for i := range maxCallers {
		require.True(t, l.allow(strconv.Itoa(i)))
	}
	require.True(t, l.allow("one more"))
	require.False(t, l.allow("and another"))
	require.False(t, l.allow("0"))
	require.Len(t, l.callers, maxCallers)

	l.callers["0"].SetLimit(1e9)
	require.True(t, l.allow("one that comes later"))
	require.Len(t, l.callers, maxCallers)
}
