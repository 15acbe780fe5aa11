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
	// clockOld is after how long a reading is too old to decide about a deadline.
	clockOld = 3 * clockEvery
	// clockMargin is how near to a deadline the broker's clock is read again.
	clockMargin = time.Second
	// clockStep is how far this machine's clock may move against its monotonic
	// clock between two readings before the last reading is doubted: somebody has
	// set it, or the machine has slept.
	clockStep = 500 * time.Millisecond
	// clockDrift is how much a reading loses in precision over time: a quartz is off
	// by less than one in ten thousand.
	clockDrift = 10_000
)

// clock tells the broker's time: deadlines are in it, so that engines on
// machines whose clocks differ agree. It counts on from its last reading by this
// machine's monotonic clock, so that setting the machine's clock changes nothing.
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

// err is how far the clock may be off by now.
func (r *clockReading) err() time.Duration { return r.Err + time.Since(r.At)/clockDrift }

// now is the broker's time. It never fails: see late for what a deadline takes.
func (c *clock) now() time.Time {
	last := c.last.Load()
	return last.Broker.Add(time.Since(last.At)).UTC()
}

// set reads the broker's clock. A reading that bears out the last one, and is less
// precise, only says that that one still holds.
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

// late reports whether a deadline has passed, in the broker's time. An answer that
// seems to be late, or to be in time by little or by a reading that may not hold any
// more, is not believed before the broker has been asked once more.
func (c *clock) late(ctx context.Context, deadline time.Time) (bool, error) {
	if last := c.last.Load(); !c.holds(last) || c.now().Add(clockMargin+last.err()).After(deadline) {
		if err := c.set(ctx); err != nil {
			return false, err
		}
	}
	return !c.now().Before(deadline), nil
}

// holds reports whether a reading is young, and this machine has neither slept nor
// had its clock set since.
func (c *clock) holds(r *clockReading) bool {
	since := time.Since(r.At)
	moved := c.wall().Round(0).Sub(r.wall.Round(0)) // Round(0): not by the monotonic clock
	return since < clockOld && (moved-since).Abs() < clockStep
}

// readClock is set in the background: what fails leaves the last reading, which is
// read again before a deadline is decided by it.
func (e *Engine) readClock(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, clockEvery)
	defer cancel()
	if err := e.clock.set(within); err != nil && ctx.Err() == nil {
		e.Log.Info("engine: the broker's clock was not read; the last reading stands", "error", err)
	}
}
