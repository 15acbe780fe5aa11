package connector

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A viewer that missed messages during a fault reads the pending requests soon after the fault,
// even if snapshots were slow or failed. The longer the list of pending requests, the less
// often the viewer reads it.
func TestAViewerReadsPendingRequestsSoonAfterAFault(t *testing.T) {
	t.Parallel()
	require.Zero(t, untilSnapshot(0, errors.New("no server leads")))
	require.Equal(t, 8*time.Second, untilSnapshot(0, nil))
	require.LessOrEqual(t, untilSnapshot(500, nil), 10*time.Second)
	require.Equal(t, 408*time.Second, untilSnapshot(100_000, nil))
}
