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
	// A connection pings its server every pingEvery, and tolerates pingsMissed unanswered
	// pings. The connection leaves a server that is silent for 9 s.
	pingEvery   = 3 * time.Second
	pingsMissed = 2
	// writeWithin bounds a write to a server that has stopped reading.
	writeWithin = 8 * time.Second

	// A server that answers pings may be cut off from the other servers. The connection changes
	// to another server after failedTimes failed tries over at least failedFor. It keeps the
	// new server for at least switchMin. This time doubles with each change, up to switchMax,
	// until a try succeeds.
	failedTimes = 2
	failedFor   = 4 * time.Second
	switchMin   = 10 * time.Second
	switchMax   = 2 * time.Minute

	// pulseEvery is the interval at which a connection without calls of its own tests its
	// server. pulseWithin bounds one test.
	pulseEvery  = 3 * time.Second
	pulseWithin = 3 * time.Second
)

// health counts the failed tries of a connection's calls, because the connection's server may
// no longer serve calls.
type health struct {
	mu     sync.Mutex
	server uint64
	failed int
	since  time.Time     // the start of the first failed try after the last success
	wait   time.Duration // the shortest time between two changes of the server
	next   time.Time     // the earliest time of the next change of the server
}

func (h *health) served() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed, h.wait = 0, 0
}

// unserved counts a failed try, and reports whether the connection should change to another
// server.
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

// attempt is one try on a connection: its start, and the number of reconnects before it. A
// later reconnect means that the try's server is no longer in use.
type attempt struct {
	began  time.Time
	server uint64
}

func (c *Conn) attempt() attempt { return attempt{time.Now(), c.nc.Stats().Reconnects} }

// recordAttempt records the result of a try. After too many failed tries, the connection
// changes to another server, if it knows one.
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

// isServed reports whether a try with the result err got a reply: err is nil, or an error of
// nod or of JetStream.
func isServed(err error) bool {
	var e *schemas.Error
	return err == nil || errors.As(err, &e) || apiCode(err) != 0 || errors.Is(err, jetstream.ErrMsgNotFound)
}

// isUnserved reports whether err means that the server, or another server behind it, did
// not serve a try of the duration took.
func isUnserved(err error, took time.Duration) bool {
	var e *schemas.Error
	switch {
	case err == nil:
		return false
	case errors.As(err, &e):
		return e.Code == schemas.CodeUnavailable
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return took >= pulseWithin-pulseWithin/10 // a shorter try was ended by the caller's own time limit
	case errors.Is(err, nats.ErrNoResponders):
		return true
	}
	return apiUnavailable(err)
}

// Pulse calls try every pulseEvery, if the connection knows another server, until stop is
// called or the connection closes. Without Pulse, a client that only waits for messages would
// not notice that its server is cut off from the others.
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
				_ = try(within) // each call inside try records its own result
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
