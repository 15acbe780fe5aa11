package web

import (
	"context"
	"errors"
	"time"

	"github.com/coder/websocket"

	"github.com/nodbus/nod/schemas"
)

// loadAtOnce is the number of requests that are read from nod together for one client.
const loadAtOnce = 16

// subscription contains the subscriptions of a client, and the versions of requests that the client got.
// The hub's lock guards it.
type subscription struct {
	inbox    bool
	sessions map[string]bool
	// window is the largest number of pending requests that the client gets through its subscription to
	// the inbox. 0 means that it gets all. Subscriptions to sessions have no limit.
	window int
	// sent contains, by request key, the last version that the client got of each pending
	// request. For a request that was announced but not sent yet it contains the zero version.
	sent map[string]sentVersion
	// unlisted is the number of pending requests beyond the window, as last sent to the client.
	unlisted int
	// announced contains the requests that the client's goroutine load must read from nod and
	// send, in this order. Some of them may have ended, or have been sent another way.
	announced []*pendingRow
}

// sentVersion identifies a version of a request. Its text changes if the page must show something else.
type sentVersion struct {
	revision uint64
	text     string
}

// takes reports whether the client must get a new version of a request. This is so if the client has an
// earlier version, subscribes to the request's session, or has room in its window.
func (s *subscription) takes(r *pendingRow) bool {
	_, has := s.sent[r.key]
	return has || s.sessions[r.session()] || s.inbox && (s.window == 0 || len(s.sent) < s.window)
}

// subscribe subscribes a client to a session or, if session is empty, to the inbox. It announces at most
// limit pending requests that the client has not got; a limit of 0 means all. subscribe first sends the
// reply with the number of these requests. The client's goroutine load then sends the requests, oldest
// first.
func (b *hub) subscribe(c *client, to clientMessage, session string, limit int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.backlog() > maxBacklog {
		c.end(websocket.StatusPolicyViolation, tooSlow)
		return
	}
	if session == "" {
		c.inbox, c.window = true, limit
	} else if c.sessions[session] = true; len(c.sessions) > maxSessions {
		c.end(websocket.StatusPolicyViolation, "too many sessions: subscribe to the inbox")
		return
	}
	n := 0
	if free := limit - len(c.sent); limit == 0 || free > 0 {
		n = b.announce(c, session, max(0, free))
	}
	c.unlisted = b.unlisted(c)
	c.reply(to, subscribeReply{Success: true, SessionID: session, Pending: n, Unlisted: c.unlisted})
	c.signalLoad() // the reply is already queued, so the requests follow it
}

// announce adds to c.announced at most limit pending requests that the client has not got; a limit of 0
// means all. It returns the number of added requests. The caller holds the hub's lock, and must then call
// signalLoad.
func (b *hub) announce(c *client, session string, limit int) int {
	rows, _ := b.pending.after("", session, limit, func(r *pendingRow) bool {
		_, has := c.sent[r.key]
		return !has
	})
	for _, r := range rows {
		c.sent[r.key] = sentVersion{}
	}
	c.announced = append(c.announced, rows...)
	return len(rows)
}

// refill announces further pending requests to a client if more than half of its window is free.
func (b *hub) refill(c *client) {
	if free := c.window - len(c.sent); c.inbox && c.window > 0 && free > c.window/2 && len(b.pending.rows) > len(c.sent) {
		b.announce(c, "", free)
		c.signalLoad()
	}
}

// unsubscribe ends a client's subscription to a session. If the client does not subscribe to the
// inbox, unsubscribe also forgets what the client got, so that a later subscription sends the
// session's pending requests again.
func (b *hub) unsubscribe(c *client, to clientMessage, session string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(c.sessions, session)
	for key := range c.sent {
		if of, _ := schemas.SplitKey(key); !c.inbox && of == session {
			delete(c.sent, key)
		}
	}
	c.reply(to, subscribeReply{Success: true, SessionID: session, Unlisted: b.unlisted(c)})
}

// unlisted returns the number of pending requests that a subscription to the inbox has not sent
// to the client because of its limit. Without such a subscription it returns 0. The caller holds
// the hub's lock.
func (b *hub) unlisted(c *client) int {
	if !c.inbox {
		return 0
	}
	return len(b.pending.rows) - len(c.sent)
}

// recount queues a message with the number of unlisted requests, if this number has changed. One queued
// message is enough, because the message gets the number only when it is sent. The caller holds the hub's
// lock.
func (b *hub) recount(c *client) {
	n := b.unlisted(c)
	if n == c.unlisted {
		return
	}
	c.unlisted = n
	c.enqueueCount()
}

// count returns the content of the message that enqueueCount has queued, with the present number of
// unlisted requests.
func (b *hub) count(c *client, now time.Time) countNotice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return countNotice{b.unlisted(c), now}
}

// page returns one page of the pending requests, oldest first, and the cursor of the next page. The page
// begins after the cursor in the parameter after.
func (b *hub) page(session, after string, limit int) (rows []*pendingRow, next string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rows, more := b.pending.after(after, session, limit, anyRow)
	if more {
		next = rows[len(rows)-1].cursor()
	}
	return rows, next
}

// nextAnnounced removes requests from c.announced and returns those that are still pending and not sent
// yet. It stops when it has found n such requests or c.announced is empty.
func (b *hub) nextAnnounced(c *client, n int) (rows []*pendingRow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(c.announced) > 0 && len(rows) < n {
		r := c.announced[0]
		c.announced = c.announced[1:]
		if v, announced := c.sent[r.key]; announced && v == (sentVersion{}) && !r.ended {
			rows = append(rows, r)
		}
	}
	if len(c.announced) == 0 {
		c.announced = nil // free the memory of the empty list
	}
	return rows
}

// sendLoaded sends announced requests that were read from nod. It omits a request that has ended since it
// was read, and one that the client has got in another way.
func (b *hub) sendLoaded(c *client, prompts []*schemas.Prompt, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range prompts {
		if v, announced := c.sent[p.Key()]; announced && v == (sentVersion{}) {
			c.sendRequest(p, b.views.of(p, now), outgoing{})
		}
	}
}

// load sends the announced requests until ctx ends. It reads them in groups, each after the
// client has received the previous group, so that requests for a slow client do not fill the
// memory. If nod cannot be reached, it disconnects the client, which then connects and subscribes
// again.
func (c *client) load(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wakeLoad:
		}
		for rows := c.hub.nextAnnounced(c, loadAtOnce); len(rows) > 0; rows = c.hub.nextAnnounced(c, loadAtOnce) {
			prompts, err := c.readRows(ctx, rows)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				c.end(websocket.StatusTryAgainLater, "the pending requests could not be read")
				return
			}
			c.hub.sendLoaded(c, prompts, c.clock.now())
			if c.awaitQueue(ctx) != nil {
				return
			}
		}
	}
}

func (c *client) signalLoad() { signalOn(c.wakeLoad) }

// readRows reads the requests of these rows from nod, all at the same time. It omits requests that have
// ended.
func (s *Server) readRows(ctx context.Context, rows []*pendingRow) ([]*schemas.Prompt, error) {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	type result struct {
		prompt *schemas.Prompt
		err    error
	}
	results := make([]chan result, len(rows))
	for i, r := range rows {
		results[i] = make(chan result, 1)
		go func() {
			session, id := schemas.SplitKey(r.key)
			p, _, err := s.opts.Desk.Show(ctx, session, id)
			results[i] <- result{&p, err}
		}()
	}
	var prompts []*schemas.Prompt
	var errs []error
	for i, r := range rows {
		read := <-results[i]
		switch {
		case errors.Is(read.err, &schemas.Error{Code: schemas.CodeNotFound}):
		case read.err != nil:
			errs = append(errs, read.err)
		case read.prompt.Decision == nil && read.prompt.Key() == r.key:
			prompts = append(prompts, read.prompt)
		}
	}
	return prompts, errors.Join(errs...)
}

// listPending replies with one page of the pending requests.
func (c *client) listPending(ctx context.Context, m clientMessage, a actionPayload) {
	rows, next := c.hub.page(a.SessionID, a.After, a.Limit)
	now := c.clock.now()
	page := listReply{Permissions: []requestView{}, ServerTime: now}
	for size := 0; len(rows) > 0; {
		some := rows[:min(loadAtOnce, len(rows))]
		rows = rows[len(some):]
		prompts, err := c.readRows(ctx, some)
		if err != nil {
			c.fail(m, failureOf(err))
			return
		}
		for _, p := range prompts {
			q := *c.hub.views.of(p, now)
			q.ServerTime = now
			page.Permissions = append(page.Permissions, q)
			if size += len(q.ActionDetails); size > pageBytes {
				page.Next = rowOf(p).cursor()
				c.reply(m, page)
				return
			}
		}
	}
	page.Next = next
	c.reply(m, page)
}
