package hosts

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// acpAgent is an agent as a shell script. It sends its first argument as a line, prints the reply to stderr,
// and exits with 7.
const acpAgent = `printf '%s\n' "$1"; IFS= read -r heard; printf 'heard %s\n' "$heard" >&2; exit 7`

func acpRequest(session string) string {
	return `{"jsonrpc":"2.0","id":"r1","method":"session/request_permission","params":{"sessionId":"` + session + `","toolCall":{"toolCallId":"c1","title":"Release","kind":"execute","rawInput":{"command":"make release"}},` +
		`"options":[{"optionId":"ja","name":"Yes","kind":"allow_once"},{"optionId":"nein","name":"No","kind":"reject_once"}]}}`
}

func acpHeard(option string) string {
	return `heard {"jsonrpc":"2.0","id":"r1","result":{"outcome":{"outcome":"selected","optionId":"` + option + `"}}}` + "\n"
}

// acpRun is a nod acp process that runs acpAgent. The test acts as the editor.
type acpRun struct {
	cmd    *exec.Cmd
	editor io.WriteCloser // what the editor writes, and nod acp reads
	heard  *bufio.Reader  // what nod acp writes, and the editor reads
	stderr *bufio.Reader
}

func acp(m *rig.Machine, session string, flags ...string) *acpRun {
	args := append(append([]string{"acp"}, flags...), "--", "sh", "-c", acpAgent, "agent", acpRequest(session))
	a := &acpRun{cmd: m.Command(args...)}
	a.editor, a.heard, a.stderr = pipes(m.T, a.cmd)
	return a
}

// pipes starts a process and returns its standard streams. The process ends with the test.
func pipes(t *testing.T, cmd *exec.Cmd) (stdin io.WriteCloser, stdout, stderr *bufio.Reader) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	errs, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // Kill fails if the process has ended
	return stdin, bufio.NewReader(out), bufio.NewReader(errs)
}

// The method ends waits until nod acp has ended. It returns the unread rest of stdout, all of stderr, and the
// exit code.
func (a *acpRun) ends(t *testing.T) (stdout, stderr string, code int) {
	errs, err := io.ReadAll(a.stderr)
	require.NoError(t, err)
	out, err := io.ReadAll(a.heard)
	require.NoError(t, err)
	_ = a.cmd.Wait() // Wait's error contains only the exit code, which the method ends returns
	return string(out), string(errs), a.cmd.ProcessState.ExitCode()
}

// TestACPEndToEnd: the agent gets a person's answer as one of its own options. nod acp exits with the
// exit code of the agent.
func TestACPEndToEnd(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	for answer, option := range map[string]string{"allow": "ja", "deny": "nein"} {
		t.Run(answer, func(t *testing.T) {
			a := acp(m, "acp-"+answer)
			_, stderr, code := m.Run(answer, m.Pending("acp-"+answer))
			require.Zero(t, code, stderr)
			out, errs, code := a.ends(t)
			assert.Empty(t, out, "the editor is not asked")
			assert.Equal(t, acpHeard(option), errs)
			assert.Equal(t, 7, code)
		})
	}
}

// TestAKilledSidecarsTurnIsWithdrawn: if nod acp --turns is killed with kill -9, nod withdraws the question
// about the end of a turn.
func TestAKilledSidecarsTurnIsWithdrawn(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAKilledSidecarsRequestIsWithdrawn kills one too")
	m := rig.NewMachine(t)
	m.StartNod()
	const agent = `read -r prompt; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}'; read -r rest`
	cmd := m.Command("acp", "--turns", "--", "sh", "-c", agent)
	editor, heard, _ := pipes(t, cmd)
	_, err := io.WriteString(editor, `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"acp-turn","prompt":[{"type":"text","text":"go"}]}}`+"\n")
	require.NoError(t, err)
	_, err = heard.ReadString('\n')
	require.NoError(t, err)
	id := m.Pending("acp-turn")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // Wait fails, because the process was killed
	m.Shown(id, func(p schemas.Prompt) bool { return p.Decision != nil && p.Decision.Outcome == schemas.Withdrawn })
}

// TestAKilledSidecarsRequestIsWithdrawn: if nod acp is killed, nod withdraws its request.
func TestAKilledSidecarsRequestIsWithdrawn(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	a := acp(m, "acp-killed")
	id := m.Pending("acp-killed")
	require.NoError(t, a.cmd.Process.Kill())
	_ = a.cmd.Wait() // Wait fails, because the process was killed
	m.Shown(id, func(p schemas.Prompt) bool { return p.Decision != nil && p.Decision.Outcome == schemas.Withdrawn })
}

// TestACPRace: with --race, the editor and nod's approvers are asked at the same time, and the
// editor answers first. The agent gets the editor's answer, and nod acp withdraws nod's
// request.
func TestACPRace(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestACPEndToEnd makes the same calls one at a time")
	m := rig.NewMachine(t)
	m.StartNod()
	a := acp(m, "acp-race", "--race")
	shown, err := a.heard.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, acpRequest("acp-race")+"\n", shown)
	id := m.Pending("acp-race")
	_, err = io.WriteString(a.editor, `{"jsonrpc":"2.0","id":"r1","result":{"outcome":{"outcome":"selected","optionId":"nein"}}}`+"\n")
	require.NoError(t, err)
	_, errs, code := a.ends(t)
	assert.Equal(t, acpHeard("nein"), errs)
	assert.Equal(t, 7, code)
	assert.Equal(t, "withdrawn", outcome(m, id))
}

// TestACPOutlivesARestart: an agent gets the decision even if nod is killed with kill -9 and restarted
// while the agent waits.
func TestACPOutlivesARestart(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAnAgentOverHTTPOutlivesNod is the same over HTTP")
	m := rig.NewMachine(t)
	m.StartNod()
	a := acp(m, "acp-restart")
	id := m.Pending("acp-restart")
	m.Kill()
	m.StartNod()
	_, stderr, code := m.Run("allow", id)
	require.Zero(t, code, stderr)
	_, errs, code := a.ends(t)
	assert.Contains(t, errs, acpHeard("ja"))
	assert.Equal(t, 7, code)
}

// outcome returns the outcome of a decided request.
func outcome(m *rig.Machine, id string) string {
	stdout, stderr, code := m.Run("show", id, "--json")
	require.Zero(m.T, code, stderr)
	var shown struct{ Decision struct{ Outcome string } }
	require.NoError(m.T, json.Unmarshal([]byte(stdout), &shown))
	return shown.Decision.Outcome
}

// TestACPWithoutNod: if nod is not running, the editor asks its user. With --on-unavailable deny, nod
// acp denies every request instead.
func TestACPWithoutNod(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	a := acp(m, "s")
	shown, err := a.heard.ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, acpRequest("s")+"\n", shown)
	_, err = io.WriteString(a.editor, `{"jsonrpc":"2.0","id":"r1","result":{"outcome":{"outcome":"selected","optionId":"ja"}}}`+"\n")
	require.NoError(t, err)
	_, errs, code := a.ends(t)
	assert.Contains(t, errs, acpHeard("ja"))
	assert.Equal(t, 7, code)

	out, errs, code := acp(m, "s", "--on-unavailable", "deny").ends(t)
	assert.Empty(t, out)
	assert.Contains(t, errs, acpHeard("nein"))
	assert.Equal(t, 7, code)
}

// TestStoppingACPWithdrawsAndStopsTheAgent: if nod acp gets a signal or its editor ends, it stops the agent,
// withdraws the request and exits.
func TestStoppingACPWithdrawsAndStopsTheAgent(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAKilledSidecarsRequestIsWithdrawn ends one too")
	m := rig.NewMachine(t)
	m.StartNod()
	for name, stop := range map[string]func(a *acpRun) error{
		"a signal":           func(a *acpRun) error { return a.cmd.Process.Signal(syscall.SIGTERM) },
		"the editor's death": func(a *acpRun) error { return a.cmd.Stdout.(io.Closer).Close() },
	} {
		t.Run(name, func(t *testing.T) {
			session := strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), "'", "")
			args := []string{"acp", "--", "sh", "-c", acpAgent, "agent", acpRequest(session)}
			cmd := m.Command(args...)
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			defer in.Close()
			read, write, err := os.Pipe()
			require.NoError(t, err)
			cmd.Stdout = write
			var errs bytes.Buffer
			cmd.Stderr = &errs
			require.NoError(t, cmd.Start())
			require.NoError(t, write.Close())
			id := m.Pending(session)
			cmd.Stdout = read // the function stop closes the test's end of the pipe, as an editor does when it ends
			require.NoError(t, stop(&acpRun{cmd: cmd}))
			_ = cmd.Wait() // Wait fails, because a signal stops the agent
			assert.NotZero(t, cmd.ProcessState.ExitCode())
			assert.NotContains(t, errs.String(), `"ja"`)
			assert.Equal(t, "withdrawn", outcome(m, id))
			_ = read.Close()
		})
	}
}

// TestACPOverHTTP: a client with the token gets the pending requests over HTTP. The client's answers count as
// answers of the user who runs nod acp.
func TestACPOverHTTP(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	for _, c := range []struct{ session, body, heard, outcome string }{
		{"http-yes", `{"session_id":"http-yes","pending_id":"ID","option_id":"ja","cancelled":false}`, acpHeard("ja"), "allowed"},
		{"http-no", `{"pending_id":"ID","option_id":"nein"}`, acpHeard("nein"), "denied"},
		{"http-none", `{"pending_id":"ID","cancelled":true}`, `heard {"jsonrpc":"2.0","id":"r1","result":{"outcome":{"outcome":"cancelled"}}}` + "\n", "cancelled"},
	} {
		t.Run(c.session, func(t *testing.T) {
			a := acp(m, c.session, "--listen", "127.0.0.1:0")
			line, err := a.stderr.ReadString('\n')
			require.NoError(t, err)
			said := regexp.MustCompile(`^nod: (http://127\.0\.0\.1:\d+) serves the pending requests; its token is in (.+)\n$`).FindStringSubmatch(line)
			require.Len(t, said, 3, line)
			token, err := os.ReadFile(said[2])
			require.NoError(t, err)
			header := http.Header{"Authorization": {"Bearer " + strings.TrimSpace(string(token))}, "Content-Type": {"application/json"}}

			id := m.Pending(c.session)
			conn, _, err := websocket.Dial(t.Context(), said[1]+"/api/v1/acp/permissions/stream", &websocket.DialOptions{HTTPHeader: header})
			require.NoError(t, err)
			defer conn.CloseNow()
			_, note, err := conn.Read(t.Context())
			require.NoError(t, err)
			assert.Contains(t, string(note), `"pending_id":"`+id+`"`)

			r, err := http.NewRequest(http.MethodPost, said[1]+"/api/v1/acp/permissions/respond", strings.NewReader(strings.Replace(c.body, "ID", id, 1)))
			require.NoError(t, err)
			r.Header = header
			client := http.Client{Timeout: time.Minute}
			resp, err := client.Do(r)
			require.NoError(t, err)
			defer resp.Body.Close()
			answer, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, resp.StatusCode)
			assert.JSONEq(t, `{"success":true}`, string(answer))
			_, errs, code := a.ends(t)
			assert.Equal(t, c.heard, errs)
			assert.Equal(t, 7, code)
			assert.Equal(t, c.outcome, outcome(m, id))
		})
	}
	_, stderr, code := m.Run("acp", "--listen", "0.0.0.0:0", "--", "true")
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "--remote")
}

// TestACPOverHTTPAnswersIdenticalCalls: an answer over HTTP decides two identical calls, which wait for one
// question.
func TestACPOverHTTPAnswersIdenticalCalls(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestACPOverHTTP runs the same way in")
	m := rig.NewMachine(t)
	settings := strings.Replace(string(rig.Apart("{}")), `"join_identical":false`, `"join_identical":true`, 1)
	require.Contains(t, settings, `"join_identical":true`)
	require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "settings.json"), []byte(settings), 0o600))
	m.StartNod()
	first := acp(m, "http-two", "--listen", "127.0.0.1:0")
	line, err := first.stderr.ReadString('\n')
	require.NoError(t, err)
	said := regexp.MustCompile(`(http://\S+) serves the pending requests; its token is in (.+)\n$`).FindStringSubmatch(line)
	require.Len(t, said, 3, line)
	token, err := os.ReadFile(said[2])
	require.NoError(t, err)
	id := m.Pending("http-two")
	second := acp(m, "http-two")
	m.Shown(id, func(p schemas.Prompt) bool { return p.Waiters == 2 })

	r, err := http.NewRequest(http.MethodPost, said[1]+"/api/v1/acp/permissions/respond", strings.NewReader(`{"pending_id":"`+id+`","option_id":"nein"}`))
	require.NoError(t, err)
	r.Header = http.Header{"Authorization": {"Bearer " + strings.TrimSpace(string(token))}, "Content-Type": {"application/json"}}
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	for _, a := range []*acpRun{first, second} {
		_, errs, _ := a.ends(t)
		assert.Equal(t, acpHeard("nein"), errs)
	}
}
