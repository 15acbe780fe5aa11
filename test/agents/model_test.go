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

// call is a use of a tool that the fake model asks for.
type call struct {
	tool  string
	input map[string]any
}

// model stands in for every agent's model, and for its proxy, which refuses all traffic.
// If it is offered the tool of its first call, it makes all its calls in one answer. If
// it gets a result of a call, it keeps that and ends the turn.
type model struct {
	URL   string
	t     *testing.T
	calls []call
	whole bool // refuse to stream, so that agents ask for a whole answer

	mu   sync.Mutex
	told []string // the results, as the agent sent them
	seen []string // its requests, a line each
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
		server.CloseClientConnections() // an agent that was killed may hold one
		server.Close()
		if t.Failed() {
			t.Logf("the model was asked:\n%s", strings.Join(m.seen, "\n"))
		}
	})
	m.URL = server.URL
	return m
}

// turn is the part of a request that the model uses: the tools on offer, and the results
// of calls so far.
type turn struct {
	tools, results []string
	whole          bool // the answer is one JSON value, not a stream of events
}

// serve handles one model API: read decodes its requests, and write answers with calls,
// or with the end of the turn if there are no calls.
func serve[Request any](m *model, read func(Request) turn, write func(io.Writer, turn, []call)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the agent hung up
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
		m.note("%s: %v tools, results %q, makes %d calls", r.URL.Path, t.tools, t.results, len(makes))
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
	return nil
}

func (m *model) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, fmt.Sprintf(format, args...))
}

// heard returns all results that the model got.
func (m *model) heard() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.told, "\n")
}

// event writes one server-sent event.
func event(w io.Writer, name string, data map[string]any) {
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", text(data))
}

// text encodes a value as JSON.
func text(v any) string {
	out, err := json.Marshal(v)
	if err != nil {
		return "{}" // plain values cannot fail
	}
	return string(out)
}
