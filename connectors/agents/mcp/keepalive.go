package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// every calls f at once and then every d, until stop is called. n counts the calls from 1.
// stop waits for a running f to return.
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

// keepAlive sends signs of life to the client, because a client or proxy may close a
// connection that stays silent. It sends the first sign at once, then one every SignOfLife,
// and none after stop has returned. A sign is a progress notification if the client asked for
// progress. Otherwise it is a comment in the event stream over HTTP; over standard output,
// nothing is sent.
func (c *call) keepAlive(ctx context.Context) (stop func()) {
	token := c.Params.GetProgressToken()
	if c.exchange != nil {
		c.exchange.begin()
	}
	// An error is ignored: if the client is gone, the call's context ends.
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
