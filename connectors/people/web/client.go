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

// The limits of one client, and how many there may be.
const (
	maxClients     = 64
	maxSessions    = 256
	maxBehind      = 256 // messages that wait, beside what was pending when it subscribed
	maxCalls       = 16  // requests to nod at once
	messagesAtOnce = 200
	messagesEach   = 100                                 // a second
	maxMessage     = schemas.MaxAnswerBytes + (64 << 10) // bytes
	pageBytes      = 4 << 20                             // of payloads in one list
	writeWithin    = 30 * time.Second
	callWithin     = 15 * time.Second
	checkEvery     = 15 * time.Second
)

// tooSlow is why a client that does not read is let go.
const tooSlow = "too slow: messages were waiting; connect again for what is pending now"

// loggedOut is why a client of a session that was ended is.
const loggedOut = "you have logged out"

// message is one envelope that waits to be sent. The time in it is set then.
type message struct {
	id, typ, action string
	payload         any
	live            bool // counts against maxBehind
}

// client is one WebSocket of one person.
type client struct {
	*Server
	session        pass
	user, name, id string
	conn           *websocket.Conn
	log            *slog.Logger
	calls          chan struct{}
	rate           *rate.Limiter

	// Under the board's lock.
	inbox    bool
	sessions map[string]bool
	told     map[string]string // the versions it was told of, by key, of what has not ended

	mu     sync.Mutex
	queue  []message
	live   int // of them
	ended  *websocket.CloseError
	wake   chan struct{}
	locked map[string]bool // sessions whose lock it has asked for
}

// gateway serves one client for as long as it stays.
func (s *Server) gateway(w http.ResponseWriter, r *http.Request) {
	p, name, ok := s.who(w, r)
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
		sessions: map[string]bool{}, told: map[string]string{}, locked: map[string]bool{}, wake: make(chan struct{}, 1),
	}
	if !s.board.join(c) {
		refuse(w, http.StatusServiceUnavailable, schemas.Errorf(schemas.CodeUnavailable, "too many clients: close one"))
		return
	}
	defer s.board.leave(c)
	var err error
	// The guard has looked at the origin; the library looks again.
	if c.conn, err = websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: s.addr.Origins}); err != nil {
		return // it has answered
	}
	c.conn.SetReadLimit(maxMessage)
	c.run()
}

// run serves until the client goes, or is let go.
func (c *client) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	tasks.Go(func() { defer cancel(); c.write(ctx) })
	tasks.Go(func() { c.check(ctx) })
	c.read(ctx)
	c.end(websocket.StatusNormalClosure, "")
	tasks.Wait()
	for range cap(c.calls) { // every call has ended
		c.calls <- struct{}{}
	}
	c.unlockAll()
}

// read handles what the client sends, as fast as it may.
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

// wants reports whether the client looks at a session.
func (c *client) wants(session string) bool { return c.inbox || c.sessions[session] }

// tell queues a request that the client was not told of as it is now.
func (c *client) tell(key string, q *requested, live bool) {
	if c.told[key] != q.version {
		c.told[key] = q.version
		c.push(message{action: noteRequested, payload: q, live: live})
	}
}

func (c *client) answer(to received, payload any) {
	c.push(message{id: to.ID, typ: typeResponse, action: to.Action, payload: payload, live: true})
}

func (c *client) fail(to received, f failure) {
	c.push(message{id: to.ID, typ: typeError, action: to.Action, payload: f, live: true})
}

// push queues a message, or lets a client go that does not read.
func (c *client) push(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return
	}
	if m.live {
		if c.live++; c.live > maxBehind {
			c.endLocked(websocket.StatusPolicyViolation, tooSlow)
			return
		}
	}
	c.queue = append(c.queue, m)
	c.signal()
}

// behind is how much waits to be sent.
func (c *client) behind() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// end lets the client go with a reason, in place of what it has not read.
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

// take is what to send next, or how it ended.
func (c *client) take() (m message, ok bool, ended *websocket.CloseError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return m, false, c.ended
	}
	m = c.queue[0]
	c.queue[0] = message{}
	c.queue = c.queue[1:]
	if m.live {
		c.live--
	}
	return m, true, nil
}

// write sends what is queued, then the reason why it ended.
func (c *client) write(ctx context.Context) {
	for {
		m, ok, ended := c.take()
		switch {
		case ended != nil:
			_ = c.conn.Close(ended.Code, ended.Reason) // one that is gone needs no reason
			return
		case ok:
			if c.send(ctx, m) != nil {
				_ = c.conn.CloseNow() // it is closed already
				return
			}
		default:
			<-c.wake
		}
	}
}

func (c *client) send(ctx context.Context, m message) error {
	now := c.clock.now()
	switch p := m.payload.(type) {
	case *requested: // shared by all clients
		q := *p
		q.ServerTime = now
		m.payload = q
	case resolved:
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

// check says now and then what time it is, and lets go whom the settings or
// the session's end let in no longer.
func (c *client) check(ctx context.Context) {
	tick := time.NewTicker(c.opts.Check)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := c.stillIn(ctx)
		switch {
		case errors.Is(err, errLoggedOut):
			c.end(websocket.StatusPolicyViolation, loggedOut)
			return
		case errors.Is(err, &schemas.Error{Code: schemas.CodeForbidden}):
			c.end(websocket.StatusPolicyViolation, "you may not answer here any more")
			return
		}
		frozen, ferr := c.opts.Registry.Freezes(ctx)
		c.push(message{action: noteTime, payload: ticked{c.clock.now(), errors.Join(err, ferr) == nil, brakes(frozen)}, live: true})
	}
}

func (c *client) stillIn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	if !time.Now().Before(c.session.Ends) {
		return schemas.Errorf(schemas.CodeForbidden, "the session has ended")
	}
	if _, err := c.counts(ctx, c.session); err != nil {
		return err
	}
	return c.clock.read(ctx, c.opts.Registry)
}
