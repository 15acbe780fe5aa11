package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// While a request waits, the clock of the engine's machine is set ten minutes ahead or back.
// Answers before the deadline count, because deadlines follow the broker's clock.
func TestAnAnswerInTimeCountsWhateverTheClockIsSetTo(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		var set atomic.Int64
		env := rig.Start(t, func(s *rig.Setup) {
			s.Engine.Wall = func() time.Time { return time.Now().Round(0).Add(time.Duration(set.Load())) }
		})
		env.Timeout("S", time.Minute)
		ada := env.Agent("ada")
		before := ada.Asks(rig.Deploy("S", "before"))
		set.Store(int64(step))
		env.Equal(schemas.Allowed, env.Ann().Allows(before).Outcome)
		before.Ends(schemas.Allowed)

		after := ada.Asks(rig.Deploy("S", "after"))
		env.WithinDuration(time.Now().Add(time.Minute), env.Stored(after.Key).Record.Deadline, time.Minute)
		env.Ann().Allows(after)
		after.Ends(schemas.Allowed)
	}
}
