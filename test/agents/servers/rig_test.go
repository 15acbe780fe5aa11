// Package servers_test runs real agent programs as servers, with a fake model and a whole nod. The
// tests need no tokens and do not change the user's own files. They install the programs from npm. If
// NOD_TEST_AGENTS does not name a directory for the programs, the tests are skipped:
//
//	NOD_TEST_AGENTS=$HOME/.cache/nod-agents go test -v -timeout 30m ./test/agents/servers
package servers_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/agents/internal/npm"
)

const patience = time.Minute

// nextPrompt is a person's reply to the question at the end of a turn.
const nextPrompt = "thanks, now rest"

// program returns the path of a real agent program. If NOD_TEST_AGENTS is not set, program skips the test.
func program(t *testing.T, agent npm.Agent) string {
	t.Helper()
	dir := os.Getenv(npm.OptIn)
	if dir == "" {
		t.Skipf("runs a real agent from npm: name a directory for it, %s=DIR go test -timeout 30m ./test/agents/...", npm.OptIn)
	}
	path, err := agent.In(dir)
	require.NoError(t, err)
	return path
}

// The function started starts a process, waits until it prints a line that matches the pattern, and returns
// the match.
func started(t *testing.T, c *exec.Cmd, pattern string) string {
	t.Helper()
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	c.Stderr = &errs
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM) // Signal fails if the process has ended
		_ = c.Wait()
		if t.Failed() {
			t.Logf("%s said: %s", c, &errs)
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := regexp.MustCompile(pattern).FindString(lines.Text()); found != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return found
		}
	}
	require.FailNow(t, "the process ended without the expected line", "%s: %s", c, &errs)
	return ""
}

// nodProcess is a running nod, with the paths of its program and its data directory.
type nodProcess struct{ path, dir string }

func startNod(t *testing.T) nodProcess {
	dir := t.TempDir()
	n := nodProcess{path: filepath.Join(dir, "nod"), dir: filepath.Join(dir, "data")}
	out, err := exec.Command("go", "build", "-o", n.path, "../../../cmd/nod").CombinedOutput()
	require.NoError(t, err, string(out))
	started(t, n.command("up", "-q", "--listen", "127.0.0.1:0", "--http", "off"), "nod is up on")
	return n
}

func (n nodProcess) command(args ...string) *exec.Cmd {
	c := exec.Command(n.path, args...)
	c.Env = append(os.Environ(), "NOD_DATA="+n.dir, "NOD_URL=", "NOD_CREDS=")
	return c
}

// pending waits until a session has a pending request, and returns the request.
func (n nodProcess) pending(t *testing.T, session string) (one schemas.Request) {
	t.Helper()
	require.Eventually(t, func() bool {
		out, err := n.command("pending", "--json").Output()
		var all []schemas.Request
		if err != nil || json.Unmarshal(out, &all) != nil {
			return false
		}
		for _, r := range all {
			if r.SessionID == session {
				one = r
			}
		}
		return one.PendingID != ""
	}, patience, 100*time.Millisecond)
	return one
}

func post(t *testing.T, url string, body, into any) {
	t.Helper()
	data, err := json.Marshal(body)
	require.NoError(t, err)
	resp, err := http.Post(url, "application/json", bytes.NewReader(data))
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	require.Less(t, resp.StatusCode, 300, url)
	if into != nil {
		require.NoError(t, json.NewDecoder(resp.Body).Decode(into))
	}
}

// model is a fake language model with OpenAI's Chat Completions and Responses APIs. It calls the agent's
// shell tool with one command. When it gets the command's result or the text nextPrompt, it ends its turn.
type model struct {
	url     string
	results chan string

	mu      sync.Mutex
	command string
	where   string // the working directory of the command, which only the Responses API sends
}

func newModel(t *testing.T) *model {
	m := &model{results: make(chan string, 10), where: t.TempDir()}
	srv := httptest.NewServer(m)
	t.Cleanup(srv.Close)
	m.url = srv.URL + "/v1"
	return m
}

func (m *model) runs(command string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.command = command
}

// heard waits for the result of the command, and returns the result as the agent sent it.
func (m *model) heard(t *testing.T) string {
	t.Helper()
	select {
	case text := <-m.results:
		return text
	case <-time.After(patience):
		require.FailNow(t, "the model got no result")
	}
	return ""
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/responses") {
		m.responds(w, r)
		return
	}
	var asked struct {
		Tools    []any `json:"tools"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.NewDecoder(r.Body).Decode(&asked) != nil || len(asked.Messages) == 0 || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	arguments, _ := json.Marshal(map[string]string{"command": m.command, "description": "Does it"}) // Marshal cannot fail, because JSON can encode all strings
	m.mu.Unlock()
	says, ends := map[string]any{"role": "assistant", "content": "ok"}, "stop"
	switch last := asked.Messages[len(asked.Messages)-1]; {
	case last.Role == "tool", len(asked.Tools) > 0 && bytes.Contains(last.Content, []byte(nextPrompt)):
		m.results <- string(last.Content)
	case len(asked.Tools) > 0:
		ends = "tool_calls"
		says = map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"index": 0, "id": "call_1", "type": "function", "function": map[string]any{"name": "bash", "arguments": string(arguments)},
		}}}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, c := range []map[string]any{{"index": 0, "delta": says}, {"index": 0, "delta": map[string]any{}, "finish_reason": ends}} {
		data, _ := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []any{c}}) // Marshal cannot fail, because JSON can encode all these values
		_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// The method responds serves the Responses API, which Codex uses.
func (m *model) responds(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Input []struct {
			Type   string          `json:"type"`
			Output json.RawMessage `json:"output"`
		} `json:"input"`
	}
	if json.NewDecoder(r.Body).Decode(&asked) != nil || len(asked.Input) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	arguments, _ := json.Marshal(map[string]string{"cmd": m.command, "workdir": m.where}) // Marshal cannot fail, because JSON can encode all strings
	m.mu.Unlock()
	item := map[string]any{"type": "function_call", "id": "f", "call_id": "call_1", "name": "exec_command", "arguments": string(arguments)}
	if last := asked.Input[len(asked.Input)-1]; last.Type == "function_call_output" {
		m.results <- string(last.Output)
		item = map[string]any{"type": "message", "role": "assistant", "id": "m", "content": []any{map[string]any{"type": "output_text", "text": "ok"}}}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	response := map[string]any{"id": "r", "usage": map[string]any{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}
	for _, e := range []map[string]any{
		{"type": "response.created", "response": response}, {"type": "response.output_item.done", "item": item}, {"type": "response.completed", "response": response},
	} {
		data, _ := json.Marshal(e) // Marshal cannot fail, because JSON can encode all these values
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", e["type"], data)
	}
}
