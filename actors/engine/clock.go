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
	// clockMargin is how far ahead a deadline must be to be compared without reading the
	// broker's clock again.
	clockMargin = time.Second
	// clockStep is how far this machine's clock and its monotonic clock may drift apart
	// after a reading. If they differ more, the clock was set or the machine has slept,
	// and the reading is no longer used for deadlines.
	clockStep = 500 * time.Millisecond
	// A reading's error grows by its age divided by clockDrift. Quartz clocks are more
	// precise than that.
	clockDrift = 10_000
)

// clock computes the broker's time from its last reading and this machine's monotonic
// clock, so that setting the machine's clock has no effect. Deadlines are in broker time,
// so that engines on machines with different clocks agree.
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

// err returns the greatest possible error of a time that is computed now from this reading.
func (r *clockReading) err() time.Duration { return r.Err + time.Since(r.At)/clockDrift }

// now returns the broker's time. It never fails, but may be wrong if the last reading is
// outdated: use late to decide about a deadline.
func (c *clock) now() time.Time {
	last := c.last.Load()
	return last.Broker.Add(time.Since(last.At)).UTC()
}

// set reads the broker's clock. If the new reading agrees with the last one and is less
// precise, the last reading stays in use.
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

// late reports whether a deadline has passed, in the broker's time. If the deadline seems to
// have passed or is near, or if the last reading is outdated, late reads the broker's clock
// first; an error means that this failed.
func (c *clock) late(ctx context.Context, deadline time.Time) (bool, error) {
	if last := c.last.Load(); !c.holds(last) || c.now().Add(clockMargin+last.err()).After(deadline) {
		if err := c.set(ctx); err != nil {
			return false, err
		}
	}
	return !c.now().Before(deadline), nil
}

// holds reports whether a reading may be used for deadlines: it is recent, and since then
// the machine has not slept and its clock was not set.
func (c *clock) holds(r *clockReading) bool {
	since := time.Since(r.At)
	moved := c.wall().Round(0).Sub(r.wall.Round(0)) // Round(0) leaves out the monotonic clock
	return since < clockOld && (moved-since).Abs() < clockStep
}

// readClock reads the broker's clock in the background. If it fails, the last reading stays
// in use, and late reads the clock again once that reading is outdated.
func (e *base) readClock(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, clockEvery)
	defer cancel()
	if err := e.clock.set(within); err != nil && ctx.Err() == nil {
		e.Log.Info("engine: the broker's clock was not read; the last reading stands", "error", err)
	}
}
