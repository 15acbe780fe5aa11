package telegram

import (
	"context"
	"sync"
	"time"
)

const (
	// drainedFor is how long the backlog counts as empty after nod has received all
	// updates. nod polls again before that time is over.
	drainedFor = pollFor + callTimeout
	// leap is the least difference between the wall clock and the time this machine ran
	// that counts as sleep. A smaller difference is a correction of the clock.
	leap = 2 * time.Second
	// holdFor is the longest time that an expiry is held back while Telegram answers.
	// After it, the expiry may be shown before a press that nod has not received yet; the
	// expiry is true nevertheless. holdPause is the time between two tries.
	holdFor   = 5 * time.Minute
	holdPause = 2 * time.Second
)

// moment is a time on the wall clock, with the total time that this machine had run by
// then. A machine does not run while it sleeps.
type moment struct {
	wall time.Time
	ran  time.Duration
}

// slept reports whether this machine slept between m and now.
func (m moment) slept(now moment) bool {
	return (now.wall.Sub(m.wall) - (now.ran - m.ran)).Abs() >= leap
}

// recentAt reports whether a fact known at m still counts at now: less than drainedFor
// has passed on the wall clock, and this machine has not slept in between.
func (m moment) recentAt(now moment) bool { return now.wall.Sub(m.wall) < drainedFor && !m.slept(now) }

// backlog tracks whether Telegram may hold updates that nod has not received, such as
// presses from the time when this machine slept. As long as it may, expiries are held
// back. A new backlog assumes that Telegram holds some.
type backlog struct {
	mu    sync.Mutex
	clock func() moment
	last  moment // the last time that Telegram held no update; zero if unknown
	held  moment // since when expiries are held back; zero if they are not
}

func newBacklog() *backlog {
	began := time.Now()
	return &backlog{clock: func() moment {
		now := time.Now()
		return moment{now.Round(0), now.Sub(began)}
	}}
}

func (b *backlog) now() moment {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.clock()
}

// awake returns a ctx that ends once this machine has slept: a connection that was open
// before the sleep may never receive anything again.
func (b *backlog) awake(ctx context.Context) (context.Context, context.CancelFunc) {
	began := b.now()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(leap)
		defer tick.Stop()
		for !began.slept(b.now()) {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		cancel()
	}()
	return ctx, cancel
}

// drained records that nod, asking at askedAt, received all updates that Telegram held.
// It records nothing and returns false if that was too long ago or if this machine slept
// in between: Telegram may hold later updates.
func (b *backlog) drained(askedAt moment) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	if !askedAt.recentAt(now) {
		return false
	}
	b.last, b.held = now, moment{}
	return true
}

// forget marks the backlog as unknown, when the receiver ends. If Telegram could not be
// reached, the time for which expiries are held back starts over.
func (b *backlog) forget(unreached bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = moment{}
	if unreached {
		b.held = moment{}
	}
}

// holdsExpiry reports whether an expiry must wait.
func (b *backlog) holdsExpiry() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	if b.last.recentAt(now) {
		return false
	}
	if b.held == (moment{}) {
		b.held = now
	}
	return now.ran-b.held.ran < holdFor
}
