// Package whatsapptest is an in-memory WhatsApp for tests: the server of Meta's Cloud API with one phone
// number, and its users. It refuses the calls that the real server refuses. It also refuses calls that
// the real server would execute in another way than the caller means. The server signs its calls of the
// webhook, and repeats them until they are confirmed. A test can make it send calls again later, in
// another order.
package whatsapptest

import (
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

	"github.com/nodbus/nod/connectors/people/internal/ratelimit"
)

// The secrets, and the id of the phone number.
const (
	Token       = "EAAGsecretsecrettoken0123456789"
	AppSecret   = "appsecretsecret0123456789abcdef0"
	VerifyToken = "verifysecret0123456789abcdef"
	Number      = "106540352242922"
	display     = "15550783881"
)

// Template is the only approved template.
const Template = "nod_request"

const (
	pairBurst = 45 // accepted messages to a person at once; after that, one in six seconds
	allBurst  = 80 // accepted messages to all people together in a second
)

// Server is a WhatsApp with one number. It is safe for concurrent use.
type Server struct {
	http *httptest.Server

	mu        sync.Mutex
	people    map[string]*person
	lastID    int
	now       func() time.Time
	faults    []Fault
	rate      ratelimit.Limits[string] // the rate limits, by person; the empty key is for all people together
	rejected  []string
	late      bool // the webhook, and not the reply to the call, reports that a message failed
	receipts  bool
	unlimited bool
	latency   time.Duration

	hook      string
	queue     []*event
	confirmed []*event
	arrived   chan struct{}
	done      chan struct{}
	over      sync.WaitGroup
}

// Fault is a planned failure of a call that sends a message.
type Fault struct {
	Status     int // the HTTP status of the reply; 0 means that the server breaks the connection
	Code       int // the code in the error that the server returns
	Words      string
	RetryAfter int    // the time that the server asks the client to wait, in seconds
	Done       bool   // if set, the server sends the message and then makes the call fail
	Nth        int    // how many calls succeed before the fault occurs
	Then       func() // if set, the server calls Then before it sends the failure; a test can end the caller there
}

// New starts a server. Close ends it.
func New() *Server {
	s := &Server{
		people: map[string]*person{}, rate: ratelimit.Limits[string]{}, now: time.Now, receipts: true, lastID: 1000,
		arrived: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	s.over.Go(s.deliver)
	return s
}

// URL returns the base URL of the server.
func (s *Server) URL() string { return s.http.URL + "/v24.0" }

// Close ends the server.
func (s *Server) Close() {
	close(s.done)
	s.over.Wait()
	s.http.CloseClientConnections()
	s.http.Close()
}

// Fail plans failures. Each call that sends a message uses up one fault.
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

// Late makes the server accept messages that it cannot send, and report the failure later by the
// webhook. The real server mostly does so.
func (s *Server) Late() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = true
}

// Latency makes the server wait for d between sending a message and replying.
func (s *Server) Latency(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = d
}

// Rejected returns the refusals that a correct client never gets.
func (s *Server) Rejected() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rejected)
}

type failure struct {
	status, code int
	words        string
	after        int
	fault        bool // the client broke a rule of the real server
}

func bad(format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, code: 100, words: fmt.Sprintf(format, args...), fault: true}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	path, isMessage := strings.CutSuffix(r.URL.Path, "/messages")
	var id string
	var f *failure
	switch {
	case r.Header.Get("Authorization") != "Bearer "+Token:
		f = &failure{status: http.StatusUnauthorized, code: 190, words: "Invalid OAuth access token"}
	case path != "/v24.0/"+Number:
		f = bad("Unsupported request: object %s does not exist", path)
	case isMessage && r.Method == http.MethodPost:
		id, f = s.take(r)
	case !isMessage && r.Method == http.MethodGet && r.URL.Query().Get("fields") == "id":
		_, _ = io.WriteString(w, `{"id":"`+Number+`"}`)
		return
	default:
		f = bad("Unsupported %s request", r.Method)
	}
	w.Header().Set("Content-Type", "application/json")
	if f == nil {
		_ = json.NewEncoder(w).Encode(map[string]any{"messaging_product": "whatsapp", "messages": []map[string]string{{"id": id}}})
		return
	}
	if f.fault {
		s.mu.Lock()
		s.rejected = append(s.rejected, f.words)
		s.mu.Unlock()
	}
	if f.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.after))
	}
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": fmt.Sprintf("(#%d) %s", f.code, f.words), "type": "OAuthException", "code": f.code}})
}

// take executes a call that sends a message, or fails as planned.
func (s *Server) take(r *http.Request) (id string, f *failure) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil || r.Header.Get("Content-Type") != "application/json" {
		return "", bad("this server takes JSON in a POST alone")
	}
	s.mu.Lock()
	fault, due := s.due()
	latency := s.latency
	s.mu.Unlock()
	if latency > 0 {
		defer func() { <-time.After(latency) }()
	}
	if !due {
		return s.send(body)
	}
	if fault.Done {
		s.send(body)
	}
	if fault.Then != nil {
		fault.Then()
	}
	if fault.Status == 0 {
		panic(http.ErrAbortHandler) // this panic breaks the connection
	}
	return "", &failure{status: fault.Status, code: fault.Code, words: fault.Words, after: fault.RetryAfter}
}

func (s *Server) due() (Fault, bool) {
	if len(s.faults) == 0 {
		return Fault{}, false
	}
	if s.faults[0].Nth > 0 {
		s.faults[0].Nth--
		return Fault{}, false
	}
	f := s.faults[0]
	s.faults = s.faults[1:]
	return f, true
}

func (s *Server) spend(key string, burst, perSecond float64, code int) *failure {
	if s.unlimited {
		return nil
	}
	if s.rate.Spend(key, burst, perSecond) > 0 {
		return &failure{status: http.StatusBadRequest, code: code, words: "rate limit hit"}
	}
	return nil
}
