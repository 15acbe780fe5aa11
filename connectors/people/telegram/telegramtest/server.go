// Package telegramtest is an in-memory Telegram for tests: a Bot API server and its users. It refuses
// the calls that the real server refuses. It also refuses calls that the real server would execute
// only in part, without an error.
package telegramtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/people/internal/ratelimit"
)

// BotID is the bot's user id.
const BotID = 777

// The limits of the real server.
const (
	maxText     = 4096 // the longest text of a message, in UTF-16 units
	maxEntities = 100
	maxData     = 64  // the longest data of a button, in bytes
	maxToast    = 200 // the longest text of a toast, in characters
	chatBurst   = 20  // accepted messages to a chat at once; after that, one per second
	allBurst    = 60  // accepted messages to all chats at once; after that, 30 per second
)

// Server is a Telegram with one bot. It is safe for concurrent use.
type Server struct {
	// Token is the bot's token.
	Token string

	http *httptest.Server

	mu       sync.Mutex
	people   map[int64]*person
	updates  []update
	lastID   int64 // the last id of an update, a message or a press
	poll     chan struct{}
	wake     chan struct{} // closed when the next update arrives
	hook     *hook         // nil if no webhook is set
	proxy    string
	presses  map[string]*press
	faults   []Fault
	calls    map[string]int
	rate     ratelimit.Limits[int64] // the rate limits, by chat; key 0 is for all chats together
	rejected []string

	unlimited bool
	latency   time.Duration
}

// Fault is a planned failure of a call.
type Fault struct {
	Method     string // the method that fails; empty means sendMessage and editMessageText
	Code       int    // the HTTP status of the reply; 0 means that the server breaks the connection
	Words      string // the description in the error that the server returns
	RetryAfter int    // the time that the server asks the client to wait, in seconds
	Done       bool   // if set, the server executes the call and then makes the call fail
	Then       func() // if set, the server calls Then before it sends the failure; a test can end the caller there
}

// New starts a Telegram server. Close ends it.
func New(token string) *Server {
	s := &Server{
		Token: token, people: map[int64]*person{}, presses: map[string]*press{}, calls: map[string]int{},
		rate: ratelimit.Limits[int64]{}, wake: make(chan struct{}), lastID: 1000,
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// URL returns the base URL of the server.
func (s *Server) URL() string { return s.http.URL }

// Close ends the server and all open polls.
func (s *Server) Close() {
	s.mu.Lock()
	s.unhook()
	s.mu.Unlock()
	s.http.CloseClientConnections()
	s.http.Close()
}

// Fail plans failures. A call fails with the first remaining fault for its method.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Polling reports whether a poll is open.
func (s *Server) Polling() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.poll != nil
}

// Strand makes the open poll receive no updates, as if the client's machine were asleep.
func (s *Server) Strand() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poll = nil
}

// Unlimited removes the rate limits, which depend on the clock.
func (s *Server) Unlimited() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlimited = true
}

// Latency makes the server wait for d between executing a call and replying, like a slow network. It
// does not delay polls.
func (s *Server) Latency(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latency = d
}

// Calls returns the number of calls of a method.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Rejected returns the refusals that a correct client never gets: refusals of malformed calls, and of
// messages beyond the limits.
func (s *Server) Rejected() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.rejected...)
}

// Unconfirmed returns the number of updates that the bot has not confirmed.
func (s *Server) Unconfirmed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.updates)
}

type failure struct {
	code  int
	words string
	after int
	fault bool // the client broke a rule of the real server
}

func bad(format string, args ...any) *failure {
	return &failure{code: http.StatusBadRequest, words: "Bad Request: " + fmt.Sprintf(format, args...), fault: true}
}

func gone(words string) *failure {
	return &failure{code: http.StatusBadRequest, words: "Bad Request: " + words}
}

type method func(s *Server, r *http.Request, body []byte) (any, *failure)

var methods = map[string]method{
	"getMe":                  (*Server).getMe,
	"getUpdates":             (*Server).getUpdates,
	"sendMessage":            (*Server).sendMessage,
	"editMessageText":        (*Server).editMessageText,
	"editMessageReplyMarkup": (*Server).editMessageReplyMarkup,
	"answerCallbackQuery":    (*Server).answerCallbackQuery,
	"deleteMessage":          (*Server).deleteMessage,
	"setWebhook":             (*Server).setWebhook,
	"deleteWebhook":          (*Server).deleteWebhook,
	"getWebhookInfo":         (*Server).getWebhookInfo,
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	token, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bot"), "/")
	m, known := methods[name]
	var result any
	var f *failure
	switch {
	case token != s.Token:
		f = &failure{code: http.StatusUnauthorized, words: "Unauthorized"}
	case !known:
		f = &failure{code: http.StatusNotFound, words: "Not Found"}
	case r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json":
		f = bad("this server takes JSON in a POST alone")
	default:
		result, f = s.run(w, r, name, m)
	}
	s.write(w, name, result, f)
}

// run executes a call. If a Fault is planned for the method, the call fails with it.
func (s *Server) run(w http.ResponseWriter, r *http.Request, name string, m method) (any, *failure) {
	body, err := readAll(r)
	if err != nil {
		return nil, bad("%v", err)
	}
	s.mu.Lock()
	s.calls[name]++
	fault, due := s.due(name)
	latency := s.latency
	s.mu.Unlock()
	if latency > 0 && name != "getUpdates" {
		defer func() { <-time.After(latency) }()
	}
	if !due {
		return m(s, r, body)
	}
	if fault.Done {
		m(s, r, body)
	}
	if fault.Then != nil {
		fault.Then()
	}
	if fault.Code == 0 {
		panic(http.ErrAbortHandler) // this panic breaks the connection
	}
	return nil, &failure{code: fault.Code, words: fault.Words, after: fault.RetryAfter}
}

func (s *Server) due(name string) (Fault, bool) {
	for i, f := range s.faults {
		if f.Method == name || f.Method == "" && (name == "sendMessage" || name == "editMessageText") {
			s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			return f, true
		}
	}
	return Fault{}, false
}

func (s *Server) write(w http.ResponseWriter, name string, result any, f *failure) {
	reply := map[string]any{"ok": f == nil, "result": result}
	w.Header().Set("Content-Type", "application/json")
	if f != nil {
		reply = map[string]any{"ok": false, "error_code": f.code, "description": f.words}
		if f.after > 0 {
			reply["parameters"] = map[string]any{"retry_after": f.after}
		}
		if f.fault {
			s.mu.Lock()
			s.rejected = append(s.rejected, name+": "+f.words)
			s.mu.Unlock()
		}
		w.WriteHeader(f.code)
	}
	_ = json.NewEncoder(w).Encode(reply) // Encode fails if the client is gone
}

// spend counts a call for the rate limit of a chat. At the limit it returns a failure with the time to
// wait.
func (s *Server) spend(chat int64, burst, perSecond float64) *failure {
	if s.unlimited {
		return nil
	}
	if s.rate.Spend(chat, burst, perSecond) > 0 {
		return &failure{code: http.StatusTooManyRequests, words: "Too Many Requests: retry after 1", after: 1}
	}
	return nil
}
