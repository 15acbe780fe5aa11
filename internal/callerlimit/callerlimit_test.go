package callerlimit

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Only a given number of callers have separate rate limits; all others share one limit. To make space
// for a new caller, Allow drops the rate limit of an idle caller.
func TestRememberedCallersAreBounded(t *testing.T) {
	t.Parallel()
	const maxCallers = 4096
	l := New(1e-6, 1, maxCallers)
	for i := range maxCallers {
		require.True(t, l.Allow(strconv.Itoa(i)))
	}
	require.True(t, l.Allow("one more"))
	require.False(t, l.Allow("and another"))
	require.False(t, l.Allow("0"))
	require.Len(t, l.callers, maxCallers)

	l.callers["0"].SetLimit(1e9)
	require.True(t, l.Allow("one that comes later"))
	require.Len(t, l.callers, maxCallers)
}
