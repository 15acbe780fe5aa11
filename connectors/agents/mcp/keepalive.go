package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// every calls the function f at once, and then at intervals of d until the caller calls stop. The
// argument of f is the number of the call, from 1. stop waits until f has returned.
func every(d time.Duration, f func(n int)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for n := 1; ; n++ {
			f(n)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); running.Wait() }
}

// keepAlive sends the client a sign of life at once, and then at intervals of Options.SignOfLife until
// the caller calls stop. Without them, the client or a proxy may close the connection. If the client
// asked for progress, a sign of life is a progress notification. Otherwise it is a comment in the event
// stream. Standard output has no comments, so that keepAlive sends nothing there if the client did not
// ask for progress.
func (c *call) keepAlive(ctx context.Context) (stop func()) {
	token := c.Params.GetProgressToken()
	if c.exchange != nil {
		c.exchange.begin()
	}
	// Errors have no effect, because the context of the call ends if the client is gone.
	return every(c.server.opts.SignOfLife, func(n int) {
		switch {
		case token != nil:
			_ = c.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(n), Message: "waiting for nod's decision; a person may have to answer",
			})
		case c.exchange != nil:
			c.exchange.comment()
		}
	})
}
