package actors

import "time"

// idleFor is how long a goroutine waits for further work before it ends.
const idleFor = 10 * time.Second

// goroutinePool runs actors on goroutines, which wait idleFor for more work. To start a goroutine for
// each lane instead would take a tenth of an engine's processor time, because most lanes handle only
// one or two messages and each goroutine must start and grow its stack.
type goroutinePool struct{ work chan func() }

func newGoroutinePool() goroutinePool { return goroutinePool{make(chan func())} }

// Throughput returns the number of messages that an actor handles before another actor gets a turn.
func (w goroutinePool) Throughput() int { return 300 }

// Schedule runs f in a goroutine of the pool. It never blocks: if no goroutine is idle, Schedule
// starts a new goroutine.
func (w goroutinePool) Schedule(f func()) {
	select {
	case w.work <- f:
	default:
		go w.run(f)
	}
}

func (w goroutinePool) run(f func()) {
	idle := time.NewTimer(idleFor)
	defer idle.Stop()
	for {
		f()
		idle.Reset(idleFor)
		select {
		case f = <-w.work:
		case <-idle.C:
			return
		}
	}
}
