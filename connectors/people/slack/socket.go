package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/internal/loopback"
)

const (
	// maxEnvelope is the largest message of Socket Mode, in bytes. Such a message about a press
	// contains the whole message with the pressed button.
	maxEnvelope = 4 << 20
	// pingEvery is the time between two checks of the connection, and writeWithin the time limit of a
	// check and of an acknowledgement.
	pingEvery   = 20 * time.Second
	writeWithin = 10 * time.Second
	// drainFor is how long nod still reads from a connection that Slack is about to close, for
	// presses that Slack has already sent there.
	drainFor = time.Minute
	// ackWithin is the time after which nod acknowledges a press even if it has not handled the
	// press yet. Without an acknowledgement within 3 s, Slack tells the person that the app did
	// not respond.
	ackWithin = time.Second
)

// Run receives presses, sent dialogs and commands. If Slack asks for a new connection, Run opens it
// before the old connection closes.
//
// nod acknowledges a press when it has handled the press, but at the latest after ackWithin. Slack does
// not repeat an unacknowledged press, but tells the person that the press failed. If nod cannot be
// reached, Run submits the answer again later, and tells the person the result.
func (c *Carrier) Run(ctx context.Context, desk people.Desk) error {
	working, cancel := context.WithCancel(ctx)
	work := people.NewLanes()
	defer work.Wait()
	defer cancel()
	for {
		if err := c.connect(working, desk, work); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
	}
}

var errLinkDisabled = errors.New("slack: Socket Mode is switched off: switch it on under Socket Mode of the app at https://api.slack.com/apps")

// connect opens a connection and reads from it. If Slack asks for a new connection, connect returns nil,
// and a goroutine of the lanes in work reads the remaining messages of the old connection.
func (c *Carrier) connect(ctx context.Context, desk people.Desk, work *people.Lanes) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	live, cancel := context.WithCancel(ctx)
	work.Go(func() { ping(live, conn, cancel) })
	err = c.read(live, conn, desk, work)
	if err == nil {
		work.Go(func() {
			hop, stop := context.WithTimeout(live, drainFor)
			defer stop()
			for c.read(hop, conn, desk, work) == nil { // read the remaining messages until Slack closes the connection
			}
			cancel()
			_ = conn.CloseNow() // CloseNow fails if the connection is already closed
		})
		return nil
	}
	cancel()
	_ = conn.Close(websocket.StatusNormalClosure, "") // Close fails if the connection is broken
	if errors.Is(err, errLinkDisabled) {
		return &people.Error{Permanent: true, Err: err}
	}
	return c.api.NetworkError(fmt.Errorf("socket mode: %w", err))
}

// dial opens a connection to the address that Slack returns. The address contains a secret, so no
// error contains the address.
func (c *Carrier) dial(ctx context.Context) (*websocket.Conn, error) {
	r, err := c.api.callWith(ctx, c.api.appToken, "apps.connections.open", struct{}{})
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Scheme != "wss" && !(u.Scheme == "ws" && loopback.Is(u.Hostname())) {
		return nil, &people.Error{Err: errors.New("slack apps.connections.open: the reply names no wss:// address")}
	}
	hop, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, resp, err := websocket.Dial(hop, r.URL, &websocket.DialOptions{HTTPClient: c.api.HTTP})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && resp != nil:
		return nil, &people.Error{Err: fmt.Errorf("slack socket mode: the server replied %d", resp.StatusCode)}
	case err != nil: // the error is replaced, because it contains the address
		return nil, &people.Error{Err: errors.New("slack socket mode: the connection could not be opened")}
	}
	conn.SetReadLimit(maxEnvelope)
	return conn, nil
}

// ping calls the function end if the other side no longer replies, for example after this machine was
// asleep.
func ping(ctx context.Context, conn *websocket.Conn, end context.CancelFunc) {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		hop, cancel := context.WithTimeout(ctx, writeWithin)
		err := conn.Ping(hop)
		cancel()
		if err != nil {
			end()
			return
		}
	}
}

// read handles the messages of a connection. It returns nil if Slack asks for a new connection.
func (c *Carrier) read(ctx context.Context, conn *websocket.Conn, desk people.Desk, work *people.Lanes) error {
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		var e envelope
		if json.Unmarshal(data, &e) != nil {
			c.log.Warn("slack: dropped a message of an unexpected form")
			continue
		}
		switch {
		case e.Type == "disconnect" && e.Reason == "link_disabled":
			return errLinkDisabled
		case e.Type == "disconnect":
			return nil
		case e.ID == "":
			continue // the message "hello", which needs no reply
		}
		ack := c.acknowledge(ctx, conn, e.ID)
		person := e.Payload.person()
		if person == "" || e.Type != "interactive" && e.Type != "slash_commands" {
			ack(nil) // nod handles no messages of this type
			continue
		}
		came, stop := time.Now(), people.After(ackWithin, func() { ack(nil) })
		if !work.Do(person, func() { defer stop(); c.handle(ctx, desk, &e, came, ack) }) {
			stop()
			c.log.Warn("slack: dropped a press, because too many of this person wait", "user", person)
		}
	}
}

// acknowledge returns a function that acknowledges an envelope with a payload. Only the first call of the
// function has an effect; later calls return false.
func (c *Carrier) acknowledge(ctx context.Context, conn *websocket.Conn, id string) func(payload any) bool {
	var once sync.Once
	return func(payload any) (first bool) {
		once.Do(func() {
			first = true
			data, err := json.Marshal(map[string]any{"envelope_id": id, "payload": payload})
			if payload == nil {
				data, err = json.Marshal(map[string]any{"envelope_id": id})
			}
			hop, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
			defer cancel()
			if err == nil {
				err = conn.Write(hop, websocket.MessageText, data)
			}
			if err != nil {
				c.log.Info("slack: a press was not acknowledged; the person reads that the app did not respond", "error", c.api.Clean(err.Error()))
			}
		})
		return first
	}
}
