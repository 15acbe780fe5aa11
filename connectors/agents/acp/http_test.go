package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/acp"
	"github.com/nodbus/nod/schemas"
)

const token = "a token of the test's"

// streamRig is a rig that serves its stream over HTTP. When a client answers a request, the fake nod
// makes this answer the decision. If err is set, the answer fails with err instead.
type streamRig struct {
	*rig
	stream *acp.Stream
	server *httptest.Server
	err    error
	open   map[string]*submission
	narrow atomic.Bool // a small send buffer for new connections, so that a slow subscriber soon blocks the server
}

func serve(t *testing.T) *streamRig {
	s := &streamRig{stream: acp.NewStream(), open: map[string]*submission{}}
	s.rig = start(t, acp.Options{Stream: s.stream})
	s.server = httptest.NewUnstartedServer(s.stream.Handler(token, func(_ context.Context, r schemas.Request, optionID string) error {
		if s.err != nil {
			return s.err
		}
		option, _ := r.Option(optionID)
		outcome := schemas.Denied
		if optionID == "" {
			outcome = schemas.Cancelled
		} else if option.Kind.Allows() {
			outcome = schemas.Allowed
		}
		s.open[r.PendingID].decisions <- person(outcome, optionID, option.Kind)
		return nil
	}))
	s.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if s.narrow.Load() {
			assert.NoError(t, c.(*net.TCPConn).SetWriteBuffer(32<<10))
		}
		return ctx
	}
	s.server.Start()
	t.Cleanup(func() { s.stream.Close(); s.server.Close() })
	return s
}

// ask makes the agent send a request, and returns when the fake nod has the request.
func (s *streamRig) ask(id string) *submission {
	s.t.Helper()
	s.agent.says(s.t, request(id, "s", "make "+id))
	a := <-s.nod.submissions
	s.open[a.PendingID] = a
	return a
}

func (s *streamRig) subscribe(client *http.Client) *websocket.Conn {
	s.t.Helper()
	conn, _, err := websocket.Dial(s.t.Context(), s.server.URL+"/api/v1/acp/permissions/stream",
		&websocket.DialOptions{HTTPClient: client, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

func notified(t *testing.T, conn *websocket.Conn) map[string]any {
	t.Helper()
	kind, data, err := conn.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, websocket.MessageText, kind)
	var n struct {
		Type, Action string
		Payload      map[string]any
		Timestamp    time.Time
	}
	require.NoError(t, json.Unmarshal(data, &n))
	assert.Equal(t, "notification", n.Type)
	assert.Equal(t, "session.permission.requested", n.Action)
	assert.WithinDuration(t, time.Now(), n.Timestamp, time.Minute)
	return n.Payload
}

func (s *streamRig) respond(body string, change ...func(*http.Request)) (int, string) {
	s.t.Helper()
	r, err := http.NewRequest(http.MethodPost, s.server.URL+"/api/v1/acp/permissions/respond", strings.NewReader(body))
	require.NoError(s.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	for _, c := range change {
		c(r)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, strings.TrimSpace(string(said))
}

// TestEverySubscriberGetsEveryRequest: every subscriber gets each request that waits for a person. A
// new subscriber first gets the requests that are already pending.
func TestEverySubscriberGetsEveryRequest(t *testing.T) {
	t.Parallel()
	s := serve(t)
	first, second := s.subscribe(nil), s.subscribe(nil)
	one := s.ask("1")
	for _, conn := range []*websocket.Conn{first, second} {
		got := notified(t, conn)
		assert.NotEmpty(t, got["created_at"])
		delete(got, "created_at")
		assert.Equal(t, map[string]any{
			"pending_id": one.PendingID, "session_id": "s", "tool_call_id": "call-s", "title": "Run it",
			"options": []any{
				map[string]any{"option_id": "always", "name": "Always", "kind": "allow_always"},
				map[string]any{"option_id": "yes", "name": "Yes", "kind": "allow_once"},
				map[string]any{"option_id": "no", "name": "No", "kind": "reject_once"},
			},
			"action_type": "command", "action_details": map[string]any{"command": "make 1"},
		}, got)
	}
	two := s.ask("2")
	for _, conn := range []*websocket.Conn{first, second} {
		assert.Equal(t, two.PendingID, notified(t, conn)["pending_id"])
	}
	one.decisions <- person(schemas.Denied, "no", schemas.RejectOnce)
	assert.Equal(t, answered("1", "no"), s.agent.hears(t))
	require.Eventually(t, func() bool { // the request leaves the stream only after the agent has its answer
		code, _ := s.respond(`{"pending_id":"` + one.PendingID + `","option_id":"nope"}`)
		return code == http.StatusNotFound
	}, 10*time.Second, time.Millisecond)

	third := s.subscribe(nil)
	assert.Equal(t, two.PendingID, notified(t, third)["pending_id"], "only what still waits")
	three := s.ask("3")
	for _, conn := range []*websocket.Conn{first, second, third} {
		assert.Equal(t, three.PendingID, notified(t, conn)["pending_id"])
	}
	s.nod.decided(person(schemas.Allowed, "yes", schemas.AllowOnce))
	s.agent.says(t, request("4", "s", "ls"))
	s.agent.hears(t)
	<-s.nod.submissions
	five := s.ask("5")
	assert.Equal(t, five.PendingID, notified(t, first)["pending_id"], "what a rule settles is nobody's to answer")
}

func TestRespond(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, heard string }{
		"allow":     {`{"session_id":"s","pending_id":"ID","option_id":"yes","cancelled":false}`, "yes"},
		"deny":      {`{"pending_id":"ID","option_id":"no"}`, "no"},
		"dismiss":   {`{"pending_id":"ID","cancelled":true}`, ""},
		"dismissed": {`{"pending_id":"ID","option_id":"yes","cancelled":true}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			conn := s.subscribe(nil)
			s.ask("1")
			id := notified(t, conn)["pending_id"].(string)
			code, said := s.respond(strings.Replace(c.body, "ID", id, 1))
			assert.Equal(t, http.StatusOK, code)
			assert.Equal(t, `{"success":true}`, said)
			assert.Equal(t, answered("1", c.heard), s.agent.hears(t))
			require.Eventually(t, func() bool {
				code, said = s.respond(strings.Replace(c.body, "ID", id, 1))
				return code == http.StatusNotFound
			}, 10*time.Second, time.Millisecond, "an answer that comes too late")
			assert.Equal(t, `{"success":false,"error":"pending permission not found: `+id+`"}`, said)
		})
	}
}

func TestRespondRefuses(t *testing.T) {
	t.Parallel()
	s := serve(t)
	conn := s.subscribe(nil)
	a := s.ask("1")
	notified(t, conn)
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	yes := `{"pending_id":"` + a.PendingID + `","option_id":"yes"}`
	for name, c := range map[string]struct {
		body   string
		change func(*http.Request)
		err    error
		code   int
		said   string
	}{
		"no JSON":           {body: `{"pending_id":`, code: 400, said: "JSON"},
		"nothing":           {body: ``, code: 400, said: "JSON"},
		"two objects":       {body: yes + yes, code: 400, said: "JSON"},
		"another type":      {body: `{"pending_id":1}`, code: 400, said: "JSON"},
		"no id":             {body: `{"option_id":"yes"}`, code: 400, said: "pending_id is required"},
		"null":              {body: `null`, code: 400, said: "pending_id is required"},
		"no option":         {body: `{"pending_id":"` + a.PendingID + `"}`, code: 400, said: "option_id is required when not cancelled"},
		"not offered":       {body: `{"pending_id":"` + a.PendingID + `","option_id":"allow"}`, code: 400, said: "option_id"},
		"unknown":           {body: `{"pending_id":"X","option_id":"yes"}`, code: 404, said: "pending permission not found: X"},
		"another session's": {body: `{"session_id":"t","pending_id":"` + a.PendingID + `","option_id":"yes"}`, code: 404, said: "pending permission not found: " + a.PendingID},
		"too long":          {body: strings.Repeat(" ", 1<<20) + yes, code: 413, said: "too long"},
		"a form":            {body: yes, change: header("Content-Type", "text/plain"), code: 415, said: "application/json"},
		"no token":          {body: yes, change: header("Authorization", ""), code: 401, said: "token"},
		"another token":     {body: yes, change: header("Authorization", "Bearer "+token+"x"), code: 401, said: "token"},
		"no method":         {body: yes, change: func(r *http.Request) { r.Method = http.MethodPut }, code: 405, said: "Method Not Allowed"},
		"lost":              {body: yes, err: schemas.Errorf(schemas.CodeConflict, "x"), code: 404, said: "pending permission not found: " + a.PendingID},
		"stale":             {body: yes, err: schemas.Errorf(schemas.CodeStale, "x"), code: 404, said: "pending permission not found: " + a.PendingID},
		"no approver":       {body: yes, err: fmt.Errorf("x: %w", schemas.Errorf(schemas.CodeForbidden, "not an approver")), code: 403, said: "not an approver"},
		"nod is down":       {body: yes, err: schemas.Errorf(schemas.CodeUnavailable, "away"), code: 503, said: "away"},
		"refused by nod":    {body: yes, err: schemas.Errorf(schemas.CodeValidation, "wrong"), code: 400, said: "wrong"},
		"failed":            {body: yes, err: errors.New("broken"), code: 500, said: "broken"},
		"failed in nod":     {body: yes, err: schemas.Errorf(schemas.CodeInternal, "bug"), code: 500, said: "bug"},
	} {
		t.Run(name, func(t *testing.T) {
			s.err = c.err
			if c.change == nil {
				c.change = func(*http.Request) {}
			}
			code, said := s.respond(c.body, c.change)
			assert.Equal(t, c.code, code, said)
			assert.Contains(t, said, c.said)
			if c.code != http.StatusMethodNotAllowed {
				var r struct {
					Success *bool
					Error   string
				}
				require.NoError(t, json.Unmarshal([]byte(said), &r), said)
				assert.False(t, *r.Success)
				assert.NotEmpty(t, r.Error)
			}
		})
	}
	s.err = nil
	code, _ := s.respond(yes)
	assert.Equal(t, http.StatusOK, code, "it waited all the while")
}

func TestTheStreamNeedsTheToken(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, given := range []string{"", "Bearer", "Bearer ", "Basic " + token, "Bearer nope"} {
		_, resp, err := websocket.Dial(t.Context(), s.server.URL+"/api/v1/acp/permissions/stream",
			&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {given}}})
		require.Error(t, err)
		assert.Equal(t, http.StatusUnauthorized, resp.StatusCode, given)
	}
	_, resp, err := websocket.Dial(t.Context(), s.server.URL+"/api/v1/acp/permissions/stream",
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}, "Origin": {"https://evil.example"}}})
	require.Error(t, err)
	assert.Equal(t, http.StatusForbidden, resp.StatusCode, "another site's page")
	unset := httptest.NewServer(s.stream.Handler("", nil))
	defer unset.Close()
	_, resp, err = websocket.Dial(t.Context(), unset.URL+"/api/v1/acp/permissions/stream",
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer "}}})
	require.Error(t, err)
	assert.Equal(t, http.StatusUnauthorized, resp.StatusCode, "no token lets nobody in")
}

// TestASlowSubscriberIsDropped: the stream disconnects a subscriber that reads too slowly, and tells
// it the reason. Other subscribers get their notifications without delay.
func TestASlowSubscriberIsDropped(t *testing.T) {
	t.Parallel()
	s := serve(t)
	const sent = 120
	narrow := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(32 << 10)
		}
		return c, err
	}}}
	s.narrow.Store(true)
	slow := s.subscribe(narrow)
	s.narrow.Store(false)
	quick := s.subscribe(nil)
	for i := range sent {
		s.agent.says(t, request(fmt.Sprint(i), "s", strings.Repeat("x", 16<<10)))
		a := <-s.nod.submissions
		assert.Equal(t, a.PendingID, notified(t, quick)["pending_id"])
	}
	var err error
	read := 0
	for ; err == nil; read++ {
		_, _, err = slow.Read(t.Context())
	}
	var why websocket.CloseError
	require.ErrorAs(t, err, &why)
	assert.Equal(t, websocket.CloseError{Code: websocket.StatusTryAgainLater, Reason: "too slow: connect again to get the pending requests"}, why)
	assert.Less(t, read, sent)
	again := s.subscribe(nil)
	for range sent {
		notified(t, again)
	}
}

// TestClosingTheStreamDisconnectsItsSubscribers: Close disconnects all subscribers with the status
// "going away". A client that subscribes later gets the same status.
func TestClosingTheStreamDisconnectsItsSubscribers(t *testing.T) {
	t.Parallel()
	s := serve(t)
	conn := s.subscribe(nil)
	s.ask("1")
	notified(t, conn)
	s.stream.Close()
	for _, c := range []*websocket.Conn{conn, s.subscribe(nil)} {
		var err error
		for err == nil { // read the pending requests, which each subscriber gets first
			_, _, err = c.Read(t.Context())
		}
		assert.Equal(t, websocket.StatusGoingAway, websocket.CloseStatus(err))
	}
}
