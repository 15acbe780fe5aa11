package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nodbus/nod/bus"
)

const (
	// clockEvery is how often the broker's clock is read in the background.
	clockEvery = 5 * time.Second
	// clockOld is the age at which a reading is too old to decide about a deadline.
	clockOld = 3 * clockEvery
	// clockMargin is how near a deadline has to be for the broker's clock to be read again.
	clockMargin = time.Second
	// clockStep is how far this machine's clock and its monotonic clock may differ since a
	// reading. If they differ more, the clock was set or the machine has slept, and the
	// reading is in doubt.
	clockStep = 500 * time.Millisecond
	// clockDrift is the growth of a reading's error over time: a quartz is off by less
	// than one in ten thousand.
	clockDrift = 10_000
)

// clock tells the broker's time. Deadlines are in the broker's time, so that engines whose
// machines' clocks differ agree. It counts on from its last reading by this machine's
// monotonic clock, so that setting the machine's clock changes nothing.
type clock struct {
	read func(context.Context) (bus.Reading, error)
	wall func() time.Time // this machine's clock, which may be set at any time

	last atomic.Pointer[clockReading]
}

// clockReading is the last reading of the broker's clock.
type clockReading struct {
	bus.Reading
	wall time.Time // this machine's clock at the time of the reading
}

// err is the most that the clock may be off by now.
func (r *clockReading) err() time.Duration { return r.Err + time.Since(r.At)/clockDrift }

// now is the broker's time. It never fails; for a deadline use late.
func (c *clock) now() time.Time {
	last := c.last.Load()
	return last.Broker.Add(time.Since(last.At)).UTC()
}

// set reads the broker's clock. A reading that is less precise than the last one and
// agrees with it only confirms the last one.
func (c *clock) set(ctx context.Context) error {
	r, err := c.read(ctx)
	if err != nil {
		return err
	}
	next := &clockReading{Reading: r, wall: c.wall().Add(-time.Since(r.At))}
	if last := c.last.Load(); last != nil {
		off := last.Broker.Add(r.At.Sub(last.At)).Sub(r.Broker).Abs()
		if off <= last.err()+r.Err && last.err() < r.Err {
			next.Reading = bus.Reading{Broker: last.Broker.Add(r.At.Sub(last.At)), At: r.At, Err: last.err()}
		}
	}
	c.last.Store(next)
	return nil
}

// late reports whether a deadline has passed, in the broker's time. If it seems to have
// passed, is near, or the reading may not hold any more, late reads the broker's clock
// first.
func (c *clock) late(ctx context.Context, deadline time.Time) (bool, error) {
	if last := c.last.Load(); !c.holds(last) || c.now().Add(clockMargin+last.err()).After(deadline) {
		if err := c.set(ctx); err != nil {
			return false, err
		}
	}
	return !c.now().Before(deadline), nil
}

// holds reports whether a reading is recent, and this machine has neither slept nor had
// its clock set since.
func (c *clock) holds(r *clockReading) bool {
	since := time.Since(r.At)
	moved := c.wall().Round(0).Sub(r.wall.Round(0)) // Round(0) leaves out the monotonic clock
	return since < clockOld && (moved-since).Abs() < clockStep
}

// readClock is set in the background. If it fails, the last reading stays, and late reads
// the clock again before it decides about a deadline.
func (e *base) readClock(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, clockEvery)
	defer cancel()
	if err := e.clock.set(within); err != nil && ctx.Err() == nil {
		e.Log.Info("engine: the broker's clock was not read; the last reading stands", "error", err)
	}
}
