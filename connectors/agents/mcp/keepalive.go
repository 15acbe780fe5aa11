package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// every calls f at once and then every d, with a count from 1, until stop is
// called. stop waits for f to return.
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

// keepAlive sends the client signs of life during the call: at once, then every
// SignOfLife until stop is called. After stop has returned, it sends none. They are
// progress notifications if the client asked for progress; otherwise, over HTTP,
// comments in the event stream. A client or proxy may close a connection that stays
// silent.
func (c *call) keepAlive(ctx context.Context) (stop func()) {
	token := c.Params.GetProgressToken()
	if c.exchange != nil {
		c.exchange.begin()
	}
	// Ignore errors here: other code notices that the client is gone.
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
