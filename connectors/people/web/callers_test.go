package web

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// At most maxCallers callers have a rate limit of their own; further callers share one rate
// limit. A caller that has been idle is forgotten to make room for a new one.
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
