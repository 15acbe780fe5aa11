package hosts

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/test/internal/rig"
)

// clientProgram is a test program that uses the client of nod http in another language. It checks each HTTP
// exchange against the server's OpenAPI document.
type clientProgram struct {
	language string
	argv     []string
}

func clientPrograms() []clientProgram {
	return []clientProgram{
		{"typescript", []string{"node", "../../clients/typescript/app.test.mjs"}},
		{"python", []string{"python3", "-B", "../../clients/python/app_test.py"}},
	}
}

type app struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
}

// result is the output of a client's program. Each kind of run sets some of the fields.
type result struct {
	Allowed, Edited, Refused         bool
	ID, Outcome, Message, By, Option string
	Error, Code                      string
	Input, Ran                       map[string]any
	Notices                          []struct{ Kind, Text, ID string }
}

func (c clientProgram) starts(t *testing.T, url, token, what, call string) *app {
	a := &app{cmd: exec.Command(c.argv[0], append(c.argv[1:len(c.argv):len(c.argv)], what, call)...)}
	a.cmd.Env = append(os.Environ(), "NOD_HTTP="+url, "NOD_TOKEN="+token)
	a.cmd.Stdout, a.cmd.Stderr = &a.out, &a.err
	require.NoError(t, a.cmd.Start())
	t.Cleanup(func() { _ = a.cmd.Process.Kill() }) // Kill fails if the process has ended
	return a
}

func (a *app) ends(t *testing.T) (r result) {
	t.Helper()
	require.NoError(t, a.cmd.Wait(), a.err.String())
	if strings.TrimSpace(a.out.String()) != "null" {
		require.NoError(t, json.Unmarshal(a.out.Bytes(), &r), a.out.String())
	}
	return r
}

// The clients in other languages ask a real nod over HTTP. They get an allow, an edit, a denial, a withdrawal
// and refusals, also if the app is killed or nod is restarted while the app waits.
func TestClients(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAnAgentOverHTTPOutlivesNod and the tests of the API make the same calls")
	for _, c := range clientPrograms() {
		t.Run(c.language, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.argv[0]); err != nil {
				t.Skipf("the client for %s needs %s, which is not installed", c.language, c.argv[0])
			}
			m := rig.NewMachine(t)
			m.StartNod()
			url, _ := serveHTTP(m)
			data, err := os.ReadFile(filepath.Join(m.Dir, "http", "local.token"))
			require.NoError(t, err)
			token := strings.TrimSpace(string(data))
			starts := func(what, call string) *app { return c.starts(t, url, token, what, call) }
			nod := func(args ...string) {
				_, stderr, code := m.Run(args...)
				require.Zero(t, code, stderr)
			}

			const call = `{"session":"ask","toolName":"refund","input":{"order":"A-17","amount":1.5,"cwd":"/x"},"toolCallId":"call.1"}`
			a := starts("guard", call)
			id := m.Pending("ask")
			require.Regexp(t, `^h-[0-9a-f]{32}$`, id, "the id of the tool call is none of nod's")
			require.NoError(t, a.cmd.Process.Kill())
			_ = a.cmd.Wait() // Wait fails, because the app was killed
			a = starts("guard", call)
			m.Kill()
			m.StartNod()
			require.Equal(t, id, m.Pending("ask"), "the app waits for the same request")
			nod("allow", id)
			require.Equal(t, map[string]any{"order": "A-17", "amount": 1.5, "cwd": "/x"}, a.ends(t).Ran)
			r := starts("ask", call).ends(t)
			require.True(t, r.Allowed, "the decision stays")
			require.False(t, r.Edited)
			other := starts("ask", strings.Replace(call, "1.5", "99", 1)).ends(t)
			require.Equal(t, "CONFLICT", other.Code, "an allow is for what was asked")

			a = starts("guard", `{"session":"no","toolName":"refund","input":{},"toolCallId":"call_2"}`)
			require.Equal(t, "call_2", m.Pending("no"))
			nod("deny", "call_2", "-m", "not on a Friday")
			r = a.ends(t)
			require.True(t, r.Refused)
			require.Contains(t, r.Message, "not on a Friday")

			starts("submit", `{"session":"sub","toolName":"refund","input":{},"id":"s1"}`).ends(t)
			require.Empty(t, starts("status", `{"session":"sub","id":"s1"}`).ends(t).Outcome, "it is pending")
			require.Equal(t, "withdrawn", starts("withdraw", `{"session":"sub","id":"s1"}`).ends(t).Outcome)
			r = starts("status", `{"session":"sub","id":"s1","wait":1}`).ends(t)
			require.Equal(t, "withdrawn", r.Outcome)
			require.False(t, r.Allowed)

			r = starts("abort", `{"session":"late","toolName":"refund","input":{},"id":"l1","after":1500}`).ends(t)
			require.Equal(t, "TimeoutError", r.Error)
			require.Equal(t, "withdrawn", starts("status", `{"session":"late","id":"l1","wait":10}`).ends(t).Outcome)

			require.Empty(t, starts("notices", `{"session":"news","wait":0}`).ends(t).Notices)
			a = starts("notices", `{"session":"news","wait":60}`)
			nod("gate", "--session", "news", "--name", "backup", "--id", "g", "--permission", "@network")
			r = a.ends(t)
			require.Len(t, r.Notices, 1)
			require.Equal(t, "gate", r.Notices[0].Kind)
			require.Contains(t, r.Notices[0].Text, `"backup"`)

			r = starts("ask", `{"session":"bad","toolName":"refund","input":[],"id":"b1"}`).ends(t)
			require.NotEmpty(t, r.Error+r.Code)
			require.False(t, r.Allowed)
			r = c.starts(t, url, "wrong", "ask", call).ends(t)
			require.Equal(t, "UNAUTHORIZED", r.Code)
		})
	}
}

// TestPythonAdapters runs the tests of the adapters for Python frameworks. These tests use stand-ins for the
// frameworks' objects.
func TestPythonAdapters(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not in PATH")
	}
	out, err := exec.Command("python3", "-B", "../../clients/python/adapters_test.py").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
