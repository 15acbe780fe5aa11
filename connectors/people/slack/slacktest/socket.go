package slacktest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/coder/websocket"
)

// sent is an envelope that the server has sent, with the person who caused it.
type sent struct {
	data    []byte
	by      *person
	about   *trigger
	timeout *time.Timer
}

// maxConns is the number of connections that one app may have.
const maxConns = 10

// socket serves a connection of Socket Mode. The address with its ticket is valid only once.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	good := s.tickets[ticket] && len(s.conns) < maxConns
	delete(s.tickets, ticket)
	s.mu.Unlock()
	if !good {
		http.Error(w, "the ticket is used or unknown", http.StatusForbidden)
		return
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has replied with the error
	}
	c := &conn{Conn: ws}
	s.mu.Lock()
	s.conns = append(s.conns, c)
	connections := len(s.conns)
	s.mu.Unlock()
	c.say(map[string]any{"type": "hello", "num_connections": connections, "connection_info": map[string]any{"app_id": "A1"}})
	for {
		_, data, err := ws.Read(context.Background())
		if err != nil {
			s.mu.Lock()
			s.conns = slices.DeleteFunc(s.conns, func(other *conn) bool { return other == c })
			s.mu.Unlock()
			return
		}
		s.acknowledged(data)
	}
}

func (c *conn) say(message map[string]any) {
	data, err := json.Marshal(message)
	if err != nil {
		panic(err) // an error means that the test itself is broken
	}
	c.write(data)
}

func (c *conn) write(data []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = c.Write(ctx, websocket.MessageText, data) // Write fails if the client is gone
}

// acknowledged handles an acknowledgement. If the envelope was a filled-in dialog, the
// acknowledgement closes the dialog or shows errors in it.
func (s *Server) acknowledged(data []byte) {
	var ack struct {
		ID      string `json:"envelope_id"`
		Payload *struct {
			Action string            `json:"response_action"`
			Errors map[string]string `json:"errors"`
		} `json:"payload"`
	}
	f := strict(data, &ack)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.waiting[ack.ID]
	switch {
	case f != nil:
		s.rejected = append(s.rejected, "acknowledgement: "+f.detail)
		return
	case e == nil:
		return // the envelope was sent twice, and this is its second acknowledgement
	}
	e.timeout.Stop()
	delete(s.waiting, ack.ID)
	s.confirmed = append(s.confirmed, e)
	if e.about == nil || e.about.submits == nil {
		return
	}
	if ack.Payload != nil && ack.Payload.Action == "errors" {
		for _, text := range ack.Payload.Errors {
			e.by.read = append(e.by.read, Read{Text: text})
		}
		e.about.submits.sent = false
		return
	}
	if e.by.view == e.about.submits { // if not equal, the person has opened another dialog since then
		e.by.view = nil
	}
}

// push sends an envelope over the newest connection. If there is no connection, the person reads
// at once that the app did not respond.
func (s *Server) push(by *person, kind string, about *trigger, payload map[string]any) {
	s.lastID++
	id := fmt.Sprint("envelope-", s.lastID)
	data, err := json.Marshal(map[string]any{"envelope_id": id, "type": kind, "accepts_response_payload": true, "payload": payload})
	if err != nil {
		panic(err) // an error means that the test itself is broken
	}
	to := s.newest()
	if to == nil {
		by.read = append(by.read, Read{Text: NoResponse})
		return
	}
	e := &sent{data: data, by: by, about: about}
	s.waiting[id] = e
	e.timeout = time.AfterFunc(ackWithin, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.waiting[id] == e {
			by.read = append(by.read, Read{Text: NoResponse})
		}
	})
	go to.write(data)
}

func (s *Server) newest() *conn {
	for _, c := range slices.Backward(s.conns) {
		if !c.closing {
			return c
		}
	}
	return nil
}

// NoResponse is the text that Slack shows to a person if no app acknowledges the person's press.
const NoResponse = "This app did not respond."

// Connected returns the number of connections, without those that the server has asked the app to
// replace.
func (s *Server) Connected() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		if !c.closing {
			n++
		}
	}
	return n
}

// Unconfirmed returns the number of envelopes without an acknowledgement.
func (s *Server) Unconfirmed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting)
}

// Disconnect asks the app to open another connection, as Slack does every few hours. The parameter reason
// is warning, refresh_requested or link_disabled. The present connections stay open until Drop.
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	all := slices.Clone(s.conns)
	for _, c := range all {
		c.closing = true
	}
	s.mu.Unlock()
	for _, c := range all {
		c.say(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "h"}})
	}
}

// Drop closes all connections without any message to the app.
func (s *Server) Drop() {
	s.mu.Lock()
	all := slices.Clone(s.conns)
	s.conns = nil
	s.mu.Unlock()
	for _, c := range all {
		_ = c.CloseNow() // CloseNow fails if the client is gone
	}
}

// Replay sends every acknowledged envelope again.
func (s *Server) Replay() {
	s.mu.Lock()
	to, all := s.newest(), slices.Clone(s.confirmed)
	s.mu.Unlock()
	for _, e := range all {
		to.write(e.data)
	}
}
