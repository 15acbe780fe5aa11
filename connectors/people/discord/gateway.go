package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/internal/loopback"
)

// The gateway's protocol: https://docs.discord.com/developers/events/gateway.

const (
	opDispatch       = 0
	opHeartbeat      = 1
	opIdentify       = 2
	opResume         = 6
	opReconnect      = 7
	opInvalidSession = 9
	opHello          = 10
	opHeartbeatAck   = 11
)

// The codes with which Discord closes a connection.
const (
	closeTokenRefused    = 4004
	closeInvalidSequence = 4007
	closeSessionTimedOut = 4009
	closeInvalidShard    = 4010 // after a close with a code from this one to closeLast, another attempt fails too
	closeLast            = 4014
)

// closeToResume is the code with which nod closes a connection to resume the session over another
// connection. The codes 1000 and 1001 would end the session.
const closeToResume = 4000

const (
	// maxEvent is the largest message of the gateway in bytes.
	maxEvent = 4 << 20
	// writeWithin is the time limit of a write. greetWithin is the time limit of the gateway's first
	// message.
	writeWithin = 10 * time.Second
	greetWithin = 30 * time.Second
	// A connection is short if it ends within shortFor or cannot be opened. After each further short
	// connection in a row, Run waits resumePause longer before the next connection. After maxShort short
	// connections in a row, Run gives the session up and returns.
	shortFor    = time.Minute
	maxShort    = 5
	resumePause = 500 * time.Millisecond
)

// session contains what nod needs to continue the gateway's events over another connection.
type session struct {
	id      string // empty before the first connection of a session
	address string
	seq     int64 // the number of the last event that nod got in the session
}

// Run receives presses, sent modals and commands. It handles those of one person one after another. If a
// connection ends, Run continues the session over another connection.
//
// nod responds to a press when it has handled the press, or acknowledges the press after ackWithin. A
// press does not count if Discord has already told the person that it failed. If nod cannot be reached,
// Run submits the answer again later, and tells the person the result.
func (c *Carrier) Run(ctx context.Context, desk people.Desk) error {
	address, err := c.gatewayAddress(ctx)
	if err != nil {
		return err
	}
	working, cancel := context.WithCancel(ctx)
	work := people.NewLanes()
	defer work.Wait()
	defer cancel()
	work.Go(func() {
		if err := c.registerCommand(working); err != nil && working.Err() == nil {
			c.log.Warn("discord: the command /nod could not be registered; the buttons work without it", "error", err)
		}
	})
	handle := func(i *interaction) { c.receive(working, desk, work, i) }
	s := session{}
	for short := 0; ; {
		started := time.Now()
		err := c.connect(working, work, handle, address, &s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if short++; time.Since(started) > shortFor {
			short = 1
		}
		if short == maxShort || s.id == "" {
			return err
		}
		c.log.Info("discord: the connection ended; nod continues its session over another one", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(short-1) * resumePause):
		}
	}
}

// gatewayAddress returns the address of the gateway. If Discord allows no new session at the moment,
// the error says for how long.
func (c *Carrier) gatewayAddress(ctx context.Context) (string, error) {
	var r struct {
		URL   string `json:"url"`
		Limit struct {
			Total     int   `json:"total"`
			Remaining int   `json:"remaining"`
			After     int64 `json:"reset_after"` // in milliseconds
		} `json:"session_start_limit"`
	}
	if err := c.api.call(ctx, "get gateway", http.MethodGet, "/gateway/bot", nil, &r); err != nil {
		return "", err
	}
	if r.Limit.Total > 0 && r.Limit.Remaining == 0 {
		after := max(time.Duration(r.Limit.After)*time.Millisecond, time.Second)
		return "", &people.Error{After: after, Err: fmt.Errorf("discord get gateway: the bot has used all %d connections of the day", r.Limit.Total)}
	}
	if !isGateway(r.URL) {
		return "", &people.Error{Err: errors.New("discord get gateway: the reply names no wss:// address")}
	}
	return r.URL, nil
}

// isGateway reports whether an address is safe for the token.
func isGateway(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "wss" || u.Scheme == "ws" && loopback.Is(u.Hostname()))
}

type event struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  int64           `json:"s"`
	Type string          `json:"t"`
}

type conn struct {
	*websocket.Conn
	seq   atomic.Int64
	acked atomic.Bool // Discord has replied to the last heartbeat
}

// connect opens a connection and handles its events until the connection ends. It continues the session
// s, or begins one if s is empty. If the session cannot be resumed, connect empties s.
func (c *Carrier) connect(ctx context.Context, work *people.Lanes, handle func(*interaction), address string, s *session) error {
	if s.id != "" {
		address = s.address
	}
	conn, every, err := c.dial(ctx, address)
	if err != nil {
		return err
	}
	conn.seq.Store(s.seq)
	live, cancel := context.WithCancel(ctx)
	err = conn.greet(live, c.api.token, s)
	if err == nil {
		work.Go(func() { conn.beat(live, every, cancel) })
		err = c.read(live, conn, handle, s)
	}
	if s.id != "" {
		s.seq = conn.seq.Load()
	}
	ended := live.Err() != nil && ctx.Err() == nil
	cancel()
	code := websocket.StatusCode(closeToResume)
	if ctx.Err() != nil {
		code = websocket.StatusNormalClosure
	}
	work.Go(func() { _ = conn.Close(code, "") }) // Close waits for the other side; it fails if the connection is broken
	if ended {
		err = errors.New("no reply to a heartbeat")
	}
	return c.connectionError(err, s)
}

// connectionError converts the error that ended a connection. It empties s if Discord would refuse to
// resume the session.
func (c *Carrier) connectionError(err error, s *session) error {
	switch code := websocket.CloseStatus(err); {
	case code == closeTokenRefused:
		*s = session{}
		return (&apiError{method: "gateway", status: http.StatusUnauthorized}).carrierError()
	case code >= closeInvalidShard && code <= closeLast:
		*s = session{}
		return &people.Error{Permanent: true, Err: fmt.Errorf("discord gateway: Discord closed the connection with the code %d", code)}
	case code == closeInvalidSequence, code == closeSessionTimedOut:
		*s = session{}
	}
	return c.api.NetworkError(fmt.Errorf("gateway: %w", err))
}

// dial opens a connection, and returns it with the time between two heartbeats.
func (c *Carrier) dial(ctx context.Context, address string) (*conn, time.Duration, error) {
	hop, cancel := context.WithTimeout(ctx, greetWithin)
	defer cancel()
	ws, resp, err := websocket.Dial(hop, address+"?v=10&encoding=json", &websocket.DialOptions{HTTPClient: c.api.HTTP})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, 0, ctx.Err()
	case err != nil && resp != nil:
		return nil, 0, &people.Error{Err: fmt.Errorf("discord gateway: the server replied %d", resp.StatusCode)}
	case err != nil:
		return nil, 0, c.api.NetworkError(fmt.Errorf("gateway: %w", err))
	}
	ws.SetReadLimit(maxEvent)
	var hello struct {
		Interval int64 `json:"heartbeat_interval"` // in milliseconds
	}
	e, err := next(hop, ws)
	if err != nil || e.Op != opHello || json.Unmarshal(e.Data, &hello) != nil || hello.Interval < 1 {
		_ = ws.CloseNow() // CloseNow fails if the connection is broken
		return nil, 0, &people.Error{Err: errors.New("discord gateway: the server did not begin with its heartbeat interval")}
	}
	return &conn{Conn: ws}, time.Duration(hello.Interval) * time.Millisecond, nil
}

func next(ctx context.Context, ws *websocket.Conn) (e event, err error) {
	_, data, err := ws.Read(ctx)
	if err != nil {
		return e, err
	}
	return e, json.Unmarshal(data, &e)
}

// greet begins or resumes a session.
func (c *conn) greet(ctx context.Context, token string, s *session) error {
	if s.id != "" {
		return c.say(ctx, opResume, map[string]any{"token": token, "session_id": s.id, "seq": s.seq})
	}
	return c.say(ctx, opIdentify, map[string]any{
		"token": token, "intents": 0, "properties": map[string]string{"os": runtime.GOOS, "browser": Name, "device": "nod"},
	})
}

func (c *conn) say(ctx context.Context, op int, data any) error {
	text, err := json.Marshal(map[string]any{"op": op, "d": data})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	return c.Write(ctx, websocket.MessageText, text)
}

func (c *conn) heartbeat(ctx context.Context) error {
	var seq any // null in JSON before the first event
	if n := c.seq.Load(); n > 0 {
		seq = n
	}
	return c.say(ctx, opHeartbeat, seq)
}

// beat sends heartbeats. It calls the function end if Discord does not reply to a heartbeat, for example
// after this machine was asleep.
func (c *conn) beat(ctx context.Context, every time.Duration, end context.CancelFunc) {
	c.acked.Store(true)
	wait := time.NewTimer(time.Duration(rand.Float64() * float64(every))) // Discord asks for a random delay before the first heartbeat
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		if !c.acked.Swap(false) || c.heartbeat(ctx) != nil {
			end()
			return
		}
		wait.Reset(every)
	}
}

// read handles the events of a connection until it ends.
func (c *Carrier) read(ctx context.Context, conn *conn, handle func(*interaction), s *session) error {
	for {
		e, err := next(ctx, conn.Conn)
		if err != nil {
			return err
		}
		switch e.Op {
		case opHeartbeat:
			err = conn.heartbeat(ctx)
		case opHeartbeatAck:
			conn.acked.Store(true)
		case opReconnect:
			return errors.New("the server asks for another connection")
		case opInvalidSession:
			var again bool
			if json.Unmarshal(e.Data, &again) != nil || !again {
				*s = session{}
			}
			return errors.New("the server ended the session")
		case opDispatch:
			conn.seq.Store(max(e.Seq, conn.seq.Load()))
			c.dispatch(&e, handle, s)
		}
		if err != nil {
			return err
		}
	}
}

// dispatch handles an event. It passes presses, sent modals and commands to handle.
func (c *Carrier) dispatch(e *event, handle func(*interaction), s *session) {
	switch e.Type {
	case "READY":
		var ready struct {
			Session string `json:"session_id"`
			Address string `json:"resume_gateway_url"`
		}
		if json.Unmarshal(e.Data, &ready) == nil && isGateway(ready.Address) {
			s.id, s.address = ready.Session, ready.Address
		}
		c.log.Info("discord: connected")
	case "INTERACTION_CREATE":
		var i interaction
		if json.Unmarshal(e.Data, &i) != nil || i.person() == "" {
			c.log.Warn("discord: dropped a press of an unexpected form")
			return
		}
		handle(&i)
	}
}
