package hosts

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// openCode is a fake OpenCode server, with only the API methods that permissions need.
type openCode struct {
	t             *testing.T
	url           string
	says, replies chan string
}

func newOpenCode(t *testing.T) *openCode {
	o := &openCode{t: t, says: make(chan string, 10), replies: make(chan string, 10)}
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /event", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			w.(http.Flusher).Flush()
			select {
			case event := <-o.says:
				_, _ = fmt.Fprintf(w, "data: %s\n\n", event)
			case <-r.Context().Done():
				return
			}
		}
	})
	mux.HandleFunc("GET /permission", answer(`[]`))
	mux.HandleFunc("GET /session/{id}", answer(`{"id":"ses_1","directory":"/p","title":"T"}`))
	mux.HandleFunc("GET /session/{id}/message", answer(`[{"info":{"id":"m","role":"assistant","agent":"build"},"parts":[{"type":"text","text":"All done"}]}]`))
	mux.HandleFunc("GET /session/{id}/message/{message}", answer(`{"parts":[{"type":"tool","callID":"c","tool":"bash","state":{"status":"running","input":{"command":"make release"}}}]}`))
	mux.HandleFunc("POST /permission/{id}/reply", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // if ReadAll fails, the body is incomplete, and the test fails
		o.replies <- r.PathValue("id") + " " + string(body)
		answer(`true`)(w, r)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	o.url = srv.URL
	return o
}

// followedBy starts nod opencode for the server, and waits until nod opencode receives the server's events.
func (o *openCode) followedBy(m *rig.Machine, args ...string) *exec.Cmd {
	follow := m.Command(append([]string{"opencode", "--url", o.url}, args...)...)
	out, err := follow.StdoutPipe()
	require.NoError(o.t, err)
	require.NoError(o.t, follow.Start())
	o.t.Cleanup(func() { _ = follow.Process.Kill(); _ = follow.Wait() }) // Kill and Wait fail if the process has ended
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(o.t, err)
	assert.Equal(o.t, "nod gets the permission prompts of OpenCode at "+o.url+"\n", line)
	return follow
}

func (o *openCode) asks(id string) {
	o.says <- `{"type":"permission.asked","properties":{"id":"` + id + `","sessionID":"ses_1","permission":"bash","patterns":[],"metadata":{},"always":[],"tool":{"messageID":"m","callID":"c"}}}`
}

func (o *openCode) replied() string {
	o.t.Helper()
	select {
	case reply := <-o.replies:
		return reply
	case <-time.After(2 * rig.Patience):
		require.FailNow(o.t, "OpenCode got no reply")
	}
	return ""
}

// TestNodOpencode: nod opencode may start before nod. It gives OpenCode the answer of the approver. If it is
// stopped, it withdraws its pending request.
func TestNodOpencode(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	o := newOpenCode(t)
	follow := o.followedBy(m)
	m.StartNod()
	o.asks("per_1")
	require.Equal(t, "per_1", m.Pending("ses_1"))
	_, stderr, code := m.Run("deny", "per_1", "-m", "not today")
	require.Zero(t, code, stderr)
	assert.Equal(t, `per_1 {"message":"Denied by `+rig.Me(t)+`: not today","reply":"reject"}`, o.replied())
	o.asks("per_2")
	require.Equal(t, "per_2", m.Pending("ses_1"))
	require.NoError(t, follow.Process.Signal(os.Interrupt))
	require.NoError(t, follow.Wait())
	stdout, _, _ := m.Run("show", "per_2")
	assert.Contains(t, stdout, "Withdrawn")
	assert.Empty(t, o.replies)

	_, stderr, code = m.Run("opencode", "--url", "nowhere")
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "OpenCode's address is not a URL")
}

// TestAKilledOpencodesQuestionIsWithdrawn: if nod opencode is killed, nod withdraws its question about the
// end of a turn, because no reply can reach OpenCode.
func TestAKilledOpencodesQuestionIsWithdrawn(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	o := newOpenCode(t)
	follow := o.followedBy(m, "--turns")
	o.says <- `{"type":"session.status","properties":{"sessionID":"ses_1","status":{"type":"busy"}}}`
	o.says <- `{"type":"session.idle","properties":{"sessionID":"ses_1"}}`
	id := m.Pending("ses_1")
	stdout, _, _ := m.Run("show", id)
	assert.Contains(t, stdout, "Your turn: the agent has finished")
	require.NoError(t, follow.Process.Kill())
	m.Shown(id, func(p schemas.Prompt) bool { return p.Decision != nil })
	stdout, _, _ = m.Run("show", id)
	assert.Contains(t, stdout, "Withdrawn")
}

// TestAKilledOpencodesPermissionIsAskedAgain: if nod opencode is killed, nod withdraws its request. A new nod
// opencode asks again about the permission that is still open.
func TestAKilledOpencodesPermissionIsAskedAgain(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAKilledOpencodesQuestionIsWithdrawn kills it too")
	m := rig.NewMachine(t)
	m.StartNod()
	o := newOpenCode(t)
	follow := o.followedBy(m)
	o.asks("per_1")
	require.Equal(t, "per_1", m.Pending("ses_1"))
	require.NoError(t, follow.Process.Kill())
	m.Shown("per_1", func(p schemas.Prompt) bool { return p.Decision != nil })
	stdout, _, _ := m.Run("show", "per_1")
	assert.Contains(t, stdout, "Withdrawn")
	o.followedBy(m)
	o.asks("per_1")
	id := m.Pending("ses_1")
	assert.NotEqual(t, "per_1", id)
	_, stderr, code := m.Run("allow", id)
	require.Zero(t, code, stderr)
	assert.Equal(t, `per_1 {"reply":"once"}`, o.replied())
}

// TestNodInstallOpencode: nod install changes OpenCode's settings file, and a second run changes nothing.
// With --uninstall it restores the file byte for byte.
func TestNodInstallOpencode(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestNodOpencode runs it")
	m := rig.NewMachine(t)
	path := filepath.Join(t.TempDir(), "opencode.jsonc")
	const before = "{ // mine\n  \"model\": \"a/b\",\n}\n"
	require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
	stdout, stderr, code := m.Run("install", "opencode", "--settings", path)
	require.Zero(t, code, stderr)
	assert.Contains(t, stdout, "asks nod now")
	assert.Contains(t, stderr, "nod opencode")
	installed, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(installed), `"bash": "ask"`)
	stdout, _, _ = m.Run("install", "opencode", "--settings", path)
	assert.Contains(t, stdout, "nothing to change")
	_, stderr, code = m.Run("install", "opencode", "--settings", path, "--uninstall")
	require.Zero(t, code, stderr)
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, before, string(after))
	_, stderr, code = m.Run("install", "opencode", "--settings", path, "--on-unavailable", "deny")
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "give --on-unavailable to nod opencode")
}

// TestNodCodexAppServer: nod codex-app-server answers Codex's approval request with the approver's decision,
// and exits with Codex's exit code.
func TestNodCodexAppServer(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	const asks = `{"id":1,"method":"item/commandExecution/requestApproval","params":{"threadId":"thr-1","turnId":"t","itemId":"i","command":"make release","cwd":"/p"}}`
	c := m.Command("codex-app-server", "--", "sh", "-c", `echo '`+asks+`'; read answer; echo "$answer"; exit 7`)
	in, err := c.StdinPipe() // nod passes its input on to the app-server, so the pipe must stay open until the test ends
	require.NoError(t, err)
	defer func() { _ = in.Close() }()
	var out strings.Builder
	c.Stdout, c.Stderr = &out, os.Stderr
	require.NoError(t, c.Start())
	_, stderr, code := m.Run("allow", m.Pending("thr-1"))
	require.Zero(t, code, stderr)
	var ended *exec.ExitError
	require.ErrorAs(t, c.Wait(), &ended)
	assert.Equal(t, 7, ended.ExitCode())
	assert.Equal(t, `{"id":1,"result":{"decision":"accept"}}`+"\n", out.String())
}
