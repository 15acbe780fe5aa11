package bus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nodbus/nod/schemas"
)

const (
	// pingEvery is how often a connection asks its server whether it is there, and
	// pingsMissed how many answers may be missing: a server that says nothing is
	// left after 9 s.
	pingEvery   = 3 * time.Second
	pingsMissed = 2
	// writeWithin bounds a write to a server that takes nothing in.
	writeWithin = 8 * time.Second

	// A server that answers pings may still be cut off from the others. It is left
	// after failedTimes tries that it did not serve, over failedFor at least; then
	// not again for switchMin, which doubles to switchMax while no server is better.
	failedTimes = 2
	failedFor   = 4 * time.Second
	switchMin   = 10 * time.Second
	switchMax   = 2 * time.Minute

	// pulseEvery is how often one who only waits tries whether its server still
	// serves it, and pulseWithin how long that may take.
	pulseEvery  = 3 * time.Second
	pulseWithin = 3 * time.Second
)

// health tells by the work on a connection whether its server serves it.
type health struct {
	mu     sync.Mutex
	server uint64
	failed int
	since  time.Time     // when the first try began that failed since one was served
	wait   time.Duration // from the last change of servers to the next
	next   time.Time     // the earliest time for it
}

func (h *health) served() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed, h.wait = 0, 0
}

// unserved counts a try that failed, and reports whether the server is to be left.
func (h *health) unserved(a attempt, now time.Time) (leave bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.server != h.server {
		h.server, h.failed = a.server, 0
	}
	if h.failed++; h.failed == 1 {
		h.since = a.began
	}
	if h.failed < failedTimes || now.Sub(h.since) < failedFor || now.Before(h.next) {
		return false
	}
	h.wait = min(max(2*h.wait, switchMin), switchMax)
	h.failed, h.next = 0, now.Add(h.wait)
	return true
}

// attempt is one try of something on a connection: when it began, and on which of the
// connection's servers, counted from its first.
type attempt struct {
	began  time.Time
	server uint64
}

func (c *Conn) attempt() attempt { return attempt{time.Now(), c.nc.Stats().Reconnects} }

// tried takes in how a try fared. A server that does not serve is left for another if
// one is known.
func (c *Conn) tried(a attempt, err error) {
	switch {
	case unserved(err, time.Since(a.began)):
	case served(err):
		c.health.served()
		return
	default:
		return
	}
	if !c.nc.IsConnected() || !c.alternatives() || c.nc.Stats().Reconnects != a.server || !c.health.unserved(a, time.Now()) {
		return
	}
	c.log.Info("bus: this server does not serve; changing to another", "server", c.URL(), "error", err)
	_ = c.nc.ForceReconnect() // it fails on a closed connection alone
}

// alternatives reports whether there is another server to change to.
func (c *Conn) alternatives() bool { return len(c.nc.Servers()) > 1 }

// served reports whether an error, or none, is an answer to what was tried.
func served(err error) bool {
	var e *schemas.Error
	return err == nil || errors.As(err, &e) || apiCode(err) != 0 || errors.Is(err, jetstream.ErrMsgNotFound)
}

// unserved reports whether an error says that the server, or all that it reaches, did
// not serve a try which took so long.
func unserved(err error, took time.Duration) bool {
	var e *schemas.Error
	switch {
	case err == nil:
		return false
	case errors.As(err, &e):
		return e.Code == schemas.CodeUnavailable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return took >= pulseWithin-pulseWithin/10 // less says more of the caller's patience
	case errors.Is(err, nats.ErrNoResponders):
		return true
	}
	return apiUnavailable(err)
}

// Pulse calls try every now and then for as long as there is another server to change
// to, until stop is called. It is for one who otherwise only waits: a server that was
// cut off would keep it waiting.
func (c *Conn) Pulse(try func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		tick := time.NewTicker(pulseEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-c.closed:
				return
			case <-tick.C:
			}
			for c.alternatives() && ctx.Err() == nil && !c.nc.IsClosed() {
				within, done := context.WithTimeout(ctx, pulseWithin)
				_ = try(within) // how it fared is told by its calls
				late := within.Err() != nil
				done()
				if !late {
					break
				}
			}
		}
	}()
	return cancel
}
