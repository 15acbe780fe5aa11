package telegram

import (
	"context"
	"sync"
	"time"
)

// gatePatience is how long somebody waits at a gate at most: what is announced
// too early is still the truth.
const gatePatience = 10 * time.Second

// gate is open or shut, and shut at first.
type gate struct {
	mu      sync.Mutex
	through chan struct{} // closed while the gate is open
}

func newGate() *gate { return &gate{through: make(chan struct{})} }

func (g *gate) isOpen() bool {
	select {
	case <-g.through:
		return true
	default:
		return false
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.isOpen() {
		close(g.through)
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen() {
		g.through = make(chan struct{})
	}
}

// wait returns once the gate is open, ctx ends or patience does.
func (g *gate) wait(ctx context.Context) {
	g.mu.Lock()
	opened := g.through
	g.mu.Unlock()
	over := time.NewTimer(gatePatience)
	defer over.Stop()
	select {
	case <-opened:
	case <-ctx.Done():
	case <-over.C:
	}
}
