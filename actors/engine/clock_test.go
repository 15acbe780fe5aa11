package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
)

// broker simulates a broker whose clock is ahead of this machine's clock. The test can set both
// clocks.
type broker struct {
	*require.Assertions
	clock
	ahead time.Duration // how far the broker's clock is ahead of this machine's clock
	set   time.Duration // how far the test has moved this machine's clock
	reads int
	away  error
}

func newBroker(t *testing.T) *broker {
	b := &broker{Assertions: require.New(t), ahead: 3 * time.Hour}
	b.clock.wall = func() time.Time { return time.Now().Round(0).Add(b.set) }
	b.clock.read = func(context.Context) (bus.Reading, error) {
		b.reads++
		now := time.Now()
		return bus.Reading{Broker: now.Round(0).Add(b.ahead), At: now, Err: time.Millisecond}, b.away
	}
	b.NoError(b.clock.set(t.Context()))
	b.reads = 0
	return b
}

// is asserts that the clock returns the broker's time, to the minute. This is exact enough, because
// each test takes less than a minute and moves the clocks by more than a minute.
func (b *broker) is() {
	b.WithinDuration(time.Now().Add(b.ahead), b.now(), time.Minute)
}

func (b *broker) late(ctx context.Context, left time.Duration) bool {
	late, err := b.clock.late(ctx, time.Now().Add(b.ahead+left))
	b.NoError(err)
	return late
}

func TestSettingTheClockChangesNothing(t *testing.T) {
	for _, step := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		b := newBroker(t)
		b.is()
		b.set = step
		b.is()
		b.False(b.late(t.Context(), 5*time.Minute))
		b.True(b.late(t.Context(), -5*time.Minute))
		b.NotZero(b.reads, "the broker is asked: it may be that the machine has slept")
		b.is()
	}
}

// A deadline passes while the engine's machine sleeps. Meanwhile the machine's monotonic clock stops,
// and the broker's clock continues.
func TestADeadlineThatPassedDuringASleepIsLate(t *testing.T) {
	b := newBroker(t)
	b.ahead += 8 * time.Hour
	b.set += 8 * time.Hour
	b.True(b.late(t.Context(), -time.Hour))
	b.is()
}

func TestTheBrokersClockIsReadNearADeadline(t *testing.T) {
	b := newBroker(t)
	b.False(b.late(t.Context(), time.Hour))
	b.Zero(b.reads, "it is sure")
	b.False(b.late(t.Context(), clockMargin/2))
	b.Equal(1, b.reads, "the deadline is near")
	b.True(b.late(t.Context(), -time.Hour))
	b.Equal(2, b.reads, "a refusal is made sure of")

	old := *b.last.Load()
	old.At, old.wall, old.Broker = old.At.Add(-clockOld), old.wall.Add(-clockOld), old.Broker.Add(-clockOld)
	b.last.Store(&old)
	b.False(b.late(t.Context(), time.Hour))
	b.Equal(3, b.reads, "the reading is old")

	b.away = errors.New("away")
	b.False(b.late(t.Context(), time.Hour))
	_, err := b.clock.late(t.Context(), time.Now())
	b.ErrorIs(err, b.away, "nothing is refused by a reading that is doubted")
}

func TestMorePreciseReadingsOfTheBrokersClockAreKept(t *testing.T) {
	b := newBroker(t)
	start := time.Now()
	off := 40 * time.Millisecond
	b.clock.read = func(context.Context) (bus.Reading, error) {
		now := time.Now()
		return bus.Reading{Broker: now.Round(0).Add(b.ahead + off), At: now, Err: 50 * time.Millisecond}, nil
	}
	b.NoError(b.clock.set(t.Context()))
	b.Less(b.now().Sub(time.Now().Round(0).Add(b.ahead)).Abs(), off/2)
	b.Less(b.last.Load().err(), 2*time.Millisecond+time.Since(start)/clockDrift)
	off = time.Hour
	b.NoError(b.clock.set(t.Context()))
	b.ahead += off
	b.is()
}
