package discordtest

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// session is a session of the gateway. Discord keeps its events, because the bot may resume the session
// over another connection.
type session struct {
	id     string
	events [][]byte
	conn   *websocket.Conn // nil while the session has no connection
}

// message types of the gateway.
const (
	opDispatch, opHeartbeat, opIdentify, opResume    = 0, 1, 2, 6
	opReconnect, opInvalidSession, opHello, opBeaten = 7, 9, 10, 11
)

func (s *Server) gatewayURL(path string) string {
	return "ws" + strings.TrimPrefix(s.http.URL, "http") + path
}

func (s *Server) getGateway([]string, []byte) (any, *failure) {
	remaining := 1000
	if s.starts >= 0 {
		remaining = s.starts
	}
	return map[string]any{
		"url": s.gatewayURL("/gateway"), "shards": 1,
		"session_start_limit": map[string]any{"total": 1000, "remaining": remaining, "reset_after": 3600_000, "max_concurrency": 1},
	}, nil
}

type incoming struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
}

// socket serves a connection of the gateway.
func (s *Server) socket(w http.ResponseWriter, r *http.Request) {
	if q := r.URL.Query(); q.Get("v") != "10" || q.Get("encoding") != "json" {
		http.Error(w, "this server speaks version 10 in JSON", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	held := s.held
	s.mu.Unlock()
	if held != nil {
		<-held
	}
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has replied with the error
	}
	s.mu.Lock()
	interval := s.interval
	s.mu.Unlock()
	say(ws, map[string]any{"op": opHello, "d": map[string]any{"heartbeat_interval": interval.Milliseconds()}, "s": nil, "t": nil})
	var current *session
	for {
		_, data, err := ws.Read(context.Background())
		if err != nil {
			s.disconnected(current, ws, websocket.CloseStatus(err))
			return
		}
		var m incoming
		if f := strict(data, &m); f != nil {
			s.reject("gateway: " + f.message)
			_ = ws.Close(4002, "Error while decoding payload") // Close fails if the client is gone
			return
		}
		switch m.Op {
		case opHeartbeat:
			s.mu.Lock()
			s.beats++
			deaf := s.deaf
			s.mu.Unlock()
			if !deaf {
				say(ws, map[string]any{"op": opBeaten})
			}
		case opIdentify:
			current = s.identify(ws, m.Data)
		case opResume:
			current = s.resume(ws, m.Data)
		default:
			s.reject("gateway: an unknown opcode")
		}
	}
}

func (s *Server) reject(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected = append(s.rejected, text)
}

// disconnected notes that the connection of a session has ended. If the close code is 1000 or 1001, the
// session ends too.
func (s *Server) disconnected(current *session, ws *websocket.Conn, code websocket.StatusCode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if current == nil || current.conn != ws {
		return
	}
	current.conn = nil
	if code == websocket.StatusNormalClosure || code == websocket.StatusGoingAway {
		s.sessions = slices.DeleteFunc(s.sessions, func(other *session) bool { return other == current })
	}
}

// identifyOptions are the fields of op 2 (Identify) that have no effect on this server.
type identifyOptions struct {
	Compress  bool  `json:"compress"`
	Threshold int   `json:"large_threshold"`
	Presence  any   `json:"presence"`
	Shard     []int `json:"shard"`
}

func (s *Server) identify(ws *websocket.Conn, data json.RawMessage) *session {
	var d struct {
		Token      string            `json:"token"`
		Intents    *int              `json:"intents"`
		Properties map[string]string `json:"properties"`
		identifyOptions
	}
	if f := strict(data, &d); f != nil || d.Intents == nil || *d.Intents != 0 || d.Properties["os"] == "" {
		s.reject("identify: the data is not valid")
	}
	if d.Token != Token {
		_ = ws.Close(4004, "Authentication failed.") // Close fails if the client is gone
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.starts > 0 {
		s.starts--
	}
	current := &session{id: "session-" + s.id(), conn: ws}
	s.sessions = append(s.sessions, current)
	current.dispatch("READY", map[string]any{
		"v": 10, "session_id": current.id, "resume_gateway_url": s.gatewayURL("/resume"),
		"user": map[string]any{"id": "900002", "bot": true}, "guilds": []any{}, "application": map[string]any{"id": application},
	})
	return current
}

func (s *Server) resume(ws *websocket.Conn, data json.RawMessage) *session {
	var d struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int    `json:"seq"`
	}
	f := strict(data, &d)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.sessions, func(other *session) bool { return other.id == d.Session })
	if f != nil || d.Token != Token || i < 0 || d.Seq > len(s.sessions[i].events) {
		say(ws, map[string]any{"op": opInvalidSession, "d": false})
		return nil
	}
	current := s.sessions[i]
	current.conn = ws
	s.resumed++
	for _, event := range current.events[d.Seq:] {
		write(ws, event)
	}
	current.dispatch("RESUMED", map[string]any{})
	return current
}

// dispatch records an event of a session and sends it. The first event has the number 1.
func (current *session) dispatch(kind string, data any) {
	text, err := json.Marshal(map[string]any{"op": opDispatch, "t": kind, "s": len(current.events) + 1, "d": data})
	if err != nil {
		panic(err) // an error means that the test itself is broken
	}
	current.events = append(current.events, text)
	if current.conn != nil {
		write(current.conn, text)
	}
}

func say(ws *websocket.Conn, message map[string]any) {
	data, err := json.Marshal(message)
	if err != nil {
		panic(err) // an error means that the test itself is broken
	}
	write(ws, data)
}

func write(ws *websocket.Conn, data []byte) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_ = ws.Write(ctx, websocket.MessageText, data) // Write fails if the client is gone
}

// push sends an interaction to every session, as Discord does with several connections of one shard.
func (s *Server) push(i *interaction, data map[string]any) {
	i.id, i.token = s.id(), "interaction-secretsecret-"+s.id()
	s.interactions[i.token] = i
	data["id"], data["application_id"], data["type"], data["token"], data["version"] = i.id, application, i.kind, i.token, 1
	data["entitlements"], data["authorizing_integration_owners"], data["app_permissions"], data["locale"] = []any{}, map[string]any{}, "0", "en-GB"
	data["channel"], data["context"] = map[string]any{"id": i.channel, "type": 1}, 1
	data["user"], data["channel_id"] = map[string]any{"id": i.by.id, "username": "u"}, i.channel
	if i.server {
		data["member"] = map[string]any{"user": data["user"]}
		delete(data, "user")
	}
	connected := 0
	for _, session := range s.sessions {
		if session.conn != nil {
			connected++
		}
		session.dispatch("INTERACTION_CREATE", data)
	}
	failed := func() {
		if !i.acked && !i.failed {
			i.failed = true
			i.by.read = append(i.by.read, Read{Text: NoResponse})
		}
	}
	if connected == 0 && !s.patient {
		failed() // tell the person at once, for faster tests
		return
	}
	time.AfterFunc(ackWithin, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		failed()
	})
}

// Patient makes the server wait ackWithin for a response even while no connection is open.
func (s *Server) Patient() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patient = true
}

// Unanswered returns the number of interactions that have no response yet and that the person has not
// seen fail.
func (s *Server) Unanswered() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.interactions {
		if !i.acked && !i.failed {
			n++
		}
	}
	return n
}

// NoResponse is the text that Discord shows to a person if the bot does not respond to the person's
// press within ackWithin.
const NoResponse = "This interaction failed"

const ackWithin = 3 * time.Second

// Connected returns the number of sessions with a connection.
func (s *Server) Connected() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		if session.conn != nil {
			n++
		}
	}
	return n
}

// Sessions returns the number of sessions that the bot has begun and not ended.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Resumed returns the number of times that the bot has resumed a session.
func (s *Server) Resumed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resumed
}

// Forget ends all sessions and asks the bot to open other connections. The bot cannot resume an ended
// session.
func (s *Server) Forget() {
	all := s.connections()
	s.mu.Lock()
	s.sessions = nil
	s.mu.Unlock()
	for _, ws := range all {
		say(ws, map[string]any{"op": opReconnect, "d": nil})
	}
}

// Reconnect asks the bot to open other connections, as Discord does now and then.
func (s *Server) Reconnect() {
	for _, ws := range s.connections() {
		say(ws, map[string]any{"op": opReconnect, "d": nil})
	}
}

// Hold lets new connections wait until release is called.
func (s *Server) Hold() (release func()) {
	held := make(chan struct{})
	s.mu.Lock()
	s.held = held
	s.mu.Unlock()
	return func() { close(held) }
}

// Drop closes all connections with a code, or without a message if the code is 0.
func (s *Server) Drop(code int) {
	all := s.connections()
	s.mu.Lock()
	for _, session := range s.sessions {
		session.conn = nil // if conn were still set, the client's reply to the close message would end the session
	}
	s.mu.Unlock()
	for _, ws := range all {
		if code == 0 {
			_ = ws.CloseNow() // CloseNow fails if the client is gone
		} else {
			_ = ws.Close(websocket.StatusCode(code), "") // Close fails if the client is gone
		}
	}
}

func (s *Server) connections() (all []*websocket.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.sessions {
		if session.conn != nil {
			all = append(all, session.conn)
		}
	}
	return all
}

// Deafen sets whether the gateway ignores heartbeats. The parameter interval is the time between two
// heartbeats on new connections.
func (s *Server) Deafen(interval time.Duration, deaf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interval, s.deaf = interval, deaf
}

// Beats returns the number of heartbeats that the gateway has got.
func (s *Server) Beats() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beats
}
