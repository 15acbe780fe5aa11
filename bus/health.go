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
	// pingEvery is the interval of a connection's pings, and pingsMissed the number of
	// replies that may be missing: a silent server is left after 9 s.
	pingEvery   = 3 * time.Second
	pingsMissed = 2
	// writeWithin limits a write to a server that does not read.
	writeWithin = 8 * time.Second

	// A server that answers pings may still be cut off from the others. The connection
	// leaves it after failedTimes unserved tries over at least failedFor. It then stays
	// for at least switchMin, which doubles up to switchMax while no server is better.
	failedTimes = 2
	failedFor   = 4 * time.Second
	switchMin   = 10 * time.Second
	switchMax   = 2 * time.Minute

	// pulseEvery is the interval at which a connection that only waits tests its server,
	// and pulseWithin the limit of one test.
	pulseEvery  = 3 * time.Second
	pulseWithin = 3 * time.Second
)

// health tells from the results of calls whether a server serves its connection.
type health struct {
	mu     sync.Mutex
	server uint64
	failed int
	since  time.Time     // start of the first failed try since the last served one
	wait   time.Duration // from the last change of servers to the next
	next   time.Time     // the earliest time of the next change
}

func (h *health) served() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed, h.wait = 0, 0
}

// unserved counts a failed try, and reports whether to leave the server.
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

// attempt is one try on a connection: its start, and the connection's server at that
// time, counted from its first.
type attempt struct {
	began  time.Time
	server uint64
}

func (c *Conn) attempt() attempt { return attempt{time.Now(), c.nc.Stats().Reconnects} }

// recordAttempt evaluates the result of a try. It changes to another server, if one is
// known, when this one does not serve the connection.
func (c *Conn) recordAttempt(a attempt, err error) {
	switch {
	case isUnserved(err, time.Since(a.began)):
	case isServed(err):
		c.health.served()
		return
	default:
		return
	}
	if !c.nc.IsConnected() || !c.alternatives() || c.nc.Stats().Reconnects != a.server || !c.health.unserved(a, time.Now()) {
		return
	}
	c.log.Info("bus: the server does not serve this connection; changing to another server", "server", c.URL(), "error", err)
	_ = c.nc.ForceReconnect() // it fails only on a closed connection
}

// alternatives reports whether there is another server to change to.
func (c *Conn) alternatives() bool { return len(c.nc.Servers()) > 1 }

// isServed reports whether err, possibly nil, is the server's answer to a try.
func isServed(err error) bool {
	var e *schemas.Error
	return err == nil || errors.As(err, &e) || apiCode(err) != 0 || errors.Is(err, jetstream.ErrMsgNotFound)
}

// isUnserved reports whether err means that the server, or every server behind it, did
// not serve a try of this duration.
func isUnserved(err error, took time.Duration) bool {
	var e *schemas.Error
	switch {
	case err == nil:
		return false
	case errors.As(err, &e):
		return e.Code == schemas.CodeUnavailable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return took >= pulseWithin-pulseWithin/10 // a shorter time is the caller's own limit
	case errors.Is(err, nats.ErrNoResponders):
		return true
	}
	return apiUnavailable(err)
}

// Pulse calls try at intervals while there is another server to change to, until stop is
// called. A client that only waits needs it: a server that is cut off would keep it
// waiting.
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
				_ = try(within) // its calls record the result
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
