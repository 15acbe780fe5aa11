package mcpgate_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/mcpgate"
	"github.com/nodbus/nod/connectors/agents/relay"
)

// answers collects the messages that the client gets. It closes the channel all when there is a response
// for each of the ids.
type answers struct {
	mu    sync.Mutex
	lines []string
	ids   map[string]int // the responses by id
	all   chan struct{}
	full  sync.Once
}

func (a *answers) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines = append(a.lines, string(line))
	var m struct{ ID, Method json.RawMessage }
	if json.Unmarshal(line, &m) == nil && m.Method == nil {
		if _, asked := a.ids[relay.IDKey(m.ID)]; asked {
			a.ids[relay.IDKey(m.ID)]++
		}
	}
	for _, n := range a.ids {
		if n == 0 {
			return len(line), nil
		}
	}
	a.full.Do(func() { close(a.all) })
	return len(line), nil
}

// FuzzUpstream: whatever an MCP server answers over HTTP, the call that nod has allowed reaches the
// server only once and only at the server's own address. No other call reaches it. Each request of the
// client gets one response, and the client gets only whole messages.
func FuzzUpstream(f *testing.F) {
	const ok = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}`
	for _, s := range []struct {
		status         int
		kind, session  string
		posted, stream string
	}{
		{200, "application/json", "s1", ok, ""},
		{200, "text/event-stream", "s1", "id: 1\nretry: 0\ndata: " + ok + "\n\n", "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"},
		{200, "text/event-stream", "", "data: {\"jsonrpc\":\ndata: \"2.0\",\"id\":2,\"result\":{}}\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n\n"},
		{200, "text/event-stream", "", "data: " + strings.Repeat("x", 9000), ""},
		{200, "application/json", "a\tb", "[" + ok + "," + ok + "]", ""},
		{200, "application/json", "", `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"x"}}`, ""},
		{202, "", "", "", ""}, {204, "", "", "", ""}, {401, "text/plain", "", "no", ""}, {404, "application/json", "s1", `{"error":1}`, ""},
		{301, "", "", "", ""}, {307, "", "", "", ""}, {308, "application/json", "s1", ok, ""}, {500, "text/event-stream", "", "data: " + ok + "\n\n", ""},
	} {
		f.Add(s.status, s.kind, s.session, s.posted, s.stream)
	}
	f.Fuzz(func(t *testing.T, status int, kind, session, posted, stream string) {
		if status < 200 || status > 599 {
			return
		}
		elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			assert.Fail(t, "the gate followed a redirection", r.Method)
		}))
		defer elsewhere.Close()
		var mu sync.Mutex
		var calls []string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // an unfinished request is no call
			mu.Lock()
			for _, line := range lineEnds.Split(string(body), -1) {
				calls = append(calls, callsIn([]byte(line))...)
			}
			mu.Unlock()
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Mcp-Session-Id", session)
			if status/100 == 3 {
				w.Header().Set("Location", elsewhere.URL)
			}
			w.WriteHeader(status)
			body = []byte(posted)
			if r.Method == http.MethodGet {
				body = []byte(stream)
			}
			_, _ = w.Write(body) // some statuses have no body
		}))
		defer server.Close()
		told := &answers{ids: map[string]int{"1": 0, "2": 0, "3": 0}, all: make(chan struct{})}
		client := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"yes","arguments":{"ok":1}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"no","arguments":{}}}
`), readerFunc(func() { <-told.all }))
		nod := &tally{allowed: map[string]int{}}
		(&mcpgate.Upstream{URL: server.URL}).Run(t.Context(), func(in io.WriteCloser, out io.Reader) {
			_ = mcpgate.Run(t.Context(), relay.Peer{In: told, Out: client}, in, out, nod, mcpgate.Options{Name: "fs", Session: "s1"}) // the end of the output is no failure
		})
		mu.Lock()
		defer mu.Unlock()
		require.LessOrEqual(t, len(calls), 1, "%q", calls)
		for _, call := range calls {
			require.Equal(t, `yes {"ok":1}`, call)
		}
		for id, n := range told.ids {
			require.Equal(t, 1, n, "responses to %s: %q", id, told.lines)
		}
		for _, line := range told.lines {
			require.True(t, json.Valid([]byte(line)) && len(lineEnds.FindAllString(line, -1)) == 1 && bytes.HasSuffix([]byte(line), []byte("\n")), "%q", line)
		}
	})
}

// readerFunc is an empty reader that ends when the function returns.
type readerFunc func()

func (f readerFunc) Read([]byte) (int, error) { f(); return 0, io.EOF }
