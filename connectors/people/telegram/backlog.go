package telegram

import (
	"context"
	"sync"
	"time"
)

const (
	// drainedFor is the time for which the backlog counts as empty after nod has received
	// all updates. nod polls again before this time is over.
	drainedFor = pollFor + callTimeout
	// leap is the least difference between the wall clock's advance and this machine's running
	// time that counts as sleep. A smaller difference counts as a correction of the clock.
	leap = 2 * time.Second
	// holdFor is the longest time for which nod, while it can reach Telegram, does not yet
	// show that a request expired, because a press from before the deadline may still arrive.
	// After that time the expiry is shown anyway. holdPause is the time between two attempts
	// to show it.
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

// recentAt reports whether an observation made at m still holds at now: less than drainedFor
// has passed on the wall clock, and this machine has not slept in between.
func (m moment) recentAt(now moment) bool { return now.wall.Sub(m.wall) < drainedFor && !m.slept(now) }

// backlog tracks whether Telegram may hold updates that nod has not received, such as presses
// from the time when this machine slept. While Telegram may hold some, nod does not show that
// a request expired. A new backlog assumes that Telegram holds updates.
type backlog struct {
	mu    sync.Mutex
	clock func() moment
	last  moment // the time when Telegram last held no update; zero if unknown
	held  moment // the time when nod began to delay expiries; zero if it delays none
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

// awake returns a ctx that ends once this machine has slept, because a connection that was
// open before the sleep may never receive anything again.
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

// drained records that nod received all updates that Telegram held at askedAt. If askedAt is
// too long ago, or if this machine has slept since, drained records nothing and returns
// false, because Telegram may hold later updates.
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

// forget records that Telegram may hold updates; Run calls forget when Run ends. If Telegram
// could not be reached, the limit holdFor starts over.
func (b *backlog) forget(unreached bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = moment{}
	if unreached {
		b.held = moment{}
	}
}

// holdsExpiry reports whether nod must not yet show that a request expired. The first call
// that returns true starts the limit holdFor.
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
