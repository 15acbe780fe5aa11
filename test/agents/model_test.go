package agents_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// call is a tool call of the fake model.
type call struct {
	tool  string
	input map[string]any
}

// model is a fake language model with the APIs of three providers. If the agent's request offers the tool of
// the first call, the model makes all its calls in one answer. It stores their results. When it has all
// results, it makes the calls of its field then or, if there are none, ends the turn. The model is also the
// agent's HTTP proxy, which refuses all traffic.
type model struct {
	URL   string
	t     *testing.T
	calls []call
	then  []call // the calls that the model makes after it has got all results of its first calls
	whole bool   // true if the model refuses streams, so that the agent asks for one JSON answer
	fails string // if not empty, the model refuses requests that offer tools, with status 400 and this text as message

	mu   sync.Mutex
	last string   // the agent's last request that offered tools
	told []string // the results of tool calls, as the agent sent them
	seen []string // the requests of the agent, one line each
}

func newModel(t *testing.T, calls ...call) *model {
	m := &model{t: t, calls: calls}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", serve(m, readAnthropic, writeAnthropic))
	mux.HandleFunc("POST /v1/responses", serve(m, readOpenAI, writeOpenAI))
	mux.HandleFunc("POST /v1beta/models/{call}", serve(m, readGemini, writeGemini))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		m.note("refused %s %s", r.Method, r.RequestURI)
		http.Error(w, `{"error":{"message":"there is nothing but the model here"}}`, http.StatusNotFound)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections() // the server would wait for a connection that a killed agent has left open
		server.Close()
		if t.Failed() {
			t.Logf("the model was asked:\n%s", strings.Join(m.seen, "\n"))
		}
	})
	m.URL = server.URL
	return m
}

// turn is the part of an agent's request that the model needs: the names of the tools that the agent offers,
// and the results of earlier calls.
type turn struct {
	tools, results []string
	whole          bool // true if the agent wants one JSON value instead of a stream of events
}

// serve returns the handler for the API of one provider. The function read converts a request to a
// turn. The function write writes the model's calls or, without calls, the end of the turn.
func serve[Request any](m *model, read func(Request) turn, write func(io.Writer, turn, []call)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // ReadAll fails if the agent has closed the connection
		}
		var in Request
		if err := json.Unmarshal(body, &in); !assert.NoError(m.t, err, "%s", r.URL) {
			http.Error(w, "unreadable", http.StatusBadRequest)
			return
		}
		t := read(in)
		t.whole = t.whole || strings.HasSuffix(r.URL.Path, ":generateContent")
		if m.whole && !t.whole {
			http.NotFound(w, r)
			return
		}
		makes := m.next(t)
		if len(t.tools) > 0 {
			m.mu.Lock()
			m.last = string(body)
			m.mu.Unlock()
		}
		m.note("%s: %v tools, results %q, makes %d calls", r.URL.Path, t.tools, t.results, len(makes))
		if m.fails != "" && len(t.tools) > 0 {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, m.fails)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		if t.whole {
			w.Header().Set("Content-Type", "application/json")
		}
		write(w, t, makes)
	}
}

func (m *model) next(t turn) []call {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, t.results...)
	if len(t.results) == 0 && slices.Contains(t.tools, m.calls[0].tool) {
		return m.calls
	}
	if len(t.results) == len(m.calls) {
		return m.then
	}
	return nil
}

func (m *model) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, fmt.Sprintf(format, args...))
}

// heard returns the results of all calls so far.
func (m *model) heard() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.told, "\n")
}

// lastAsked returns the agent's last request that offered tools.
func (m *model) lastAsked() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func event(w io.Writer, name string, data map[string]any) {
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", text(data))
}

func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return "{}" // the tests use only values that JSON can encode
	}
	return string(out)
}
