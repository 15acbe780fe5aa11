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
	messagesEach   = 100                                 // the largest number of messages that a client may send in a second
	maxMessage     = schemas.MaxAnswerBytes + (64 << 10) // the longest message that a client may send, in bytes
	pageBytes      = 4 << 20                             // the longest page of a list, in bytes of the requests' payloads
	writeWithin    = 30 * time.Second
	callWithin     = 15 * time.Second
	checkEvery     = 15 * time.Second
)

// tooSlow is the reason for closing the connection of a client whose queue is too long.
const tooSlow = "too slow: messages were waiting; connect again for what is pending now"

// lapsed is the reason for closing the connection of a client whose login the issuer has not
// confirmed for too long. The page connects again as soon as it can.
const lapsed = "the issuer of your login cannot be asked"

// loggedOut is the reason for closing the connection of a client whose session has ended.
const loggedOut = "you have logged out"

// outgoing is an envelope in a client's queue. Its timestamp is set when it is sent.
type outgoing struct {
	id, typ, action string
	payload         any
	live            bool // the message counts towards maxBacklog, the limit at which a slow client is disconnected
	fresh           bool // the message is about a request that arrived after the client's subscription
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

	wakeLoad chan struct{} // a value in this channel wakes the goroutine load

	subscription // guarded by the hub's lock

	mu     sync.Mutex
	queue  []outgoing
	live   int // number of messages in queue whose field live is set
	ended  *websocket.CloseError
	wake   chan struct{}
	empty  chan struct{}   // gets a value when the queue becomes empty
	counts bool            // a message with the number of unlisted requests is in the queue
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
		subscription: subscription{sessions: map[string]bool{}, sent: map[string]sentVersion{}},
		locked:       map[string]bool{}, wake: make(chan struct{}, 1), empty: make(chan struct{}, 1), wakeLoad: make(chan struct{}, 1),
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
	tasks.Go(func() { c.load(ctx) })
	tasks.Go(func() { c.endAtLapse(ctx) })
	c.read(ctx)
	c.end(websocket.StatusNormalClosure, "")
	tasks.Wait()
	for range cap(c.calls) { // each running call has taken a slot of c.calls: wait until all slots are free
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

// sendRequest queues a message about a pending request for the client. The parameter view is the form of
// the request that the client gets, and m contains the other fields of the message. If the client already
// has this version of the request or a newer one, sendRequest does nothing. The caller holds the hub's
// lock.
func (c *client) sendRequest(p *schemas.Prompt, view *requestView, m outgoing) {
	key := p.Key()
	last := c.sent[key]
	if p.Revision < last.revision || view.version == last.text {
		return
	}
	c.sent[key] = sentVersion{p.Revision, view.version}
	m.action, m.payload = notifyRequested, view
	c.enqueue(m)
}

// enqueueCount queues a message with the number of unlisted requests, unless such a message is
// already in the queue.
func (c *client) enqueueCount() {
	c.mu.Lock()
	queued := c.counts
	c.counts = true
	c.mu.Unlock()
	if !queued {
		c.enqueue(outgoing{action: notifyCount, payload: countNotice{}})
	}
}

func (c *client) reply(to clientMessage, payload any) {
	c.enqueue(outgoing{id: to.ID, typ: typeResponse, action: to.Action, payload: payload, live: true})
}

func (c *client) fail(to clientMessage, f failure) {
	c.enqueue(outgoing{id: to.ID, typ: typeError, action: to.Action, payload: f, live: true})
}

// enqueue queues a message. If the queue then has more than maxBacklog messages whose field live
// is set, the client is too slow, and enqueue disconnects it.
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

func (c *client) signal() { signalOn(c.wake) }

// signalOn sends to a channel that holds one value, unless the channel is full.
func signalOn(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// awaitQueue returns when the queue is empty. If ctx ends first, it returns an error.
func (c *client) awaitQueue(ctx context.Context) error {
	for c.backlog() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.empty:
		}
	}
	return nil
}

// next removes the first message from the queue and returns it. If the client was disconnected by the
// method end, the result ended is the reason for closing the connection.
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
	if m.action == notifyCount {
		c.counts = false
	}
	if len(c.queue) == 0 {
		signalOn(c.empty)
	}
	return m, true, nil
}

// write sends the queued messages until the method end is called, and then closes the connection with the
// reason.
func (c *client) write(ctx context.Context) {
	for {
		m, ok, ended := c.next()
		switch {
		case ended != nil:
			_ = c.conn.Close(ended.Code, ended.Reason) // Close fails if the client has gone
			return
		case ok:
			if c.send(ctx, m) != nil {
				_ = c.conn.CloseNow() // CloseNow fails if the connection is already closed
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
		q.ServerTime, q.New = now, m.fresh
		m.payload = q
	case resolvedNotice:
		p.ServerTime = now
		m.payload = p
	case countNotice:
		m.payload = c.hub.count(c, now)
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
		case errors.Is(err, &schemas.Error{Code: schemas.CodeUnauthorized}):
			why := loggedOut
			if schemas.IsLoginUser(c.user) {
				why = "your login has ended"
			}
			c.end(websocket.StatusPolicyViolation, why)
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

// never is a duration that is longer than any connection lasts.
const never = 365 * 24 * time.Hour

// untilLapse returns how long the client's login still counts without another check. A session
// without a login at an issuer does not lapse.
func (c *client) untilLapse() time.Duration {
	if !schemas.IsLoginUser(c.user) {
		return never
	}
	return c.logins.lasts - c.clock.now().Sub(c.logins.checkedAt(c.session.ID))
}

// endAtLapse disconnects the client when its login no longer counts, even while a check is running.
func (c *client) endAtLapse(ctx context.Context) {
	for left := c.untilLapse(); left > 0; left = c.untilLapse() {
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
	c.end(websocket.StatusTryAgainLater, lapsed)
}

// checkLapsed returns UNAVAILABLE for a client whose login no longer counts.
func (c *client) checkLapsed() error {
	if c.untilLapse() > 0 {
		return nil
	}
	return schemas.Errorf(schemas.CodeUnavailable, "%s", lapsed)
}
