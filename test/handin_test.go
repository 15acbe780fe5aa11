package test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCodexAppServerWhenNodIsGone: a nod that was there and is no longer keeps
// nobody waiting. The client is asked, or Codex hears no.
func TestCodexAppServerWhenNodIsGone(t *testing.T) {
	const asks = `{"id":ID,"method":"item/commandExecution/requestApproval","params":{"threadId":"thr-1","turnId":"t","itemId":"i","command":"make release","cwd":"/p"}}`
	first, second := strings.Replace(asks, "ID", "1", 1), strings.Replace(asks, "ID", "2", 1)
	for onUnavailable, want := range map[string]string{
		"ask":  second + "\n",
		"deny": `{"id":2,"result":{"decision":"decline"}}` + "\n",
	} {
		t.Run(onUnavailable, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			m.start()
			c := m.command("codex-app-server", "--on-unavailable", onUnavailable, "--", "sh", "-c",
				`echo '`+first+`'; read -r answer; echo "$answer"; read -r go; echo '`+second+`'; read -r answer; echo "$answer"`)
			in, err := c.StdinPipe()
			require.NoError(t, err)
			pipe, err := c.StdoutPipe()
			require.NoError(t, err)
			c.Stderr = os.Stderr
			require.NoError(t, c.Start())
			t.Cleanup(func() { _ = c.Process.Kill() }) // it has ended, mostly
			out := bufio.NewReader(pipe)
			reads := func() string {
				line, err := out.ReadString('\n')
				require.NoError(t, err)
				return line
			}
			_, stderr, code := m.run("allow", m.pending("thr-1"))
			require.Zero(t, code, stderr)
			assert.Equal(t, `{"id":1,"result":{"decision":"accept"}}`+"\n", reads())
			m.kill()
			_, err = in.Write([]byte("go\n"))
			require.NoError(t, err)
			assert.Equal(t, want, reads())
			require.NoError(t, in.Close())
			require.NoError(t, c.Wait())
		})
	}
}

// TestOpencodeWhenNodIsGone: the same for OpenCode, where calls are to be refused
// then.
func TestOpencodeWhenNodIsGone(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	o := newOpenCode(t)
	m.start()
	o.followedBy(m, "--on-unavailable", "deny")
	o.asks("per_1")
	_, stderr, code := m.run("allow", m.pending("ses_1"))
	require.Zero(t, code, stderr)
	assert.Equal(t, `per_1 {"reply":"once"}`, o.replied())
	m.kill()
	o.asks("per_2")
	assert.Regexp(t, `^per_2 \{"message":"nod cannot be reached, and calls are refused without it: .*","reply":"reject"\}$`, o.replied())
}

// TestHookWithoutAnEngine: a bus without an engine is a nod that does not run. The
// host asks then, or the call is refused; the hook does not wait for its deadline.
func TestHookWithoutAnEngine(t *testing.T) {
	nats, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	require.NoError(t, err)
	nats.Start()
	t.Cleanup(func() { nats.Shutdown(); nats.WaitForShutdown() })
	for onUnavailable, want := range map[string]string{"ask": `"permissionDecision":"ask"`, "deny": `"permissionDecision":"deny"`} {
		t.Run(onUnavailable, func(t *testing.T) {
			t.Parallel()
			c := newMachine(t).command("hook", "claude-code", "--host-timeout", "24h", "--on-unavailable", onUnavailable)
			c.Env = append(c.Env, "NOD_URL="+nats.ClientURL())
			c.Stdin = strings.NewReader(`{"session_id":"S","cwd":"/p","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"make release"},"tool_use_id":"t1"}`)
			out, err := c.Output()
			require.NoError(t, err)
			assert.Contains(t, string(out), want)
			assert.Contains(t, string(out), "no nod engine is on the bus")
		})
	}
}
