package connector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// A worker tries to show a question until the question's deadline. It tries to show an outcome for
// as long as the queue keeps the outcome.
func TestAnOutcomeOutlivesALongOutage(t *testing.T) {
	t.Parallel()
	p := schemas.Prompt{Deadline: time.Now().Add(time.Hour)}
	require.Equal(t, p.Deadline, retryUntil(&p))
	p.Decision = &schemas.Decision{Outcome: schemas.Allowed}
	require.Equal(t, p.Deadline.Add(bus.PromptGrace), retryUntil(&p))
	var wait time.Duration
	for times := range uint64(25) { // 25 failures and the pauses after them take a quarter of an hour
		wait += backoff(nil, times+1)
	}
	require.True(t, time.Now().Add(wait).Before(retryUntil(&p)))
}

// The worker's pause is never shorter than the pause that the channel asks for, and at most a
// quarter longer.
func TestPausesDiffer(t *testing.T) {
	t.Parallel()
	for wait, most := range map[time.Duration]time.Duration{0: 0, retryMin: retryMin / 4, time.Hour: maxJitter} {
		seen := map[time.Duration]bool{}
		for range 100 {
			j := jitter(wait)
			require.True(t, j >= 0 && j <= most, "%v after %v", j, wait)
			seen[j] = true
		}
		require.Equal(t, wait > 0, len(seen) > 1, wait)
	}
}
