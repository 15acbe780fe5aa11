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
	// clockOld is the age from which on a reading of the broker's clock cannot decide about a deadline.
	clockOld = 3 * clockEvery
	// clockMargin is the time before a deadline from which on the broker's clock must be read again.
	clockMargin = time.Second
	// clockStep is the largest difference between the elapsed times of the wall clock and of the
	// monotonic clock. After a larger difference the broker's clock must be read again, because the
	// wall clock was set or the machine slept.
	clockStep = 500 * time.Millisecond
	// clockDrift is the largest drift of this machine's clock: one second in clockDrift seconds. A
	// reading of the broker's clock becomes less precise by its age divided by clockDrift. Quartz
	// clocks drift less.
	clockDrift = 10_000
)

// clock computes the broker's time from the last reading of the broker's clock and this machine's
// monotonic clock, so setting this machine's clock has no effect. Engines on different machines agree,
// because all deadlines are in broker time.
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

// err returns the greatest possible error of a broker time that is computed now.
func (r *clockReading) err() time.Duration { return r.Err + time.Since(r.At)/clockDrift }

// now returns the broker's time. It never fails, but may be wrong if the last reading is old. Deadlines
// are decided by the method late, which reads the clock if necessary.
func (c *clock) now() time.Time {
	last := c.last.Load()
	return last.Broker.Add(time.Since(last.At)).UTC()
}

// at returns the broker's time that corresponds to this machine's time t. The time t must have a
// monotonic reading.
func (c *clock) at(t time.Time) time.Time {
	last := c.last.Load()
	return last.Broker.Add(t.Sub(last.At)).UTC()
}

// set reads the broker's clock. If the last reading agrees with the new reading and is more precise,
// set keeps the last reading.
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

// late reports whether a deadline has passed in the broker's time. It first reads the broker's clock if
// the deadline is near or past, or if the last reading is old. The error is the error of that reading.
func (c *clock) late(ctx context.Context, deadline time.Time) (bool, error) {
	if last := c.last.Load(); !c.holds(last) || c.now().Add(clockMargin+last.err()).After(deadline) {
		if err := c.set(ctx); err != nil {
			return false, err
		}
	}
	return !c.now().Before(deadline), nil
}

// holds reports whether a reading may decide about deadlines. The reading must be recent, and the
// machine must not have slept or had its clock set since that reading.
func (c *clock) holds(r *clockReading) bool {
	since := time.Since(r.At)
	moved := c.wall().Round(0).Sub(r.wall.Round(0)) // Round(0) removes the monotonic times, so Sub compares the wall clocks
	return since < clockOld && (moved-since).Abs() < clockStep
}

// readClock reads the broker's clock in the background. After a failure the last reading stays
// in use until it is too old for deadlines.
func (e *base) readClock(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, clockEvery)
	defer cancel()
	if err := e.clock.set(within); err != nil && ctx.Err() == nil {
		e.Log.Info("engine: the broker's clock was not read; the last reading stands", "error", err)
	}
}
