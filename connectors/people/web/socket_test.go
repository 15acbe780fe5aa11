package web_test

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/nodbus/nod/schemas"
)

// said is an envelope from the gateway.
type said struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"`
	Action    string    `json:"action"`
	Timestamp time.Time `json:"timestamp"`
	Payload   struct {
		// Fields of a notification.
		SessionID  string            `json:"session_id"`
		PendingID  string            `json:"pending_id"`
		Title      string            `json:"title"`
		Digest     string            `json:"digest"`
		Deadline   time.Time         `json:"deadline"`
		ServerTime time.Time         `json:"server_time"`
		Options    []schemas.Option  `json:"options"`
		Details    json.RawMessage   `json:"action_details"`
		Remember   []string          `json:"remember"`
		Takes      []string          `json:"takes"`
		CodeWord   bool              `json:"code_word"`
		Same       string            `json:"same"`
		Created    time.Time         `json:"created_at"`
		Decision   *schemas.Decision `json:"decision"`
		New        bool              `json:"new"`
		// Fields of a reply.
		Success     bool   `json:"success"`
		PublicKey   string `json:"public_key"`
		Pending     int    `json:"pending"`
		Unlisted    int    `json:"unlisted"`
		Granted     bool   `json:"granted"`
		Holder      string `json:"holder"`
		Next        string `json:"next"`
		Permissions []struct {
			PendingID string            `json:"pending_id"`
			Decision  *schemas.Decision `json:"decision"`
			Text      string            `json:"text"`
		} `json:"permissions"`
		Runs   string
		Grants []struct {
			GrantID   string `json:"grant_id"`
			Text      string `json:"text"`
			Lasts     string `json:"lasts"`
			By        string `json:"by"`
			RevokedBy string `json:"revoked_by"`
			Live      bool   `json:"live"`
		} `json:"grants"`
		// Fields of an error.
		Code         schemas.Code    `json:"code"`
		Message      string          `json:"message"`
		Text         string          `json:"text"`
		ErrorDetails json.RawMessage `json:"details"`
	} `json:"payload"`
}

// socket is a WebSocket client of one user, without a page.
type socket struct {
	*rig
	conn *websocket.Conn
}

func (r *rig) dials(change ...func(*http.Request)) (*socket, *http.Response, error) {
	req, err := http.NewRequest("GET", r.web.URL(), nil)
	r.NoError(err)
	for _, c := range change {
		c(req)
	}
	// The receive buffer is small, so that it is soon full if the client does not read.
	dialer := net.Dialer{}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(16 << 10)
		}
		return conn, err
	}}
	conn, resp, err := websocket.Dial(r.ctx, strings.Replace(cmp.Or(r.at, r.web.URL()), "http", "ws", 1)+"/ws", &websocket.DialOptions{
		HTTPHeader: req.Header, Host: req.Host, HTTPClient: &http.Client{Transport: transport},
	})
	if err != nil {
		return nil, resp, err
	}
	conn.SetReadLimit(16 << 20)
	return &socket{r, conn}, resp, nil
}

// opens logs a user in and opens a socket. The end of the test closes the socket.
func (r *rig) opens(user string) *socket {
	r.t.Helper()
	s, _, err := r.dials(with(r.login(user)))
	r.NoError(err)
	r.t.Cleanup(func() { _ = s.conn.CloseNow() })
	return s
}

func (s *socket) sends(text string) {
	s.t.Helper()
	s.NoError(s.conn.Write(s.ctx, websocket.MessageText, []byte(text)))
}

// asksFor sends a request to the gateway. The id of the message is the name of the action.
func (s *socket) asksFor(action string, payload map[string]any) {
	s.t.Helper()
	text, err := json.Marshal(map[string]any{"id": action, "type": "request", "action": action, "payload": payload})
	s.NoError(err)
	s.sends(string(text))
}

// next returns the next message that is not a time notification.
func (s *socket) next() said {
	s.t.Helper()
	m, err := s.reads()
	s.NoError(err)
	return m
}

func (s *socket) reads() (said, error) {
	for {
		_, data, err := s.conn.Read(s.ctx)
		if err != nil {
			return said{}, err
		}
		var m said
		if err := json.Unmarshal(data, &m); err != nil || m.Action != "server.time" {
			return m, err
		}
	}
}

// gets sends a request and reads messages up to the reply. It returns the reply and the messages
// before it.
func (s *socket) gets(action string, payload map[string]any) (reply said, before []said) {
	s.t.Helper()
	s.asksFor(action, payload)
	for {
		m := s.next()
		if m.ID == action {
			s.Equal(action, m.Action)
			s.Contains([]string{"response", "error"}, m.Type)
			return m, before
		}
		before = append(before, m)
	}
}

// refused sends a request, requires that the request fails with this code, and returns the error.
func (s *socket) refused(code schemas.Code, action string, payload map[string]any) said {
	s.t.Helper()
	m, _ := s.gets(action, payload)
	s.Equal("error", m.Type)
	s.Equal(code, m.Payload.Code, m.Payload.Message)
	return m
}

// until reads messages up to the notification with this action about this request, and returns that
// notification.
func (s *socket) until(action, id string) said {
	s.t.Helper()
	for {
		if m := s.next(); m.Action == action && m.Payload.PendingID == id {
			return m
		}
	}
}

// listed waits until the inbox has exactly these pending requests.
func (r *rig) listed(s *socket, ids ...string) {
	r.t.Helper()
	r.Eventually(func() bool {
		m, _ := s.gets("permissions.list", nil)
		var all []string
		for _, p := range m.Payload.Permissions {
			all = append(all, p.PendingID)
		}
		slices.Sort(all)
		slices.Sort(ids)
		return slices.Equal(all, ids)
	}, 30*time.Second, 10*time.Millisecond)
}
