package hosts

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/internal/testlog"
	"github.com/nodbus/nod/test/internal/rig"
)

// serveHTTP starts nod http. It returns the URL that nod http prints, and a buffer that collects all output.
func serveHTTP(m *rig.Machine, args ...string) (url string, log *testlog.Buffer) {
	c := m.Command(append([]string{"http", "--listen", "127.0.0.1:0", "--verbose"}, args...)...)
	out, err := c.StdoutPipe()
	require.NoError(m.T, err)
	log = &testlog.Buffer{}
	c.Stderr = log
	require.NoError(m.T, c.Start())
	lines := bufio.NewReader(io.TeeReader(out, log))
	line, err := lines.ReadString('\n')
	require.NoError(m.T, err, "nod http said: %s", log)
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "nod's HTTP API is up on ")
	require.True(m.T, ok, line)
	read := make(chan struct{})
	go func() { defer close(read); _, _ = io.Copy(io.Discard, lines) }()
	m.T.Cleanup(func() {
		require.NoError(m.T, c.Process.Signal(os.Interrupt))
		<-read
		require.NoError(m.T, c.Wait(), log)
	})
	return url, log
}

// The examples in docs/http.md work as written. The test replaces only the URL, the data directory and some
// ids in them.
func TestTheHTTPExamplesRun(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("the examples need curl, which is not installed")
	}
	m := rig.NewMachine(t)
	m.StartNod()
	url, log := serveHTTP(m)
	token, err := os.ReadFile(filepath.Join(m.Dir, "http", "local.token"))
	require.NoError(t, err)

	var blocks []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(rig.Document(t, "docs/http.md"), -1) {
		block := strings.ReplaceAll(block[1], "http://127.0.0.1:4282", url)
		blocks = append(blocks, strings.ReplaceAll(block, "~/.local/share/nod", m.Dir))
	}
	require.Len(t, blocks, 5)
	shell := func(blocks ...string) string {
		out, err := exec.Command("sh", "-euc", strings.Join(blocks, "\n")).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	settings, ask, wait, loop, withdraw := blocks[0], blocks[1], blocks[2], blocks[3], blocks[4]
	require.Contains(t, shell(settings, ask), `"type":"nod.v1.receipt"`)
	require.Empty(t, shell(settings, strings.Replace(wait, "wait=30s", "wait=1ms", 1)))

	_, stderr, code := m.Run("allow", "release-42")
	require.Zero(t, code, stderr)
	require.Contains(t, shell(settings, wait), `"outcome":"allowed"`)
	require.Equal(t, "go on\n", shell(settings, loop))
	require.Contains(t, shell(settings, ask), `"outcome":"allowed"`)
	require.Contains(t, shell(settings, withdraw), `"outcome":"allowed"`)

	again := func(block string) string { return strings.ReplaceAll(block, "release-42", "release-43") }
	shell(settings, again(ask))
	require.Contains(t, shell(settings, again(withdraw)), `"outcome":"withdrawn"`)
	require.Equal(t, "stop\n", shell(settings, again(loop)))

	edited := func(block string) string { return strings.ReplaceAll(block, "release-42", "release-44") }
	shell(settings, edited(ask))
	_, stderr, code = m.Run("allow", "release-44", "--input", `{"command":"make release-dry"}`)
	require.Zero(t, code, stderr)
	require.Contains(t, shell(settings, edited(wait)), `"outcome":"allowed"`)
	require.Equal(t, "stop: not as it was asked\n", shell(settings, edited(loop)))
	require.NotContains(t, log.String(), strings.TrimSpace(string(token)))
	require.NotContains(t, log.String(), "make release")
}

// A caller of nod http gets the decision even if nod is killed with kill -9 and restarted on another port
// during the wait. Each agent has its own token, and cannot see other agents' requests.
func TestAnAgentOverHTTPOutlivesNod(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("this test needs curl, which is not installed")
	}
	m := rig.NewMachine(t)
	_, stderr, code := m.Run("keys", "add", "agent-ci")
	require.Zero(t, code, stderr)
	m.StartNod()
	url, _ := serveHTTP(m, "--agent", "local", "--agent", "ci")
	call := func(agent string, args ...string) *exec.Cmd {
		token, err := os.ReadFile(filepath.Join(m.Dir, "http", agent+".token"))
		require.NoError(t, err)
		return exec.Command("curl", append([]string{"-sS", "-H", "Authorization: Bearer " + strings.TrimSpace(string(token)), "-H", "Content-Type: application/json"}, args...)...)
	}
	out, err := call("ci", url+"/api/v1/requests", "-d", `{"session_id":"ci","pending_id":"deploy-1","kind":"tool_call","title":"T","tool_name":"Deploy","action_type":"other","action_details":{}}`).Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "nod.v1.receipt")
	out, err = call("local", url+"/api/v1/requests/ci.deploy-1").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "NOT_FOUND")

	waiting := call("ci", url+"/api/v1/requests/ci.deploy-1?wait=2m")
	var heard bytes.Buffer
	waiting.Stdout, waiting.Stderr = &heard, &heard
	require.NoError(t, waiting.Start())
	m.Kill()
	m.StartNod()
	_, stderr, code = m.Run("allow", "deploy-1")
	require.Zero(t, code, stderr)
	require.NoError(t, waiting.Wait(), heard.String())
	require.Contains(t, heard.String(), `"outcome":"allowed"`)
}

func TestHTTPNamesTheRemedyIfItCannotStart(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	_, stderr, code := m.Run("http")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nod up")
	m.StartNod()
	for says, args := range map[string][]string{
		"nod keys add agent-ci": {"--agent", "ci"},
		"--behind-proxy":        {"--listen", "0.0.0.0:0"},
		"127.0.0.1:4282":        {"--listen", "here"},
		"one agent's key":       {"--agent", "local", "--agent", "ci", "--creds", "x"},
		"cannot name":           {"--agent", "../x"},
	} {
		_, stderr, code := m.Run(append([]string{"http", "--listen", "127.0.0.1:0"}, args...)...)
		require.Equal(t, 1, code)
		require.Contains(t, stderr, says)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
}
