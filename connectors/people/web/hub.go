package web

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// hub contains the list of pending requests and the clients. One lock guards the list and the clients, so
// that a new subscription misses no request: the client gets the requests that are pending then, and all
// that arrive later. A client gets a request once, and again when the request changes. To send a message,
// the hub only queues it, so a slow client does not delay others.
type hub struct {
	tasks sync.WaitGroup // counts the connected clients and the pusher

	mu      sync.Mutex
	pending pendingList
	views   viewCache
	clients map[*client]bool
	closed  bool
}

func newHub() *hub { return &hub{clients: map[*client]bool{}} }

// Show passes a version of a request to the inbox. The caller must pass the versions of a request in
// their order.
func (s *Server) Show(p schemas.Prompt) {
	s.pushes.show(&p)
	if p.Decision != nil {
		s.hub.resolve(&p, s.clock.now())
		return
	}
	s.hub.add(&p, s.clock.now())
}

// add sends a version of a pending request to the subscribed clients. It makes the view of the request
// once, and only if a client gets it.
func (b *hub) add(p *schemas.Prompt, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	row := b.pending.add(p)
	var view *requestView
	for c := range b.clients {
		if c.takes(row) {
			if view == nil {
				view = b.views.of(p, now)
			}
			_, known := c.sent[row.key]
			c.sendRequest(p, view, outgoing{live: true, fresh: !known})
		}
		b.recount(c)
	}
}

func (b *hub) resolve(p *schemas.Prompt, now time.Time) {
	key := p.Key()
	r := resolvedNotice{
		SessionID: p.SessionID, PendingID: p.PendingID, Decision: p.Decision,
		Text: people.Recorded(p.Decision, p),
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending.remove(key)
	b.views.forget(key)
	for c := range b.clients {
		last, announced := c.sent[key]
		switch {
		case announced:
			if last == (sentVersion{}) { // the client must get the request as pending before its end, because the request was announced but not sent
				pending := *p
				pending.Decision = nil
				c.sendRequest(&pending, newRequestView(&pending, now), outgoing{live: true})
			}
			delete(c.sent, key)
			c.enqueue(outgoing{action: notifyResolved, payload: r, live: true})
			b.refill(c)
		case c.sessions[p.SessionID]: // a rule decided the request, so nobody was asked
			c.enqueue(outgoing{action: notifyDecided, payload: newDecidedView(p, now), live: true})
		}
		b.recount(c)
	}
}

// join adds a client and returns true. If there are too many clients or the hub is closed, it returns
// false.
func (b *hub) join(c *client) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.clients) >= maxClients {
		return false
	}
	b.clients[c] = true
	b.tasks.Add(1)
	return true
}

func (b *hub) leave(c *client) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.clients, c)
	b.tasks.Done()
}

// disconnect disconnects the clients of a login session that has ended.
func (b *hub) disconnect(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.clients {
		if c.session.ID == session {
			c.end(websocket.StatusPolicyViolation, loggedOut)
		}
	}
}

// close disconnects every client. From then on no client can join.
func (b *hub) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for c := range b.clients {
		c.end(websocket.StatusGoingAway, "nod is stopping")
	}
}

// wait returns when every client has disconnected and the pusher has stopped. If ctx ends first, it
// returns an error.
func (b *hub) wait(ctx context.Context) error {
	gone := make(chan struct{})
	go func() { b.tasks.Wait(); close(gone) }()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the web inbox: clients are still connected: %w", ctx.Err())
	}
}

// clock returns the broker's time. It stores the difference between the clocks of the broker and of
// this machine.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
	known bool
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead).UTC()
}

// read reads the broker's time and stores the difference of the clocks. After an error it keeps the
// last difference.
func (c *clock) read(ctx context.Context, r Registry) error {
	before := time.Now()
	now, err := r.Now(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead, c.known = now.Sub(before.Add(time.Since(before)/2)), true
	return nil
}

// readOnce calls read, unless the broker's time has been read before.
func (c *clock) readOnce(ctx context.Context, r Registry) error {
	c.mu.Lock()
	known := c.known
	c.mu.Unlock()
	if known {
		return nil
	}
	return c.read(ctx, r)
}
