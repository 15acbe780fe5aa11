package telegram

import (
	"context"
	"sync"
	"time"
)

const (
	// heardFor is how long what waited at Telegram counts as heard: it is asked for
	// again before that is over.
	heardFor = pollFor + callTimeout
	// leap is by how much a clock may be set without that counting as sleep.
	leap = 2 * time.Second
	// holdFor is how long a late deadline is held back at most while Telegram
	// answers: what is announced too early is still the truth. holdPause is until it
	// is tried again.
	holdFor   = 5 * time.Minute
	holdPause = 2 * time.Second
)

// moment is a time on the wall, and how long this machine had run by then: asleep
// it does not run.
type moment struct {
	wall time.Time
	ran  time.Duration
}

// slept reports whether this machine slept from m until now.
func (m moment) slept(now moment) bool {
	return (now.wall.Sub(m.wall) - (now.ran - m.ran)).Abs() >= leap
}

// lasts reports whether what was so then may count as so now: it is not long ago
// for people, and this machine did not sleep in between.
func (m moment) lasts(now moment) bool { return now.wall.Sub(m.wall) < heardFor && !m.slept(now) }

// gate holds late deadlines back while something may wait at Telegram that nod
// has not heard. It is shut at first.
type gate struct {
	mu    sync.Mutex
	clock func() moment
	last  moment // when all was heard; zero while it is not
	held  moment // since when something is held back; zero while nothing is
}

func newGate() *gate {
	began := time.Now()
	return &gate{clock: func() moment {
		now := time.Now()
		return moment{now.Round(0), now.Sub(began)}
	}}
}

func (g *gate) now() moment {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.clock()
}

// awake is ctx until this machine has slept: what was open then may never hear
// anything again.
func (g *gate) awake(ctx context.Context) (context.Context, context.CancelFunc) {
	began := g.now()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(leap)
		defer tick.Stop()
		for !began.slept(g.now()) {
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

// heard opens the gate: nod has taken all that waited at Telegram when it asked.
// It reports false where that was too long ago, or the machine slept meanwhile:
// an answer that was under way then tells nothing of what came after it.
func (g *gate) heard(asked moment) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock()
	if !asked.lasts(now) {
		return false
	}
	g.last, g.held = now, moment{}
	return true
}

// shut is for a receiver that ended. Where Telegram could not be reached, what is
// held back is so from then on.
func (g *gate) shut(unreached bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = moment{}
	if unreached {
		g.held = moment{}
	}
}

// holds reports whether a late deadline must wait.
func (g *gate) holds() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock()
	if g.last.lasts(now) {
		return false
	}
	if g.held == (moment{}) {
		g.held = now
	}
	return now.ran-g.held.ran < holdFor
}
