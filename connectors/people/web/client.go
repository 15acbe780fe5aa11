package web

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/nodbus/nod/schemas"
)

// The limits of one client, and of the number of clients.
const (
	maxClients     = 64
	maxSessions    = 256
	maxBacklog     = 256 // the longest queue of messages, without the pending requests that a subscription sends
	maxCalls       = 16  // the largest number of concurrent calls to nod
	messagesAtOnce = 200
	messagesEach   = 100                                 // the largest number of messages per second
	maxMessage     = schemas.MaxAnswerBytes + (64 << 10) // the longest message, in bytes
	pageBytes      = 4 << 20                             // the longest page of a list, in bytes of payload
	writeWithin    = 30 * time.Second
	callWithin     = 15 * time.Second
	checkEvery     = 15 * time.Second
)

// tooSlow is the reason for closing the connection of a client whose queue is too long.
const tooSlow = "too slow: messages were waiting; connect again for what is pending now"

// loggedOut is the reason for closing the connection of a client whose session has ended.
const loggedOut = "you have logged out"

// outgoing is an envelope in a client's queue. Sending it sets its timestamp.
type outgoing struct {
	id, typ, action string
	payload         any
	live            bool // the message counts towards maxBacklog
}

// client is one WebSocket connection of one user.
type client struct {
	*Server
	session        token
	user, name, id string
	conn           *websocket.Conn
	log            *slog.Logger
	calls          chan struct{}
	rate           *rate.Limiter

	// The hub's lock guards the next fields.
	inbox    bool
	sessions map[string]bool
	sent     map[string]string // the version of each pending request that this client last got, by request key

	mu     sync.Mutex
	queue  []outgoing
	live   int // number of messages in queue whose field live is set
	ended  *websocket.CloseError
	wake   chan struct{}
	locked map[string]bool // sessions whose input lock this client has requested
}

// gateway serves one client until it disconnects.
func (s *Server) gateway(w http.ResponseWriter, r *http.Request) {
	p, name, ok := s.authenticate(w, r)
	if !ok {
		return
	}
	if err := s.clock.read(r.Context(), s.opts.Registry); err != nil {
		refuseErr(w, err)
		return
	}
	c := &client{
		Server: s, session: p, user: p.User, name: name, id: rand.Text(), log: s.opts.Log,
		calls: make(chan struct{}, maxCalls), rate: rate.NewLimiter(messagesEach, messagesAtOnce),
		sessions: map[string]bool{}, sent: map[string]string{}, locked: map[string]bool{}, wake: make(chan struct{}, 1),
	}
	if !s.hub.join(c) {
		refuse(w, http.StatusServiceUnavailable, schemas.Errorf(schemas.CodeUnavailable, "too many clients: close one"))
		return
	}
	defer s.hub.leave(c)
	var err error
	// The handler protect has already checked the origin. Accept checks it again.
	if c.conn, err = websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: s.addr.Origins}); err != nil {
		return // Accept has already replied with the error
	}
	c.conn.SetReadLimit(maxMessage)
	c.run()
}

// run serves the client until either side ends the connection.
func (c *client) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	tasks.Go(func() { defer cancel(); c.write(ctx) })
	tasks.Go(func() { c.keepCurrent(ctx) })
	c.read(ctx)
	c.end(websocket.StatusNormalClosure, "")
	tasks.Wait()
	for range cap(c.calls) { // wait for every running call: each has taken one slot of c.calls
		c.calls <- struct{}{}
	}
	c.leaveSessions()
}

// read handles the client's messages and enforces its rate limit.
func (c *client) read(ctx context.Context) {
	for {
		typ, data, err := c.conn.Read(ctx)
		if err != nil {
			return
		}
		if typ != websocket.MessageText {
			c.end(websocket.StatusUnsupportedData, "send text, in JSON")
			return
		}
		if c.rate.Wait(ctx) != nil {
			return
		}
		c.handle(ctx, data)
	}
}

// subscribedTo reports whether the client gets the requests of a session.
func (c *client) subscribedTo(session string) bool { return c.inbox || c.sessions[session] }

// sendRequest queues a version of a request, unless it has already queued that version for this
// client.
func (c *client) sendRequest(key string, q *requestView, live bool) {
	if c.sent[key] != q.version {
		c.sent[key] = q.version
		c.enqueue(outgoing{action: notifyRequested, payload: q, live: live})
	}
}

func (c *client) reply(to clientMessage, payload any) {
	c.enqueue(outgoing{id: to.ID, typ: typeResponse, action: to.Action, payload: payload, live: true})
}

func (c *client) fail(to clientMessage, f failure) {
	c.enqueue(outgoing{id: to.ID, typ: typeError, action: to.Action, payload: f, live: true})
}

// enqueue queues a message. If the queue then has more than maxBacklog messages whose field live is
// set, it disconnects the client.
func (c *client) enqueue(m outgoing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return
	}
	if m.live {
		if c.live++; c.live > maxBacklog {
			c.endLocked(websocket.StatusPolicyViolation, tooSlow)
			return
		}
	}
	c.queue = append(c.queue, m)
	c.signal()
}

// backlog returns the number of queued messages.
func (c *client) backlog() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// end disconnects the client with a reason, and discards the queued messages.
func (c *client) end(code websocket.StatusCode, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(code, reason)
}

func (c *client) endLocked(code websocket.StatusCode, reason string) {
	if c.ended == nil {
		c.ended, c.queue, c.live = &websocket.CloseError{Code: code, Reason: reason}, nil, 0
		c.signal()
	}
}

func (c *client) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// next removes the first message from the queue and returns it. If end was called, ended is the reason
// for closing the connection.
func (c *client) next() (m outgoing, ok bool, ended *websocket.CloseError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return m, false, c.ended
	}
	m = c.queue[0]
	c.queue[0] = outgoing{}
	c.queue = c.queue[1:]
	if m.live {
		c.live--
	}
	return m, true, nil
}

// write sends the queued messages until end is called. It then closes the connection with the reason.
func (c *client) write(ctx context.Context) {
	for {
		m, ok, ended := c.next()
		switch {
		case ended != nil:
			_ = c.conn.Close(ended.Code, ended.Reason) // fails if the client has gone
			return
		case ok:
			if c.send(ctx, m) != nil {
				_ = c.conn.CloseNow() // fails if the connection is closed already
				return
			}
		default:
			<-c.wake
		}
	}
}

func (c *client) send(ctx context.Context, m outgoing) error {
	now := c.clock.now()
	switch p := m.payload.(type) {
	case *requestView: // copy the view, because all clients share it
		q := *p
		q.ServerTime = now
		m.payload = q
	case resolvedNotice:
		p.ServerTime = now
		m.payload = p
	}
	if m.typ == "" {
		m.typ = typeNotification
	}
	data, err := schemas.Encode(envelope{m.id, m.typ, m.action, m.payload, now})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	return c.conn.Write(ctx, websocket.MessageText, data)
}

// keepCurrent periodically sends the broker's time and the freezes. It disconnects a client if its
// user is no longer an approver or its session has ended.
func (c *client) keepCurrent(ctx context.Context) {
	tick := time.NewTicker(c.opts.Check)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := c.revalidate(ctx)
		switch {
		case errors.Is(err, errLoggedOut):
			c.end(websocket.StatusPolicyViolation, loggedOut)
			return
		case errors.Is(err, &schemas.Error{Code: schemas.CodeForbidden}):
			c.end(websocket.StatusPolicyViolation, "you may not answer here any more")
			return
		}
		frozen, ferr := c.opts.Registry.Freezes(ctx)
		c.enqueue(outgoing{action: notifyTime, payload: timeNotice{c.clock.now(), errors.Join(err, ferr) == nil, freezeViews(frozen)}, live: true})
	}
}

func (c *client) revalidate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	if !time.Now().Before(c.session.Ends) {
		return schemas.Errorf(schemas.CodeForbidden, "the session has ended")
	}
	if _, err := c.checkSession(ctx, c.session); err != nil {
		return err
	}
	return c.clock.read(ctx, c.opts.Registry)
}
