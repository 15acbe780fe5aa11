package actors

import "time"

// idleFor is how long a goroutine waits for more work before it ends.
const warmFor = 10 * time.Second

// goroutinePool runs actors on goroutines that are kept for a while. A lane lives for one
// message or two; a new goroutine for each would have to grow its stack, which costs a
// tenth of an engine's time.
type warm struct{ work chan func() }

func newWarm() warm { return warm{make(chan func())} }

// Throughput is how many messages an actor handles before others get a turn.
func (w warm) Throughput() int { return 300 }

// Schedule never waits: if no goroutine is free, it starts one.
func (w warm) Schedule(f func()) {
	select {
	case w.work <- f:
	default:
		go w.run(f)
	}
}

func (w warm) run(f func()) {
	idle := time.NewTimer(warmFor)
	defer idle.Stop()
	for {
		f()
		idle.Reset(warmFor)
		select {
		case f = <-w.work:
		case <-idle.C:
			return
		}
	}
}
