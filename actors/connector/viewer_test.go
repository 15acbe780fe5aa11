package connector

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever missed views during a fault sees them soon after it, although readings were
// slow or failed meanwhile; a long list is not read all the time.
func TestPendingRequestsAreReadAgainSoon(t *testing.T) {
	require.Zero(t, untilSnapshot(0, errors.New("no server leads")))
	require.Equal(t, 8*time.Second, untilSnapshot(0, nil))
	require.LessOrEqual(t, untilSnapshot(500, nil), 10*time.Second)
	require.Equal(t, 408*time.Second, untilSnapshot(100_000, nil))
}
