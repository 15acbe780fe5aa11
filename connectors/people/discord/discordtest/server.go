// Package discordtest is an in-memory Discord for tests: the HTTP API, the gateway over real
// WebSockets, and users who share a server with the bot. It refuses the calls that the real server
// refuses. It also refuses messages in which the real server would read Markdown, a mention or a link
// that the caller does not mean.
package discordtest

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

	"github.com/nodbus/nod/connectors/people/internal/ratelimit"
)

// Token is the bot's token.
const Token = "MTE0secretsecret.Gsecret.secretsecretsecret"

// application is the id of the bot's application.
const application = "900001"

// Server is a Discord with one bot. It is safe for concurrent use.
type Server struct {
	http *httptest.Server

	mu           sync.Mutex
	people       map[string]*person
	lastID       int
	commands     []json.RawMessage
	registered   int // the number of calls that have registered a command
	sessions     []*session
	held         chan struct{}           // new connections wait until this channel is closed; nil if they need not wait
	interactions map[string]*interaction // the interactions, by token
	nonces       map[string]*message
	faults       []Fault
	rejected     []string
	unlimited    bool
	patient      bool
	starts       int                      // how many further sessions the bot may begin; negative means any number
	rate         ratelimit.Limits[string] // the rate limit of messages, by channel
	interval     time.Duration            // the time between two heartbeats
	resumed      int
	beats        int  // the number of heartbeats that the gateway has got
	deaf         bool // the gateway does not reply to heartbeats
}

// Fault is a planned failure of a call.
type Fault struct {
	Call       string // the call that fails, such as "create DM"; empty means "create message" and "edit message"
	Status     int    // the HTTP status of the reply; 0 means that the server breaks the connection
	Code       int    // the code in the error that the server returns
	Message    string
	RetryAfter float64 // the time that the server asks the client to wait, in seconds
	Done       bool    // if set, the server executes the call and then makes the call fail
	Then       func()  // if set, the server calls Then before it sends the failure; a test can end the caller there
}

// New starts a server. Close ends it.
func New() *Server {
	s := &Server{
		people: map[string]*person{}, interactions: map[string]*interaction{}, nonces: map[string]*message{},
		rate: ratelimit.Limits[string]{}, lastID: 1000, starts: -1, interval: 45 * time.Second,
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// URL returns the base URL of the HTTP API.
func (s *Server) URL() string { return s.http.URL + "/api/v10" }

// Close ends the server and its connections.
func (s *Server) Close() {
	s.Drop(0)
	s.http.CloseClientConnections()
	s.http.Close()
}

// Fail plans failures. A call fails with the first remaining fault for this call.
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

// Starts limits the number of further sessions.
func (s *Server) Starts(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts = n
}

// Rejected returns the refusals of calls that break Discord's rules. A correct client gets no such
// refusal.
func (s *Server) Rejected() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rejected)
}

// Registered returns the number of calls that registered a command.
func (s *Server) Registered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.registered
}

type failure struct {
	status  int
	code    int
	message string
	after   float64
	fault   bool // the client broke a rule of the real server
}

func bad(format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, code: 50035, message: fmt.Sprintf(format, args...), fault: true}
}

func refused(status, code int, message string) *failure {
	return &failure{status: status, code: code, message: message}
}

// call is one call of the HTTP API. The path's variable parts are in args.
type call struct {
	name   string
	method string
	path   string // a part of the path that begins with a colon is variable
	open   bool   // the call needs no token
	run    func(s *Server, args []string, body []byte) (any, *failure)
}

var calls = []call{
	{"get gateway", "GET", "/gateway/bot", false, (*Server).getGateway},
	{"get application", "GET", "/applications/@me", false, func(*Server, []string, []byte) (any, *failure) {
		return map[string]any{"id": application, "name": "nod"}, nil
	}},
	{"list commands", "GET", "/applications/:app/commands", false, func(s *Server, _ []string, _ []byte) (any, *failure) { return slices.Clone(s.commands), nil }},
	{"create command", "POST", "/applications/:app/commands", false, (*Server).createCommand},
	{"create DM", "POST", "/users/@me/channels", false, (*Server).createDM},
	{"create message", "POST", "/channels/:channel/messages", false, (*Server).createMessage},
	{"edit message", "PATCH", "/channels/:channel/messages/:message", false, (*Server).editMessage},
	{"respond", "POST", "/interactions/:id/:token/callback", true, (*Server).respond},
	{"create follow-up", "POST", "/webhooks/:app/:token", true, (*Server).followUp},
	{"edit response", "PATCH", "/webhooks/:app/:token/messages/@original", true, (*Server).editResponse},
}

// match returns the variable parts of the path, if a request is this call.
func (c *call) match(r *http.Request) (args []string, ok bool) {
	path, found := strings.CutPrefix(r.URL.Path, "/api/v10")
	want, got := strings.Split(c.path, "/"), strings.Split(path, "/")
	if !found || r.Method != c.method || len(want) != len(got) {
		return nil, false
	}
	for i := range want {
		if strings.HasPrefix(want[i], ":") {
			args = append(args, got[i])
		} else if want[i] != got[i] {
			return nil, false
		}
	}
	return args, true
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/gateway" || r.URL.Path == "/resume" {
		s.socket(w, r)
		return
	}
	for i := range calls {
		c := &calls[i]
		args, ok := c.match(r)
		if !ok {
			continue
		}
		var result any
		var f *failure
		switch {
		case !c.open && r.Header.Get("Authorization") != "Bot "+Token:
			f = refused(http.StatusUnauthorized, 0, "401: Unauthorized")
		case !strings.HasPrefix(r.Header.Get("User-Agent"), "DiscordBot ("):
			f = bad("the User-Agent has the wrong form")
		case r.Method != http.MethodGet && r.Header.Get("Content-Type") != "application/json":
			f = bad("this server takes JSON alone")
		default:
			result, f = s.run(r, c, args)
		}
		if c.name == "respond" && f == nil && r.URL.Query().Get("with_response") == "true" {
			result = map[string]any{"interaction": map[string]any{"id": args[0], "type": 0}}
		}
		s.write(w, c.name, result, f)
		return
	}
	s.write(w, r.Method+" "+r.URL.Path, nil, &failure{status: http.StatusNotFound, message: "404: Not Found", fault: true})
}

// run executes a call. If a Fault is planned for the call, the call fails with this fault.
func (s *Server) run(r *http.Request, c *call, args []string) (any, *failure) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return nil, bad("%v", err)
	}
	s.mu.Lock()
	i := slices.IndexFunc(s.faults, func(f Fault) bool {
		return f.Call == c.name || f.Call == "" && (c.name == "create message" || c.name == "edit message")
	})
	if i < 0 {
		defer s.mu.Unlock()
		return c.run(s, args, body)
	}
	fault := s.faults[i]
	s.faults = slices.Delete(s.faults, i, i+1)
	if fault.Done {
		_, _ = c.run(s, args, body)
	}
	s.mu.Unlock()
	if fault.Then != nil {
		fault.Then()
	}
	if fault.Status == 0 {
		panic(http.ErrAbortHandler) // this panic breaks the connection
	}
	return nil, &failure{status: fault.Status, code: fault.Code, message: fault.Message, after: fault.RetryAfter}
}

func (s *Server) write(w http.ResponseWriter, name string, result any, f *failure) {
	if f == nil && result == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if f == nil {
		_ = json.NewEncoder(w).Encode(result) // Encode fails if the client is gone
		return
	}
	if f.fault {
		s.mu.Lock()
		s.rejected = append(s.rejected, name+": "+f.message)
		s.mu.Unlock()
	}
	reply := map[string]any{"code": f.code, "message": f.message}
	if f.after > 0 {
		reply["retry_after"], reply["global"] = f.after, false
		w.Header().Set("Retry-After", strconv.Itoa(int(f.after+0.999)))
	}
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(reply) // Encode fails if the client is gone
}

func strict(body []byte, v any) *failure {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return bad("can't parse: %v", err)
	}
	return nil
}

func (s *Server) id() string {
	s.lastID++
	return strconv.Itoa(s.lastID)
}

// burst is the number of messages that Discord allows at once. After that, Discord allows one message per
// second.
const burst = 5

func (s *Server) spend(channel string) *failure {
	if s.unlimited {
		return nil
	}
	if wait := s.rate.Spend(channel, burst, 1); wait > 0 {
		return &failure{status: http.StatusTooManyRequests, message: "You are being rate limited.", after: wait}
	}
	return nil
}

func (s *Server) createCommand(args []string, body []byte) (any, *failure) {
	var c struct {
		Name        string            `json:"name"`
		Description string            `json:"description"`
		Type        int               `json:"type"`
		Options     []json.RawMessage `json:"options"`
	}
	if f := strict(body, &c); f != nil {
		return nil, f
	}
	if args[0] != application || c.Name != "nod" || c.Type != 1 || c.Description == "" || len([]rune(c.Description)) > 100 {
		return nil, bad("the command %q is not valid", c.Name)
	}
	s.registered++
	s.commands = []json.RawMessage{body}
	return json.RawMessage(body), nil
}
