package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// every calls f at once, and then at intervals of d until the caller calls stop. f gets the number
// of its call, from 1. stop waits until a running f has returned.
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

// keepAlive sends signs of life to the client, because a client or proxy may close a connection
// without data. It sends a sign at once and another after each SignOfLife, until stop is called. If
// the client asked for progress, a sign of life is a progress notification. Otherwise it is a
// comment in the event stream over HTTP. Standard output has no comments, so a client there gets
// signs of life only if it asked for progress.
func (c *call) keepAlive(ctx context.Context) (stop func()) {
	token := c.Params.GetProgressToken()
	if c.exchange != nil {
		c.exchange.begin()
	}
	// It is safe to ignore errors: if the client is gone, the context of the call ends.
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
