package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// aliveWhile tells the client at once, and then every so often until ctx ends
// or stop is called, that the call is worked on: by progress where it asked for
// progress, and otherwise over HTTP by a comment in the stream, as a client or
// a proxy may end a connection on which nothing comes. After stop it says
// nothing more.
func (c *call) aliveWhile(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var said sync.WaitGroup
	said.Go(func() {
		tick := time.NewTicker(c.server.opts.SignOfLife)
		defer tick.Stop()
		for n := 1; ; n++ {
			c.sign(ctx, n)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); said.Wait() }
}

// sign gives one sign of life. One that cannot be given is no fault of the
// call's: that the client is gone is noticed elsewhere.
func (c *call) sign(ctx context.Context, n int) {
	token := c.Params.GetProgressToken()
	switch {
	case token != nil:
		_ = c.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(n), Message: "nod is asked; a person may have to answer",
		})
	case c.visit != nil:
		c.visit.comment()
	}
}
