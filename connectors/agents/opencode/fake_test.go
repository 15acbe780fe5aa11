package opencode_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// waitAtMost is how long a test waits for an expected event before it fails.
const waitAtMost = 30 * time.Second

// fakeOpenCode is a fake OpenCode server. It refuses unknown calls, and a second answer to the same
// permission. It sends each event in several pieces, and comments and other events between its events.
type fakeOpenCode struct {
	t        *testing.T
	password string
	dir      string // each call must name this project directory; may be empty
	old      bool   // act like OpenCode before 1.1, which cannot list permissions and expects replies in another format
	noList   bool   // refuse to list permissions, as OpenCode 1.18 does while a webfetch is pending

	mu        sync.Mutex
	pending   map[string]map[string]any
	calls     map[string]part // the tool call of each message, by message id
	parents   map[string]string
	replies   []string         // the replies so far, each as "id reply message"; a prompt is "prompt session text"
	messages  []map[string]any // the messages of each session, as OpenCode lists them
	streams   map[chan string]bool
	unstored  int // how many reads of a message return its call without the call's input
	failReply int // how many of the next replies the server refuses with status 503
	tooLate   int // how many replies came to permissions that were not pending

	down atomic.Bool // abort every new HTTP request
}

type part struct{ tool, status, input string }

func newFake(t *testing.T) *fakeOpenCode {
	return &fakeOpenCode{t: t, pending: map[string]map[string]any{}, calls: map[string]part{}, parents: map[string]string{}, streams: map[chan string]bool{}}
}

// start runs the fake server until the test ends, and returns its URL.
func (f *fakeOpenCode) start() string {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /event", f.events)
	mux.HandleFunc("GET /permission", f.list)
	mux.HandleFunc("GET /session/{session}", f.session)
	mux.HandleFunc("GET /session/{session}/message", f.listMessages)
	mux.HandleFunc("POST /session/{session}/prompt_async", f.prompt)
	mux.HandleFunc("GET /session/{session}/message/{message}", f.message)
	mux.HandleFunc("POST /permission/{id}/reply", f.reply)
	mux.HandleFunc("POST /session/{session}/permissions/{id}", f.reply)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		switch {
		case f.down.Load():
			panic(http.ErrAbortHandler)
		case password != f.password:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Query().Get("directory") != f.dir:
			f.t.Errorf("%s %s asks about another project", r.Method, r.URL)
			w.WriteHeader(http.StatusBadRequest)
		default:
			mux.ServeHTTP(w, r)
		}
	}))
	f.t.Cleanup(func() {
		f.hangUp()
		srv.Close()
	})
	return srv.URL
}

// events sends the events in pieces of random size.
func (f *fakeOpenCode) events(w http.ResponseWriter, r *http.Request) {
	said := make(chan string, 1000)
	f.mu.Lock()
	f.streams[said] = true
	f.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	write := func(text string) {
		for len(text) > 0 {
			n := min(len(text), 1+rand.N(40))
			_, _ = w.Write([]byte(text[:n])) // after an error, r's context ends
			w.(http.Flusher).Flush()
			text = text[n:]
		}
	}
	write(": hello\n\nretry: 10\ndata: {\"type\":\"server.connected\",\ndata: \"properties\":{}}\n\n")
	for {
		select {
		case text, on := <-said:
			if !on {
				return
			}
			write(text)
		case <-r.Context().Done():
			return
		}
	}
}

func (f *fakeOpenCode) say(kind string, properties any) {
	data, err := json.Marshal(map[string]any{"id": "evt_1", "type": kind, "properties": properties})
	require.NoError(f.t, err)
	f.raw(fmt.Sprintf("id: 7\r\nevent: message\r\ndata: %s\r\n\r\n: a comment\n\n", data))
}

func (f *fakeOpenCode) raw(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.streams {
		s <- text
	}
}

// hangUp closes all event streams in the middle of an event.
func (f *fakeOpenCode) hangUp() {
	f.raw("data: {\"type\":\"permission.asked\",\"prop")
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.streams {
		close(s)
		delete(f.streams, s)
	}
}

// permits returns a permission in the format of OpenCode 1.18.
func permits(id, name, message string) map[string]any {
	return map[string]any{
		"id": id, "sessionID": "ses_1", "permission": name, "patterns": []string{"make release"}, "always": []string{"make *"},
		"metadata": map[string]any{"command": "make release"}, "tool": map[string]any{"messageID": message, "callID": "call_1"},
	}
}

// asks adds a pending permission. It sends the permission's event twice, after an event about something
// else.
func (f *fakeOpenCode) asks(p map[string]any) {
	f.waits(p)
	kind := "permission.asked"
	if f.old {
		kind = "permission.updated"
	}
	f.say("message.part.updated", map[string]any{"sessionID": "ses_1", "part": strings.Repeat("é", 5000)})
	f.say(kind, p)
	f.say(kind, p)
}

// waits adds a pending permission without sending an event about it.
func (f *fakeOpenCode) waits(p map[string]any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending[p["id"].(string)] = p
}

// runs stores p's tool call in a message.
func (f *fakeOpenCode) runs(message string, p part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[message] = p
}

// answers removes a pending permission and sends the event that OpenCode sends after an answer at its
// own prompt.
func (f *fakeOpenCode) answers(id string) {
	f.forgets(id)
	f.say("permission.replied", map[string]any{"sessionID": "ses_1", "requestID": id, "permissionID": id, "reply": "once"})
}

// forgets removes a pending permission without sending an event.
func (f *fakeOpenCode) forgets(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pending, id)
}

func (f *fakeOpenCode) list(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.old {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if f.noList {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	all := []any{}
	for _, p := range f.pending {
		all = append(all, p)
	}
	f.json(w, all)
}

func (f *fakeOpenCode) session(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := r.PathValue("session")
	f.json(w, map[string]any{"id": id, "parentID": f.parents[id], "directory": "/p", "title": "Title of " + id})
}

// writes adds a message with this text, as if the agent had written it.
func (f *fakeOpenCode) writes(id, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.messages = append(f.messages, map[string]any{
		"info":  map[string]any{"id": id, "role": "assistant", "agent": "plan", "providerID": "p", "modelID": "m"},
		"parts": []any{map[string]any{"type": "step-start"}, map[string]any{"type": "text", "text": text}, map[string]any{"type": "text", "text": "hidden", "synthetic": true}},
	})
}

func (f *fakeOpenCode) listMessages(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.json(w, f.messages)
}

func (f *fakeOpenCode) prompt(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Agent string
		Model struct{ ProviderID, ModelID string }
		Parts []struct{ Type, Text string }
	}
	if !assert.NoError(f.t, json.NewDecoder(r.Body).Decode(&body)) || !assert.Len(f.t, body.Parts, 1) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	assert.Equal(f.t, "text", body.Parts[0].Type)
	assert.Equal(f.t, "plan p m", body.Agent+" "+body.Model.ProviderID+" "+body.Model.ModelID, "the session stays in its mode")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replies = append(f.replies, "prompt "+r.PathValue("session")+" "+body.Parts[0].Text)
	w.WriteHeader(http.StatusNoContent)
}

func (f *fakeOpenCode) message(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.calls[r.PathValue("message")]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if f.unstored > 0 {
		f.unstored--
		c.status, c.input = "pending", "{}"
	}
	tool := fmt.Sprintf(`{"type":"tool","callID":"call_1","tool":%q,"state":{"status":%q,"input":%s}}`, c.tool, c.status, c.input)
	f.json(w, map[string]any{"info": map[string]any{}, "parts": []any{map[string]any{"type": "step-start"}, json.RawMessage(tool)}})
}

func (f *fakeOpenCode) reply(w http.ResponseWriter, r *http.Request) {
	var body map[string]string
	dec := json.NewDecoder(r.Body)
	assert.NoError(f.t, dec.Decode(&body))
	assert.Equal(f.t, "application/json", r.Header.Get("Content-Type"))
	f.mu.Lock()
	defer f.mu.Unlock()
	id, field := r.PathValue("id"), "reply"
	if f.old {
		field = "response"
		assert.Equal(f.t, "ses_1", r.PathValue("session"))
	}
	switch {
	case f.failReply > 0:
		f.failReply--
		w.WriteHeader(http.StatusServiceUnavailable)
	case !slices.Contains([]string{"once", "always", "reject"}, body[field]):
		f.t.Errorf("a reply of %v", body)
		w.WriteHeader(http.StatusBadRequest)
	case f.pending[id] == nil:
		f.tooLate++
		w.WriteHeader(http.StatusNotFound)
	default:
		f.replies = append(f.replies, strings.TrimSpace(id+" "+body[field]+" "+body["message"]))
		delete(f.pending, id)
		f.json(w, true)
	}
}

func (f *fakeOpenCode) json(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	assert.NoError(f.t, json.NewEncoder(w).Encode(v))
}

// replied waits for the connector's next reply to a permission.
func (f *fakeOpenCode) replied() (next string) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.replies) == 0 {
			return false
		}
		next, f.replies = f.replies[0], f.replies[1:]
		return true
	}, waitAtMost, 10*time.Millisecond)
	return next
}

// nothingReplied fails the test if the connector has sent another reply.
func (f *fakeOpenCode) nothingReplied() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	assert.Empty(f.t, f.replies)
}
