package test

import (
	"context"
	"testing"
	"time"
)

// An engine stops within 8 s while the server is away, without waiting for its
// connections to drain.
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
