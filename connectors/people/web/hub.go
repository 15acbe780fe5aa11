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

// board is what is pending now and who looks at it. Under its one lock a
// client's subscription takes what is there, and everything later is sent to
// it as it comes: so each client is told of each request once, and again when it
// reads otherwise. Telling a client only queues, so nobody waits for anybody.
type board struct {
	tasks sync.WaitGroup // the clients' connections

	mu      sync.Mutex
	pending map[string]*requested // by key
	clients map[*client]bool
	closed  bool
}

func newBoard() *board {
	return &board{pending: map[string]*requested{}, clients: map[*client]bool{}}
}

// Show takes in one request as it stands now. For one request it is called in
// the order of its versions.
func (s *Server) Show(p schemas.Prompt) {
	s.pushes.show(&p)
	if p.Decision != nil {
		s.board.resolve(&p, s.clock.now())
		return
	}
	s.board.add(p.Key(), newRequested(&p, s.clock.now()))
}

func (b *board) add(key string, q *requested) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending[key] = q
	for c := range b.clients {
		if c.wants(q.SessionID) {
			c.tell(key, q, true)
		}
	}
}

func (b *board) resolve(p *schemas.Prompt, now time.Time) {
	key := p.Key()
	r := resolved{
		SessionID: p.SessionID, PendingID: p.PendingID, Decision: p.Decision,
		Text: people.Recorded(p.Decision, p),
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, key)
	for c := range b.clients {
		switch {
		case c.told[key] != "":
			delete(c.told, key)
			c.push(message{action: noteResolved, payload: r, live: true})
		case c.sessions[p.SessionID]: // it ended before anybody was asked
			c.push(message{action: noteDecided, payload: newDecided(p, now), live: true})
		}
	}
}

// join lets a client look, unless there are too many or the board is closed.
func (b *board) join(c *client) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.clients) >= maxClients {
		return false
	}
	b.clients[c] = true
	b.tasks.Add(1)
	return true
}

func (b *board) leave(c *client) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.clients, c)
	b.tasks.Done()
}

// subscribe answers first, then tells of what is pending in a session, or of
// all where none is named, in the order in which it was asked.
func (b *board) subscribe(c *client, to received, session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.behind() > maxBehind {
		c.end(websocket.StatusPolicyViolation, tooSlow)
		return
	}
	if session == "" {
		c.inbox = true
	} else if c.sessions[session] = true; len(c.sessions) > maxSessions {
		c.end(websocket.StatusPolicyViolation, "too many sessions: subscribe to the inbox")
		return
	}
	keys := b.inOrder(session)
	keys = slices.DeleteFunc(keys, func(k string) bool { return c.told[k] != "" })
	c.answer(to, subscribed{Success: true, SessionID: session, Pending: len(keys)})
	for _, k := range keys {
		c.tell(k, b.pending[k], false)
	}
}

// unsubscribe ends a client's looking at a session, and forgets what it was
// told of it, unless it sees all.
func (b *board) unsubscribe(c *client, to received, session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(c.sessions, session)
	for key := range c.told {
		if q := b.pending[key]; !c.inbox && q != nil && q.SessionID == session {
			delete(c.told, key)
		}
	}
	c.answer(to, subscribed{Success: true, SessionID: session})
}

// inOrder are the keys of what is pending, of one session where that is named,
// oldest first.
func (b *board) inOrder(session string) []string {
	var keys []string
	for k, q := range b.pending {
		if session == "" || q.SessionID == session {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(x, y string) int { return cmp.Compare(b.pending[x].place, b.pending[y].place) })
	return keys
}

// list is a page of what is pending.
func (b *board) list(session, after string, limit int, now time.Time) listed {
	b.mu.Lock()
	defer b.mu.Unlock()
	page := listed{Permissions: []requested{}, ServerTime: now}
	size, last := 0, ""
	for _, k := range b.inOrder(session) {
		q := *b.pending[k]
		if q.place <= after {
			continue
		}
		if len(page.Permissions) == limit || size > pageBytes {
			page.Next = last
			break
		}
		q.ServerTime, last = now, q.place
		size += len(q.ActionDetails)
		page.Permissions = append(page.Permissions, q)
	}
	return page
}

// drop lets go whoever came with a session that was ended.
func (b *board) drop(session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.clients {
		if c.session.ID == session {
			c.end(websocket.StatusPolicyViolation, loggedOut)
		}
	}
}

// close tells everybody that the inbox goes, and lets nobody in any more.
func (b *board) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for c := range b.clients {
		c.end(websocket.StatusGoingAway, "nod is stopping")
	}
}

// wait waits until every client is gone, or ctx ends.
func (b *board) wait(ctx context.Context) error {
	gone := make(chan struct{})
	go func() { b.tasks.Wait(); close(gone) }()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the web inbox: clients are still there: %w", ctx.Err())
	}
}

// clock is the broker's, as it was read last.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead).UTC()
}

// read takes the broker's time anew. Where that fails the last reading stands.
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
