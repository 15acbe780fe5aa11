package telegram

import (
	"context"
	"sync"
	"time"
)

const (
	// drainedFor is how long the backlog counts as drained: nod asks for it again before
	// that time is over.
	drainedFor = pollFor + callTimeout
	// leap is the change of the wall clock that counts as sleep; a smaller one is a
	// correction of the clock.
	leap = 2 * time.Second
	// holdFor is the longest time that an expiry is held back while Telegram answers. An
	// expiry shown after it may come before an unread press, and is still true. holdPause
	// is the time between two tries.
	holdFor   = 5 * time.Minute
	holdPause = 2 * time.Second
)

// moment is a time on the wall clock with the time that this machine had run by then. A
// machine does not run while it sleeps.
type moment struct {
	wall time.Time
	ran  time.Duration
}

// slept reports whether this machine slept between m and now.
func (m moment) slept(now moment) bool {
	return (now.wall.Sub(m.wall) - (now.ran - m.ran)).Abs() >= leap
}

// recentAt reports whether a fact known at m still counts at now: less than drainedFor has
// passed on the wall clock, and this machine did not sleep meanwhile.
func (m moment) recentAt(now moment) bool { return now.wall.Sub(m.wall) < drainedFor && !m.slept(now) }

// backlog tracks whether Telegram may hold updates that nod has not received, such as
// presses from while the machine slept. As long as it may, expiries are held back. A new
// backlog assumes that it may.
type backlog struct {
	mu    sync.Mutex
	clock func() moment
	last  moment // the last time that no update was left; zero if unknown
	held  moment // since when expiries are held back; zero if none is
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

// awake returns a ctx that ends once this machine has slept: a connection from before the
// sleep may never receive anything again.
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

// drained stores that nod has taken all updates that waited at Telegram when it asked. It
// returns false if that was too long ago, or if the machine slept meanwhile: the reply
// then says nothing of later updates.
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

// forget is called when the receiver ends: the backlog is unknown from then on. If
// Telegram could not be reached, the time for which expiries are held back starts over.
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
