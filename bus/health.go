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
	// A connection pings its server every pingEvery, and tolerates pingsMissed pings without a reply. It
	// therefore leaves a server that is silent for 9 s.
	pingEvery   = 3 * time.Second
	pingsMissed = 2
	// writeWithin bounds a write to a server that has stopped reading.
	writeWithin = 8 * time.Second

	// A server that answers pings may be cut off from the other servers. The connection changes to
	// another server after at least failedTimes failed tries during at least failedFor. It then keeps
	// the new server for at least switchMin. Each further change doubles this time, up to switchMax.
	// After a successful try the time is switchMin again.
	failedTimes = 2
	failedFor   = 4 * time.Second
	switchMin   = 10 * time.Second
	switchMax   = 2 * time.Minute

	// pulseEvery is the interval at which a connection tests its server if it makes no calls itself.
	// pulseWithin bounds one test.
	pulseEvery  = 3 * time.Second
	pulseWithin = 3 * time.Second
)

// health counts failed tries of a connection's calls, to detect a server that no longer serves calls.
type health struct {
	mu     sync.Mutex
	server uint64
	failed int
	since  time.Time     // when the first failed try after the last success began
	wait   time.Duration // the shortest time between two changes of the server
	next   time.Time     // the earliest time of the next change to another server
}

func (h *health) served() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed, h.wait = 0, 0
}

// unserved counts a failed try. It reports whether the connection should change to another server.
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

// attempt is one try of a call. It has the time at which the try began, and the number of the
// connection's reconnects before. If this number has changed since, the connection no longer uses the
// try's server.
type attempt struct {
	began  time.Time
	server uint64
}

func (c *Conn) attempt() attempt { return attempt{time.Now(), c.nc.Stats().Reconnects} }

// recordAttempt records the result of a try. After too many failed tries, the connection changes to
// another server, if it knows one.
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
	_ = c.nc.ForceReconnect() // ForceReconnect fails only on a closed connection
}

func (c *Conn) alternatives() bool { return len(c.nc.Servers()) > 1 }

// isServed reports whether a try got a reply. It got one if its error is nil, or is an error of nod
// or of JetStream.
func isServed(err error) bool {
	var e *schemas.Error
	return err == nil || errors.As(err, &e) || apiCode(err) != 0 || errors.Is(err, jetstream.ErrMsgNotFound)
}

// isUnserved reports whether a try's error shows that the server, or a server behind it, did not
// serve the try. The parameter took is the duration of the try.
func isUnserved(err error, took time.Duration) bool {
	var e *schemas.Error
	switch {
	case err == nil:
		return false
	case errors.As(err, &e):
		return e.Code == schemas.CodeUnavailable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return took >= pulseWithin-pulseWithin/10 // if less time has passed, the caller's own time limit has ended the try
	case errors.Is(err, nats.ErrNoResponders):
		return true
	}
	return apiUnavailable(err)
}

// Pulse calls the function try at the interval pulseEvery if the connection knows another server. It
// ends when the caller calls the returned function or the connection closes. Without Pulse, a client
// that only waits for messages would not notice that its server is cut off from the others.
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
				_ = try(within) // the calls inside the function try have already recorded their results with recordAttempt
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
