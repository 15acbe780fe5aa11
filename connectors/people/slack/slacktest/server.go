// Package slacktest is an in-memory Slack for tests: the Web API, Socket Mode over real
// WebSockets, and the users of a workspace. It refuses the calls that the real server refuses. It
// also refuses calls in which the real server would read markup, or show less than the caller
// means.
package slacktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/nodbus/nod/connectors/people/internal/ratelimit"
)

// The tokens of the app.
const (
	BotToken = "xoxb-secretsecretbot0123456789"
	AppToken = "xapp-secretsecretapp0123456789"
)

// ackWithin is the time after which Slack tells a person that the app did not respond.
const ackWithin = 3 * time.Second

// Server is a Slack workspace with one app. It is safe for concurrent use.
type Server struct {
	http *httptest.Server

	mu        sync.Mutex
	people    map[string]*person
	lastID    int
	tickets   map[string]bool // the tickets in the addresses at which the app may open a connection, each valid once
	conns     []*conn
	triggers  map[string]*trigger
	waiting   map[string]*sent // the envelopes that the app has not acknowledged
	confirmed []*sent
	faults    []Fault
	rejected  []string
	unlimited bool
	rate      ratelimit.Limits[string] // the rate limit of messages, by conversation
	limited   int                      // how many further calls of apps.connections.open get the status 429
}

// Fault is a planned failure of a call.
type Fault struct {
	Method     string // the method that fails; empty means chat.postMessage and chat.update
	Status     int    // the HTTP status of the reply; 0 means that the server breaks the connection
	Code       string // the error code in a reply with the status 200
	RetryAfter int    // the time that the server asks the client to wait, in seconds
	Done       bool   // if set, the server executes the call and then makes the call fail
	Then       func() // if set, the server calls Then before it sends the failure; a test can end the caller there
}

// New starts a workspace. Close ends it.
func New() *Server {
	s := &Server{
		people: map[string]*person{}, tickets: map[string]bool{}, triggers: map[string]*trigger{}, waiting: map[string]*sent{},
		rate: ratelimit.Limits[string]{}, lastID: 1000,
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// URL returns the base URL of the Web API.
func (s *Server) URL() string { return s.http.URL + "/api" }

// Close ends the server and its connections.
func (s *Server) Close() {
	s.Drop()
	s.http.CloseClientConnections()
	s.http.Close()
}

// Fail plans failures. A call fails with the first remaining fault for its method.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Unlimited removes the rate limits, which depend on the clock.
func (s *Server) Unlimited() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlimited = true
}

// Rejected returns the refusals of calls that break Slack's rules. A correct client gets no such refusal.
func (s *Server) Rejected() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rejected)
}

type failure struct {
	status int
	code   string
	after  int
	detail string
	fault  bool // the client broke a rule of the real server
}

func bad(code, format string, args ...any) *failure {
	return &failure{status: http.StatusOK, code: code, detail: fmt.Sprintf(format, args...), fault: true}
}

func refused(code string) *failure { return &failure{status: http.StatusOK, code: code} }

type method func(s *Server, body []byte) (map[string]any, *failure)

var methods = map[string]method{
	"auth.test":             func(*Server, []byte) (map[string]any, *failure) { return map[string]any{"user_id": "UBOT"}, nil },
	"apps.connections.open": (*Server).openConnection,
	"chat.postMessage":      (*Server).postMessage,
	"chat.update":           (*Server).update,
	"chat.postEphemeral":    (*Server).postEphemeral,
	"views.open":            (*Server).openView,
	"views.update":          (*Server).updateView,
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/link" {
		s.socket(w, r)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/api/")
	token := BotToken
	if name == "apps.connections.open" {
		token = AppToken
	}
	m, known := methods[name]
	var result map[string]any
	var f *failure
	switch {
	case !known:
		f = bad("unknown_method", "%s", name)
	case r.Header.Get("Authorization") != "Bearer "+token:
		f = refused("invalid_auth")
	case r.Method != http.MethodPost:
		f = bad("invalid_post_type", "this server takes a POST alone")
	default:
		result, f = s.run(r, name, m)
	}
	s.write(w, name, result, f)
}

// run executes a call. If a Fault is planned for the method, the call fails with it.
func (s *Server) run(r *http.Request, name string, m method) (map[string]any, *failure) {
	body, err := arguments(r)
	if err != nil {
		return nil, bad("invalid_json", "%v", err)
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.faults, func(f Fault) bool {
		return f.Method == name || f.Method == "" && (name == "chat.postMessage" || name == "chat.update")
	})
	if i < 0 {
		defer s.mu.Unlock()
		return m(s, body)
	}
	fault := s.faults[i]
	s.faults = slices.Delete(s.faults, i, i+1)
	if fault.Done {
		_, _ = m(s, body)
	}
	s.mu.Unlock()
	if fault.Then != nil {
		fault.Then()
	}
	if fault.Status == 0 {
		panic(http.ErrAbortHandler) // this panic breaks the connection
	}
	return nil, &failure{status: fault.Status, code: fault.Code, after: fault.RetryAfter}
}

// arguments returns the arguments of a call as JSON. Slack takes JSON and forms, in which objects and
// lists are JSON and all else is text.
func arguments(r *http.Request) ([]byte, error) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		return io.ReadAll(io.LimitReader(r.Body, 1<<20))
	}
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	all := map[string]any{}
	for name, values := range r.PostForm {
		var value any
		if err := json.Unmarshal([]byte(values[0]), &value); err != nil {
			value = values[0]
		}
		if _, isNumber := value.(float64); isNumber { // a text that looks like a number, such as a timestamp, stays a text
			value = values[0]
		}
		all[name] = value
	}
	return json.Marshal(all)
}

func (s *Server) write(w http.ResponseWriter, name string, result map[string]any, f *failure) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if f == nil {
		if result == nil {
			result = map[string]any{}
		}
		result["ok"] = true
		_ = json.NewEncoder(w).Encode(result) // Encode fails if the client is gone
		return
	}
	if f.fault {
		s.mu.Lock()
		s.rejected = append(s.rejected, name+": "+f.code+" "+f.detail)
		s.mu.Unlock()
	}
	if f.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.after))
	}
	w.WriteHeader(f.status)
	reply := map[string]any{"ok": false, "error": f.code}
	if f.detail != "" {
		reply["response_metadata"] = map[string]any{"messages": []string{f.detail}}
	}
	_ = json.NewEncoder(w).Encode(reply) // Encode fails if the client is gone
}

func strict(body []byte, v any) *failure {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return bad("invalid_arguments", "can't parse: %v", err)
	}
	return nil
}

// burst is the number of messages that Slack allows at once. After that, Slack allows one message per
// second.
const burst = 10

func (s *Server) spend(channel string) *failure {
	if s.unlimited {
		return nil
	}
	if s.rate.Spend(channel, burst, 1) > 0 {
		return &failure{status: http.StatusTooManyRequests, code: "ratelimited", after: 1}
	}
	return nil
}

// Limit makes the next n calls of apps.connections.open fail with the status 429.
func (s *Server) Limit(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limited = n
}

func (s *Server) openConnection([]byte) (map[string]any, *failure) {
	if s.limited > 0 {
		s.limited--
		return nil, &failure{status: http.StatusTooManyRequests, code: "ratelimited", after: 1}
	}
	s.lastID++
	ticket := fmt.Sprint("ticket-secretsecret-", s.lastID)
	s.tickets[ticket] = true
	return map[string]any{"url": "ws" + strings.TrimPrefix(s.http.URL, "http") + "/link?ticket=" + ticket}, nil
}

type conn struct {
	*websocket.Conn
	closing bool // the server has asked the app to open another connection instead
}
