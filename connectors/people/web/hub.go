package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// hub contains the pending requests and the clients. One lock guards both, so that a new subscription
// misses no request: the client gets the pending requests, and then all that arrive later. Each client
// gets each request once, and again when the request changes. Sending only queues a message, so a slow
// client does not delay others.
type hub struct {
	tasks sync.WaitGroup // the connected clients, and the pusher

	mu      sync.Mutex
	pending map[string]*pendingView // the pending requests, by request key
	clients map[*client]bool
	closed  bool
}

func newHub() *hub {
	return &hub{pending: map[string]*pendingView{}, clients: map[*client]bool{}}
}

// Show passes a version of a request to the inbox. The caller must pass the versions of a request in
// their order.
func (s *Server) Show(p schemas.Prompt) {
	s.pushes.show(&p)
	if p.Decision != nil {
		s.hub.resolve(&p, s.clock.now())
		return
	}
	s.hub.add(&pendingView{prompt: p, sortKey: sortKeyOf(&p), clock: &s.clock})
}

// pendingView is a pending request. Its view is made once a client needs it.
type pendingView struct {
	prompt  schemas.Prompt
	sortKey string
	clock   *clock
	made    *requestView
}

// view returns the view of the request. The caller holds the hub's lock.
func (q *pendingView) view() *requestView {
	if q.made == nil {
		q.made = newRequestView(&q.prompt, q.clock.now())
	}
	return q.made
}

func (b *hub) add(q *pendingView) {
	key := q.prompt.Key()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending[key] = q
	for c := range b.clients {
		if c.subscribedTo(q.prompt.SessionID) {
			c.sendRequest(key, q.view(), true)
		}
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
	delete(b.pending, key)
	for c := range b.clients {
		switch {
		case c.sent[key] != "":
			delete(c.sent, key)
			c.enqueue(outgoing{action: notifyResolved, payload: r, live: true})
		case c.sessions[p.SessionID]: // a rule decided the request, without a person
			c.enqueue(outgoing{action: notifyDecided, payload: newDecidedView(p, now), live: true})
		}
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

// subscribe subscribes a client to a session or, if session is empty, to the inbox. It first sends the
// reply. Then it sends the pending requests that this client has not got before, oldest first.
func (b *hub) subscribe(c *client, to clientMessage, session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.backlog() > maxBacklog {
		c.end(websocket.StatusPolicyViolation, tooSlow)
		return
	}
	if session == "" {
		c.inbox = true
	} else if c.sessions[session] = true; len(c.sessions) > maxSessions {
		c.end(websocket.StatusPolicyViolation, "too many sessions: subscribe to the inbox")
		return
	}
	keys := b.sortedKeys(session)
	keys = slices.DeleteFunc(keys, func(k string) bool { return c.sent[k] != "" })
	c.reply(to, subscribeReply{Success: true, SessionID: session, Pending: len(keys)})
	for _, k := range keys {
		c.sendRequest(k, b.pending[k].view(), false)
	}
}

// unsubscribe ends a client's subscription to a session. Unless the client also subscribes to the
// inbox, a later subscription sends the session's pending requests again.
func (b *hub) unsubscribe(c *client, to clientMessage, session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(c.sessions, session)
	for key := range c.sent {
		if q := b.pending[key]; !c.inbox && q != nil && q.prompt.SessionID == session {
			delete(c.sent, key)
		}
	}
	c.reply(to, subscribeReply{Success: true, SessionID: session})
}

// sortedKeys returns the keys of the pending requests of one session, oldest first. If session is
// empty, it returns those of all sessions.
func (b *hub) sortedKeys(session string) []string {
	var keys []string
	for k, q := range b.pending {
		if session == "" || q.prompt.SessionID == session {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y string) int { return cmp.Compare(b.pending[x].sortKey, b.pending[y].sortKey) })
	return keys
}

// list returns one page of the pending requests, oldest first. The page contains only requests whose
// sort key is greater than after.
func (b *hub) list(session, after string, limit int, now time.Time) listReply {
	b.mu.Lock()
	defer b.mu.Unlock()
	page := listReply{Permissions: []requestView{}, ServerTime: now}
	size, last := 0, ""
	for _, k := range b.sortedKeys(session) {
		pending := b.pending[k]
		if pending.sortKey <= after {
			continue
		}
		if len(page.Permissions) == limit || size > pageBytes {
			page.Next = last
			break
		}
		q := *pending.view()
		q.ServerTime, last = now, pending.sortKey
		size += len(q.ActionDetails)
		page.Permissions = append(page.Permissions, q)
	}
	return page
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
	c.ahead = now.Sub(before.Add(time.Since(before) / 2))
	return nil
}
