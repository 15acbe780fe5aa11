package telegram

import (
	"context"
	"sync"
	"time"
)

const (
	// drainedFor is how long nod treats the backlog as empty after nod has received all updates. nod
	// polls again within this time.
	drainedFor = pollFor + callTimeout
	// If the wall clock and this machine's running time have advanced by times that differ by leap or
	// more, nod concludes that the machine slept. A smaller difference is a correction of the clock.
	leap = 2 * time.Second
	// holdFor limits the delay before nod shows that a request expired, while nod can reach
	// Telegram. In this time, nod may still receive a press from before the deadline. holdPause
	// is the time between two attempts to show the expiry.
	holdFor   = 5 * time.Minute
	holdPause = 2 * time.Second
)

// moment is a time on the wall clock, together with this machine's running time until then. The
// running time does not include sleep.
type moment struct {
	wall time.Time
	ran  time.Duration
}

// slept reports whether this machine slept between m and now.
func (m moment) slept(now moment) bool {
	return (now.wall.Sub(m.wall) - (now.ran - m.ran)).Abs() >= leap
}

// recentAt reports whether an observation at m is still valid at now. This is so if less than drainedFor
// has passed on the wall clock, and this machine has not slept.
func (m moment) recentAt(now moment) bool { return now.wall.Sub(m.wall) < drainedFor && !m.slept(now) }

// backlog tracks whether Telegram may still have updates for nod, such as presses while this machine
// slept. While that is possible, nod does not show that a request expired. A new backlog assumes that
// Telegram has updates.
type backlog struct {
	mu    sync.Mutex
	clock func() moment
	last  moment // the time at which Telegram last had no update for nod; zero if unknown
	held  moment // the time when nod began to delay the message that a request expired; zero if it delays no such message
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

// awake returns a context that ends when this machine has slept. A connection from before the sleep
// may never receive data again.
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

// drained records that nod has received all updates that Telegram had at askedAt. If askedAt is too
// long ago or this machine has slept since, drained records nothing and returns false, because
// Telegram may have later updates.
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

// forget records that Telegram may have updates. Run calls forget when Run ends. If Telegram could not be
// reached, the time limit holdFor starts again.
func (b *backlog) forget(unreached bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = moment{}
	if unreached {
		b.held = moment{}
	}
}

// holdsExpiry reports whether nod must still delay the message that a request expired. The first call
// that returns true starts the time limit holdFor.
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
