package bus

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// After several failed tries over some time, a connection changes to another server. Each further change
// takes a longer wait.
func TestAConnectionChangesServersAfterRepeatedFailures(t *testing.T) {
	t.Parallel()
	var h health
	now := time.Now()
	at := func(d time.Duration) bool { return h.unserved(attempt{began: now.Add(d)}, now.Add(d)) }
	require.False(t, at(0))
	require.False(t, at(failedFor-1), "not for long enough")
	require.True(t, at(failedFor))
	require.False(t, at(failedFor+1), "counted anew")
	require.False(t, at(failedFor+switchMin-1), "too soon again")
	require.True(t, at(failedFor+switchMin))
	require.False(t, at(failedFor+2*switchMin))
	require.True(t, at(failedFor+3*switchMin))

	h.served()
	later := failedFor + 10*switchMax
	require.False(t, at(later), "an earlier failure counts no more")
	h.served()
	require.False(t, at(later+failedFor))
	another := attempt{began: now, server: 1}
	require.False(t, h.unserved(another, now.Add(later+2*failedFor)), "a failure on another server counts no more")
}

func TestErrorsThatCountAsUnserved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err              error
		took             time.Duration
		unserved, served bool
	}{
		{nil, 0, false, true},
		{context.DeadlineExceeded, pulseWithin, true, false},
		{context.DeadlineExceeded, time.Second, false, false}, // the caller's own time limit ended this try
		{nats.ErrNoResponders, 0, true, false},
		{schemas.Errorf(schemas.CodeUnavailable, "ask again"), 0, true, true},
		{schemas.Errorf(schemas.CodeNotFound, "there is none"), 0, false, true},
		{context.Canceled, hopTimeout, false, false},
		{errors.New("anything else"), 0, false, false},
	} {
		require.Equal(t, c.unserved, isUnserved(c.err, c.took), "%v", c.err)
		require.Equal(t, c.served, isServed(c.err), "%v", c.err)
	}
}
