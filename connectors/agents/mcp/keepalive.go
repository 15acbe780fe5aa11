package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// every calls f at once and then each time that d has passed, with a count from
// 1, until stop is called, which waits for f.
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

// keepAlive tells the client at once and then every so often that the call is
// worked on, until stop is called, and nothing after that: by progress where it
// asked for progress, and otherwise over HTTP by a comment in the stream. A
// client or a proxy may end a connection on which nothing comes.
func (c *call) keepAlive(ctx context.Context) (stop func()) {
	token := c.Params.GetProgressToken()
	if c.exchange != nil {
		c.exchange.begin()
	}
	// A sign that cannot be given is no fault of the call's: that the client is
	// gone is noticed elsewhere.
	return every(c.server.opts.SignOfLife, func(n int) {
		switch {
		case token != nil:
			_ = c.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(n), Message: "nod is asked; a person may have to answer",
			})
		case c.exchange != nil:
			c.exchange.comment()
		}
	})
}
