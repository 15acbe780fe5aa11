package hosts

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// TestCodexAppServerWhenNodIsGone: after nod has ended, nod codex-app-server answers Codex's next request
// without waiting. Depending on --on-unavailable, it asks the client or declines the request.
func TestCodexAppServerWhenNodIsGone(t *testing.T) {
	t.Parallel() // this test waits for the timeout of a call to a nod that has ended
	rig.OnlyLong(t, "TestHookWithoutAnEngine is the same for hooks")
	const asks = `{"id":ID,"method":"item/commandExecution/requestApproval","params":{"threadId":"thr-1","turnId":"t","itemId":"i","command":"make release","cwd":"/p"}}`
	first, second := strings.Replace(asks, "ID", "1", 1), strings.Replace(asks, "ID", "2", 1)
	for onUnavailable, want := range map[string]string{
		"ask":  second + "\n",
		"deny": `{"id":2,"result":{"decision":"decline"}}` + "\n",
	} {
		t.Run(onUnavailable, func(t *testing.T) {
			t.Parallel()
			m := rig.NewMachine(t)
			m.StartNod()
			c := m.Command("codex-app-server", "--on-unavailable", onUnavailable, "--", "sh", "-c",
				`echo '`+first+`'; read -r answer; echo "$answer"; read -r go; echo '`+second+`'; read -r answer; echo "$answer"`)
			in, err := c.StdinPipe()
			require.NoError(t, err)
			pipe, err := c.StdoutPipe()
			require.NoError(t, err)
			c.Stderr = os.Stderr
			require.NoError(t, c.Start())
			kill := func() { _ = c.Process.Kill() } // Kill fails if the process has ended
			latest := time.AfterFunc(4*rig.Patience, kill)
			t.Cleanup(func() { latest.Stop(); kill() })
			out := bufio.NewReader(pipe)
			reads := func() string {
				line, err := out.ReadString('\n')
				require.NoError(t, err)
				return line
			}
			_, stderr, code := m.Run("allow", m.Pending("thr-1"))
			require.Zero(t, code, stderr)
			assert.Equal(t, `{"id":1,"result":{"decision":"accept"}}`+"\n", reads())
			m.Kill()
			_, err = in.Write([]byte("go\n"))
			require.NoError(t, err)
			assert.Equal(t, want, reads())
			require.NoError(t, in.Close())
			require.NoError(t, c.Wait())
		})
	}
}

// TestOpencodeWhenNodIsGone: after nod has ended, nod opencode --on-unavailable deny refuses
// OpenCode's next request.
func TestOpencodeWhenNodIsGone(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestHookWithoutAnEngine is the same for hooks")
	m := rig.NewMachine(t)
	o := newOpenCode(t)
	m.StartNod()
	o.followedBy(m, "--on-unavailable", "deny")
	o.asks("per_1")
	_, stderr, code := m.Run("allow", m.Pending("ses_1"))
	require.Zero(t, code, stderr)
	assert.Equal(t, `per_1 {"reply":"once"}`, o.replied())
	m.Kill()
	o.asks("per_2")
	assert.Regexp(t, `^per_2 \{"message":"nod cannot be reached, and calls are refused without it: .*","reply":"reject"\}$`, o.replied())
}

// TestHookWithoutAnEngine: if the NATS server is running without an engine, nod hook and nod http refuse a
// call at once, before the hook's deadline.
func TestHookWithoutAnEngine(t *testing.T) {
	t.Parallel() // this test waits until nod stops looking for an engine
	nats, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	require.NoError(t, err)
	nats.Start()
	t.Cleanup(func() { nats.Shutdown(); nats.WaitForShutdown() })
	const call = `{"session_id":"S","cwd":"/p","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"make release"},"tool_use_id":"t1"}`
	const refused = `"permissionDecision":"deny","permissionDecisionReason":"Not allowed, because nod could not get a decision: ask: no nod engine is on the bus`
	m := rig.NewMachine(t)
	t.Run("command", func(t *testing.T) {
		t.Parallel()
		c := m.Command("hook", "claude-code", "--host-timeout", "8s") // the hook's deadline is 4 s, which is less than the 15 s that nod has to store a request
		c.Env = append(c.Env, "NOD_URL="+nats.ClientURL())
		c.Stdin = strings.NewReader(call)
		out, err := c.Output()
		require.NoError(t, err)
		assert.Contains(t, string(out), refused)
	})
	t.Run("HTTP", func(t *testing.T) {
		t.Parallel()
		url, _ := serveHTTP(m, "--nats-url", nats.ClientURL())
		token, err := os.ReadFile(filepath.Join(m.Dir, "http", "local.token"))
		require.NoError(t, err)
		r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/api/v1/hooks/claude-code?host_timeout=8s", strings.NewReader(call))
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		out, err := io.ReadAll(resp.Body)
		require.NoError(t, errors.Join(err, resp.Body.Close()))
		assert.Contains(t, string(out), refused)
	})
}
