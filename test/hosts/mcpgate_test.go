package hosts

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// echoServer is an MCP server as a shell script. It writes each received message to stderr, and exits with 7
// at the end of its input.
const echoServer = `while IFS= read -r line; do printf 'heard %s\n' "$line" >&2; done; exit 7`

// gateRun is a nod mcp gate process before echoServer. The test acts as the client.
type gateRun struct {
	t        *testing.T
	cmd      *exec.Cmd
	client   io.WriteCloser
	out, err *bufio.Reader // the messages that the client gets, and the server's stderr
}

func gateOver(m *rig.Machine, flags ...string) *gateRun {
	args := append(append([]string{"mcp", "gate", "--name", "files"}, flags...), "--", "sh", "-c", echoServer)
	g := &gateRun{t: m.T, cmd: m.Command(args...)}
	g.client, g.out, g.err = pipes(m.T, g.cmd)
	return g
}

func (g *gateRun) says(line string) {
	_, err := io.WriteString(g.client, line+"\n")
	require.NoError(g.t, err)
}

func (g *gateRun) calls(id int) { g.says(gateCall(id)) }

func gateCall(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"arguments":{"path":"/a"},"name":"read"}}`, id)
}

// denied returns the text of the next message to the client, which must be a tool's result that is marked as
// an error.
func (g *gateRun) denied() string {
	line, err := g.out.ReadString('\n')
	require.NoError(g.t, err)
	var m struct {
		Result struct {
			IsError bool
			Content []struct{ Text string }
		}
	}
	require.NoError(g.t, json.Unmarshal([]byte(line), &m))
	require.True(g.t, m.Result.IsError, line)
	return m.Result.Content[0].Text
}

func (g *gateRun) serverHears() string {
	line, err := g.err.ReadString('\n')
	require.NoError(g.t, err)
	return line
}

// If nod is not running, nod mcp gate refuses calls. If nod is running, a person's answers decide the calls.
// nod mcp gate exits with the exit code of the server.
func TestMCPGate(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	g := gateOver(m, "--session", "ci")
	g.calls(1)
	require.Contains(t, g.denied(), "nod is not running")
	m.StartNod()

	g.calls(2)
	id := m.Pending("ci")
	out, _, _ := m.Run("show", id)
	require.Contains(t, out, "mcp__files__read")
	_, stderr, code := m.Run("deny", id, "-m", "not this one")
	require.Zero(t, code, stderr)
	require.Contains(t, g.denied(), "not this one")

	g.says(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"read","arguments":{"path":"/b"}}}`)
	_, stderr, code = m.Run("allow", m.Pending("ci"))
	require.Zero(t, code, stderr)
	require.Equal(t, `heard {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"arguments":{"path":"/b"},"name":"read"}}`+"\n", g.serverHears())

	require.NoError(t, g.client.Close())
	_, _ = io.ReadAll(g.err) // Wait closes the pipe, so the last read must come before it
	var exit *exec.ExitError
	require.ErrorAs(t, g.cmd.Wait(), &exit)
	require.Equal(t, 7, exit.ExitCode())
}

// A person allows a call after the client's time limit has passed. The client may repeat the call once.
func TestMCPGateLetsOneRepeatThrough(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestMCPGate makes the same calls")
	m := rig.NewMachine(t)
	m.StartNod()
	g := gateOver(m, "--session", "late")
	g.calls(1)
	id := m.Pending("late")
	g.says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"Request timed out"}}`)
	m.Shown(id, func(p schemas.Prompt) bool { return p.Detached })
	_, stderr, code := m.Run("allow", id)
	require.Zero(t, code, stderr)
	g.calls(2)
	require.Equal(t, "heard "+gateCall(2)+"\n", g.serverHears())
	g.calls(3)
	again := m.Pending("late")
	require.NotEqual(t, id, again)

	require.NoError(t, g.cmd.Process.Signal(syscall.SIGTERM))
	m.Shown(again, func(p schemas.Prompt) bool { return p.Decision != nil && p.Decision.Outcome == schemas.Withdrawn })
}

func TestMCPGateChecksItsFlags(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestMCPGate runs the gate")
	m := rig.NewMachine(t)
	for _, args := range [][]string{
		{}, {"--name", "a__b", "--", "x"}, {"--upstream", "ftp://x"}, {"--upstream", "http://x", "--", "y"}, {"--session", "a b", "--", "x"}, {"--nmae", "x", "--", "y"}, {"--bearer-env", "HOME", "--", "y"}, {"--bearer-env", "NOD_ABSENT", "--upstream", "http://x"}, {"--header-env", "A=NOD_ABSENT", "--upstream", "http://x"}, {"--", filepath.Join(t.TempDir(), "missing")},
	} {
		_, stderr, code := m.Run(append([]string{"mcp", "gate"}, args...)...)
		require.Equal(t, 1, code, args)
		require.Contains(t, stderr, "nod: ")
	}
}

// nod install mcp-gate puts the gate before the servers in a client's settings. nod uninstall restores the
// settings byte for byte.
func TestInstallMCPGate(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	file := filepath.Join(t.TempDir(), ".mcp.json")
	text := "{\n  \"mcpServers\": {\n    \"files\": {\n      \"command\": \"sh\",\n      \"args\": [\"-c\", \"exit 7\"]\n    },\n    \"bare\": {\"command\": \"cat\"}\n  }\n}\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, stderr, code := m.Run("install", "mcp-gate", "--settings", file, "--dry-run")
	require.Zero(t, code, stderr)
	require.Contains(t, out, `"gate"`)
	for range 2 {
		_, stderr, code = m.Run("install", "mcp-gate", "--settings", file)
		require.Zero(t, code, stderr)
	}
	var settings struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &settings))
	server := settings.Servers["files"]
	var exit *exec.ExitError
	require.ErrorAs(t, exec.Command(server.Command, server.Args...).Run(), &exit)
	require.Equal(t, 7, exit.ExitCode(), "the server runs behind the gate")

	_, stderr, code = m.Run("uninstall")
	require.Zero(t, code, stderr)
	data, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, text, string(data))
}

// nod install mcp-gate puts the gate before a server that Codex's settings name by a URL. The server gets the
// headers of the settings, and no output contains their values.
func TestInstallMCPGateForAURL(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestInstallMCPGate is the same for a command")
	m := rig.NewMachine(t)
	got := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case got <- r.Header.Clone():
		default:
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config.toml")
	text := fmt.Sprintf("# mine\n[mcp_servers.web] # tickets\nurl = %q\nhttp_headers = { X-Key = \"swordfish\" }\nbearer_token_env_var = \"TICKETS\"", server.URL)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	for _, flags := range [][]string{{"--dry-run"}, nil, nil} {
		out, stderr, code := m.Run(append([]string{"install", "mcp-gate", "--settings", file}, flags...)...)
		require.Zero(t, code, stderr)
		require.NotContains(t, out+stderr, "swordfish")
	}
	var settings struct {
		Servers map[string]struct {
			Command string
			Args    []string
			Env     map[string]string
		} `toml:"mcp_servers"`
	}
	_, err := toml.DecodeFile(file, &settings)
	require.NoError(t, err)
	web := settings.Servers["web"]
	gate := exec.Command(web.Command, web.Args...)
	gate.Env = append(os.Environ(), "TICKETS=token", "NOD_MCP_HEADERS="+web.Env["NOD_MCP_HEADERS"])
	in, err := gate.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, gate.Start())
	_, err = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	require.NoError(t, err)
	header := <-got
	require.Equal(t, "Bearer token", header.Get("Authorization"))
	require.Equal(t, "swordfish", header.Get("X-Key"))
	require.NoError(t, in.Close())
	require.NoError(t, gate.Wait())

	_, stderr, code := m.Run("uninstall")
	require.Zero(t, code, stderr)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, text, string(data))
}
