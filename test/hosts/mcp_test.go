package hosts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// mcpServer is a process of nod mcp with an MCP client, as in an agent program. The buffer printed has every
// byte of the process's output.
type mcpServer struct {
	*rig.Machine
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	stdout  *os.File
	errs    bytes.Buffer
	client  *mcp.ClientSession
	printed struct {
		sync.Mutex
		bytes.Buffer
	}
}

// mcpOver starts nod mcp and connects a client to its standard streams. The string version is the client's
// protocol version.
func mcpOver(m *rig.Machine, version string, args ...string) *mcpServer {
	s := &mcpServer{Machine: m, cmd: m.Command(append([]string{"-v", "mcp"}, args...)...)}
	stdin, err := s.cmd.StdinPipe()
	require.NoError(m.T, err)
	stdout, w, err := os.Pipe()
	require.NoError(m.T, err)
	s.stdin, s.stdout, s.cmd.Stdout, s.cmd.Stderr = stdin, stdout, w, &s.errs
	require.NoError(m.T, s.cmd.Start())
	require.NoError(m.T, w.Close())
	m.T.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() }) // Kill and Wait fail if the process has ended
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	s.client, err = client.Connect(m.T.Context(), &mcp.IOTransport{Reader: s, Writer: stdin}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(m.T, err)
	return s
}

// Read passes the process's output to the client, and appends a copy to the buffer printed.
func (s *mcpServer) Read(p []byte) (int, error) {
	n, err := s.stdout.Read(p)
	s.printed.Lock()
	defer s.printed.Unlock()
	s.printed.Write(p[:n])
	return n, err
}

func (s *mcpServer) Close() error { return s.stdout.Close() }

// approve calls the tool approve in the background. The returned Go channel gets the text of the result.
func approve(t *testing.T, c *mcp.ClientSession, id string) <-chan string {
	answered := make(chan string, 1)
	go func() {
		p := &mcp.CallToolParams{Name: "approve", Arguments: json.RawMessage(`{"tool_name":"Bash","input":{"command":"make release"},"tool_use_id":"` + id + `"}`)}
		p.SetProgressToken(id)
		result, err := c.CallTool(t.Context(), p)
		if err != nil {
			answered <- err.Error()
			return
		}
		answered <- result.Content[0].(*mcp.TextContent).Text
	}()
	return answered
}

// nod mcp can start before nod. If nod is killed and restarted while a call waits, the call gets the
// decision. nod mcp prints only MCP messages.
func TestMCPOverStdio(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			m := rig.NewMachine(t)
			s := mcpOver(m, version, "--session", "ci")
			require.Contains(t, <-approve(t, s.client, "before"), `{"behavior":"deny","message":"Not allowed, because nod could not get a decision: nod is not running`)
			result, err := s.client.CallTool(t.Context(), &mcp.CallToolParams{Name: "list_permissions"})
			require.NoError(t, err)
			require.True(t, result.IsError)

			m.StartNod()
			answered := approve(t, s.client, "yes")
			_, stderr, code := m.Run("allow", m.Pending("ci"))
			require.Zero(t, code, stderr)
			require.Equal(t, `{"behavior":"allow","updatedInput":{"command":"make release"}}`, <-answered)

			answered = approve(t, s.client, "no")
			require.Equal(t, "no", m.Pending("ci"))
			m.Kill()
			m.StartNod()
			_, stderr, code = m.Run("deny", "no", "-m", "not today")
			require.Zero(t, code, stderr)
			require.Contains(t, <-answered, `not today"}`)

			require.NoError(t, s.stdin.Close())
			require.NoError(t, s.cmd.Wait(), s.errs.String())
			s.printed.Lock()
			defer s.printed.Unlock()
			lines := bufio.NewScanner(&s.printed.Buffer)
			said := 0
			for ; lines.Scan(); said++ {
				var message struct {
					JSONRPC string `json:"jsonrpc"`
				}
				require.NoError(t, json.Unmarshal(lines.Bytes(), &message), "%q", lines.Text())
				require.Equal(t, "2.0", message.JSONRPC)
			}
			require.Greater(t, said, 4)
		})
	}
}

// A person allows a call of the prompt tool with a standing answer, and the next identical call is allowed
// without a question. The rule says "or elsewhere", because the agent does not name the command's directory.
func TestALastingAnswerForThePromptTool(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestMCPOverStdio asks by the same tool")
	m := rig.NewMachine(t)
	m.StartNod()
	s := mcpOver(m, "2025-11-25", "--session", "lasting")
	answered := approve(t, s.client, "first")
	id := m.Pending("lasting")
	stdout, stderr, code := m.Run("show", id, "--json")
	require.Zero(t, code, stderr)
	var shown schemas.Request
	require.NoError(t, json.Unmarshal([]byte(stdout), &shown))
	rule := "Bash(make release) in " + shown.Project + " or elsewhere"
	_, stderr, code = m.Run("allow", id, "--for", "10m", "--yes", "--rule", rule)
	require.Zero(t, code, stderr)
	require.Contains(t, <-answered, `"behavior":"allow"`)
	require.Contains(t, <-approve(t, s.client, "second"), `"behavior":"allow"`)
	stdout, stderr, code = m.Run("grants")
	require.Zero(t, code, stderr)
	require.Contains(t, strings.Join(strings.Fields(stdout), " "), "or elsewhere")
}

// A process of nod mcp withdraws its pending requests when its host ends, no matter how the host ends.
func TestMCPWithdrawsWhenItsHostGoes(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	for name, goes := range map[string]func(*mcpServer) error{
		"it closes":        func(s *mcpServer) error { return s.stdin.Close() },
		"it reads no more": func(s *mcpServer) error { return s.stdout.Close() },
		"SIGTERM":          func(s *mcpServer) error { return s.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGINT":           func(s *mcpServer) error { return s.cmd.Process.Signal(syscall.SIGINT) },
		"SIGHUP":           func(s *mcpServer) error { return s.cmd.Process.Signal(syscall.SIGHUP) },
	} {
		t.Run(name, func(t *testing.T) {
			session := strings.ReplaceAll(name, " ", "-")
			s := mcpOver(m, "2025-11-25", "--session", session)
			approve(t, s.client, session)
			require.Equal(t, session, m.Pending(session))
			require.NoError(t, goes(s))
			_ = s.cmd.Wait() // the exit code is ignored, because the test checks the record
			out, stderr, code := m.Run("show", session, "--json")
			require.Zero(t, code, stderr)
			var shown struct {
				Decision struct {
					Outcome string `json:"outcome"`
				} `json:"decision"`
			}
			require.NoError(t, json.Unmarshal([]byte(out), &shown))
			require.Equal(t, "withdrawn", shown.Decision.Outcome, s.errs.String())
		})
	}
}

// key is a bearer token. As an HTTP transport, it adds the token and a session to each request.
type key string

func (k key) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(k))
	r.Header.Set("Nod-Session", "web")
	return http.DefaultTransport.RoundTrip(r)
}

func TestMCPOverHTTP(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	server := m.Command("mcp", "--http", "127.0.0.1:0")
	stdout, err := server.StdoutPipe()
	require.NoError(t, err)
	server.Stderr = os.Stderr
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill() }) // Kill fails if the server has ended
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	found := regexp.MustCompile(`^nod mcp is up on (http://127\.0\.0\.1:\d+/mcp); its bearer token is in (.+)\n$`).FindStringSubmatch(line)
	require.NotNil(t, found, line)
	require.Equal(t, filepath.Join(m.Dir, "mcp-token"), found[2])
	info, err := os.Stat(found[2])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	token, err := os.ReadFile(found[2])
	require.NoError(t, err)

	reach := func(token, version string) (*mcp.ClientSession, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		return client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: found[1], HTTPClient: &http.Client{Transport: key(token)}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	}
	_, err = reach("another", "")
	require.ErrorContains(t, err, "Unauthorized")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		client, err := reach(strings.TrimSpace(string(token)), version)
		require.NoError(t, err)
		answered := approve(t, client, "web-"+version)
		_, stderr, code := m.Run("allow", m.Pending("web"))
		require.Zero(t, code, stderr)
		require.Equal(t, `{"behavior":"allow","updatedInput":{"command":"make release"}}`, <-answered)

		answered = approve(t, client, "open-"+version)
		require.Equal(t, "open-"+version, m.Pending("web"))
		if version == "2026-07-28" {
			require.NoError(t, server.Process.Signal(syscall.SIGTERM))
			require.Contains(t, <-answered, `{"behavior":"deny"`)
			require.NoError(t, server.Wait())
		}
		_, stderr, code = m.Run("deny", "open-"+version)
		require.Equal(t, version == "2026-07-28", code != 0, stderr) // this server withdrew the request when it got SIGTERM
		require.NoError(t, client.Close())
	}
}

// If nod mcp cannot serve clients, it prints an error in one line that names the remedy.
func TestMCPNamesTheRemedyIfItCannotServe(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestHTTPNamesTheRemedyIfItCannotStart is the same for nod http")
	m := rig.NewMachine(t)
	readable := filepath.Join(m.Dir, "readable")
	require.NoError(t, os.WriteFile(readable, []byte("0123456789abcdef0123\n"), 0o644))
	short := filepath.Join(m.Dir, "short")
	require.NoError(t, os.WriteFile(short, []byte("x\n"), 0o600))
	for name, c := range map[string]struct{ args, says string }{
		"other machines":       {"--http 0.0.0.0:0", "--allow-host"},
		"no address":           {"--http nowhere", "127.0.0.1:4281"},
		"a token for everyone": {"--http 127.0.0.1:0 --token-file " + readable, "chmod 600"},
		"a short token":        {"--http 127.0.0.1:0 --token-file " + short, "at least 16 characters"},
		"a session with a dot": {"--session a.b", "--session"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := m.Run(append([]string{"mcp"}, strings.Fields(c.args)...)...)
			require.Equal(t, 1, code)
			require.Contains(t, stderr, c.says)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		})
	}
}
