package connector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// Showing an outcome is tried for as long as its question's buttons may be pressed,
// however often the channel fails; showing a question is tried until its deadline.
func TestAnOutcomeOutlivesALongOutage(t *testing.T) {
	p := schemas.Prompt{Deadline: time.Now().Add(time.Hour)}
	require.Equal(t, p.Deadline, retryUntil(&p))
	p.Decision = &schemas.Decision{Outcome: schemas.Allowed}
	require.Equal(t, p.Deadline.Add(bus.PromptGrace), retryUntil(&p))
	var wait time.Duration
	for times := range uint64(25) { // a quarter of an hour of failures
		wait += backoff(nil, times+1)
	}
	require.True(t, time.Now().Add(wait).Before(retryUntil(&p)))
}
