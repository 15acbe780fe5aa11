package test

import (
	"context"
	"testing"
	"time"
)

// An engine that is told to stop while the bus is away stops, long before its
// patience with open calls ends.
func TestAnEngineStopsWhileTheBusIsAway(t *testing.T) {
	t.Parallel()
	env := start(t)
	env.NoError(env.server.Close())
	ctx, cancel := context.WithTimeout(env.ctx, 8*time.Second) // a drain alone takes 10
	defer cancel()
	n := env.engines[0]
	env.NoError(n.Engine.Stop(ctx))
	n.Engine = nil
	n.system.Stop()
	for _, c := range n.close {
		c()
	}
}
