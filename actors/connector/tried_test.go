package connector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// However often its channel has failed, an outcome is shown for as long as anybody
// may press its question's buttons; a question is until its deadline.
func TestAnOutcomeOutlivesALongOutage(t *testing.T) {
	p := schemas.Prompt{Deadline: time.Now().Add(time.Hour)}
	require.Equal(t, p.Deadline, triedUntil(&p))
	p.Decision = &schemas.Decision{Outcome: schemas.Allowed}
	require.Equal(t, p.Deadline.Add(bus.PromptGrace), triedUntil(&p))
	var wait time.Duration
	for times := range uint64(25) { // a quarter of an hour of failures
		wait += backoff(nil, times+1)
	}
	require.True(t, time.Now().Add(wait).Before(triedUntil(&p)))
}
