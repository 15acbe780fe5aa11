package engine

import (
	"context"
	"testing"
	"time"

	"github.com/nodbus/nod/test/internal/rig"
)

// While its server is down, an engine stops within 8 s, because it does not wait until its
// connections are drained.
func TestAnEngineStopsWhileTheBusIsAway(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	env.NoError(env.Server.Close())
	ctx, cancel := context.WithTimeout(env.Ctx, 8*time.Second) // the drain of one connection would take 10 s
	defer cancel()
	n := env.Engines[0]
	env.NoError(n.Engine.Stop(ctx))
	n.Engine = nil
	n.Actors.Stop()
	for _, c := range n.Close {
		c()
	}
}
