package operate

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/agents/tokens/tokenstest"
	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// site is a running nod whose server asks a token service about clients without a key.
type site struct {
	*rig.Machine
	issuer  *tokenstest.Issuer
	service *exec.Cmd
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Machine: rig.NewMachine(t), issuer: tokenstest.New(t)}
	jobs := fmt.Sprintf(`{"jobs": [{"issuer": %q, "audience": "nod", "match": {"repository": "acme/web"}, "agent": "ci-web"}]}`, s.issuer.URL)
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "tokens.json"), []byte(jobs), 0o600))
	require.Contains(t, does(s.Machine, "keys", "add", "token-service"), "only at its start")
	does(s.Machine, "invite", "elsewhere", "--address", "nod.example:4222") // the server now speaks TLS
	s.StartNod()
	s.startService()
	return s
}

func (s *site) startService() {
	s.T.Helper()
	s.service = s.Command("token-service")
	out, err := s.service.StdoutPipe()
	require.NoError(s.T, err)
	var errs bytes.Buffer
	s.service.Stderr = &errs
	require.NoError(s.T, testprogram.Start(s.service))
	s.T.Cleanup(s.killService)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(s.T, err, "nod token-service said: %s", &errs)
	require.Contains(s.T, line, "the token service is up on")
	go func() { _, _ = io.Copy(io.Discard, out) }()
}

func (s *site) killService() {
	_ = s.service.Process.Kill() // Kill fails if the process has ended
	_ = s.service.Wait()
}

// job is a CI job on a machine that has a token and no keys of its own.
type job struct {
	*rig.Machine
	file string
}

func (s *site) job(agent string, token map[string]any) *job {
	s.T.Helper()
	j := &job{file: filepath.Join(s.T.TempDir(), "token")}
	j.Machine = &rig.Machine{T: s.T, Dir: s.Dir, Nod: s.Nod, Env: []string{"NOD_TOKEN_FILE=" + j.file, "NOD_AGENT=" + agent}}
	j.write(s.issuer.Token(token))
	return j
}

func (j *job) write(token string) {
	j.T.Helper()
	next := j.file + ".new"
	require.NoError(j.T, os.WriteFile(next, []byte(token+"\n"), 0o600))
	require.NoError(j.T, os.Rename(next, j.file))
}

// waiting is a nod ask whose request is pending.
type waiting struct {
	*exec.Cmd
	out    bytes.Buffer  // the output of nod ask, which the test reads after the process has ended
	parted chan struct{} // a Go channel that is closed when the process has lost its connection
}

func (j *job) waiting(id string) *waiting {
	j.T.Helper()
	w := &waiting{Cmd: j.Command(append(rig.Ask("S", id), "-v")...), parted: make(chan struct{})}
	w.Stdout = &w.out
	stderr, err := w.StderrPipe()
	require.NoError(j.T, err)
	require.NoError(j.T, testprogram.Start(w.Cmd))
	j.T.Cleanup(func() { _ = w.Process.Kill() }) // Kill fails if the process has ended
	go func() {
		parted := sync.OnceFunc(func() { close(w.parted) })
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if strings.Contains(lines.Text(), "disconnected") {
				parted()
			}
		}
	}()
	j.Shown(id, func(schemas.Prompt) bool { return true })
	return w
}

func (j *job) refused(words ...string) {
	j.T.Helper()
	_, stderr, code := j.Run(rig.Ask("S", "never")...)
	require.Equal(j.T, 1, code, stderr)
	for _, w := range words {
		require.Contains(j.T, stderr, w)
	}
	hook := j.Command("hook", "claude-code")
	hook.Stdin = strings.NewReader(`{"session_id":"S","hook_event_name":"PreToolUse","tool_name":"Frobnicate","tool_input":{"n":1},"cwd":"/"}`)
	out, err := hook.Output()
	require.NoError(j.T, err)
	require.Contains(j.T, string(out), `"permissionDecision":"deny"`)
}

func TestAJobAsksByItsToken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	j := s.job("ci-web", nil)
	ask := j.waiting("by-token")
	does(s.Machine, "allow", "by-token", "--yes")
	require.NoError(t, ask.Wait())
	require.Contains(t, ask.out.String(), `"outcome": "allowed"`)
	for _, m := range []*rig.Machine{s.Machine, j.Machine} { // the two commands name no session, so each agent asks in a session of its own
		_, stderr, code := m.Run("ask", "--", "ls")
		require.Zero(t, code, stderr)
	}

	j.write(s.issuer.Token(map[string]any{"repository": "evil/web"}))
	j.refused("refused these credentials", "token-service", "ci-web")
	s.job("ci-other", nil).refused("ci-other")
	s.job("local", nil).refused("local")
	s.job("ci-web", map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}).refused("ended at", "have a new one written")
	nameless := s.job("", nil)
	_, stderr, code := nameless.Run(rig.Ask("S", "never")...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "set NOD_AGENT")
	j.write(s.issuer.Token(nil))
	found, _, _ := j.Run("doctor")
	require.Contains(t, found, "the server accepts the token of agent-ci-web")
	_, stderr, code = j.Run("pending")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "which may only ask")
	s.Asked(t, "by-key", "--session", "K", "--tool", "Frobnicate")

	ask = j.waiting("during-a-change")
	require.Contains(t, does(j.Machine, "keys", "add", "agent-later"), "in force") // a change of keys closes the connections of jobs with tokens
	does(s.Machine, "allow", "during-a-change", "--yes")
	require.NoError(t, ask.Wait())
}

// If the token service is not running, nod refuses a job. A request that already waits still gets its
// decision.
func TestAJobIsRefusedWithoutTheTokenService(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	j := s.job("ci-web", nil)
	ask := j.waiting("through-a-kill")
	s.killService()
	j.refused("refused these credentials", "no nod token-service runs")
	s.Asked(t, "by-key", "--session", "K", "--tool", "Frobnicate")
	does(s.Machine, "deny", "through-a-kill")
	require.Error(t, ask.Wait())
	require.Contains(t, ask.out.String(), `"outcome": "denied"`)
	s.startService()
	j.Asked(t, "again", "--session", "S", "--tool", "Frobnicate")

	require.Contains(t, does(s.Machine, "keys", "revoke", "token-service"), "in force")
	j.refused("refused these credentials")
}

// A job's request outlives the job's token. The job's process continues with the next token, and
// another process of the same agent can get the decision too.
func TestARequestOutlivesItsToken(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	soon := func() map[string]any { return map[string]any{"exp": time.Now().Add(4 * time.Second).Unix()} }
	first, second := s.job("ci-web", soon()), s.job("ci-web", soon()) // two processes of the same agent
	ask, killed := first.waiting("renewed"), second.waiting("by-another")
	for _, w := range []*waiting{ask, killed} {
		select {
		case <-w.parted:
		case <-time.After(rig.Patience):
			t.Fatal("the server does not close the connection when its token ends")
		}
	}
	require.NoError(t, killed.Process.Kill())
	require.Error(t, killed.Wait())

	does(s.Machine, "allow", "renewed", "--yes")
	does(s.Machine, "deny", "by-another")
	require.Nil(t, ask.ProcessState, "a job without a valid token hears nothing")
	first.write(s.issuer.Token(nil))
	require.NoError(t, ask.Wait())
	require.Contains(t, ask.out.String(), `"outcome": "allowed"`)
	second.write(s.issuer.Token(nil))
	stdout, stderr, code := second.Run(rig.Ask("S", "by-another")...)
	require.Equal(t, 3, code, stderr)
	require.Contains(t, stdout, `"outcome": "denied"`)
}

// No claim of a token may give a job the name of an agent that has a key.
func TestNoJobIsNamedAsAnAgentWithAKey(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	does(m, "keys", "add", "agent-ci-7")
	jobs := `{"jobs": [{"issuer": "https://token.actions.githubusercontent.com", "audience": "nod", "match": {"repository_owner_id": "1"}, "agent": "ci-{{repository_id}}"}]}`
	require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "tokens.json"), []byte(jobs), 0o600))
	for _, args := range [][]string{{"keys", "add", "agent-ci-8"}, {"invite", "ci-8", "--address", "nod.example:4222"}, {"keys", "config"}, {"token-service", "--check"}} {
		_, stderr, code := m.Run(args...)
		require.Equal(t, 1, code, args)
		require.Contains(t, stderr, "has a key", args)
	}
	does(m, "keys", "revoke", "agent-ci-7")
	does(m, "token-service", "--check")
	does(m, "keys", "add", "agent-other")
	does(m, "keys", "add", "token-service")
	config, stderr, code := m.Run("keys", "config")
	require.Zero(t, code, stderr)
	keys, err := roles.OpenKeys(m.Dir)
	require.NoError(t, err)
	user, err := keys.User(roles.ID{Role: roles.TokenService})
	require.NoError(t, err)
	for _, w := range []string{"auth_callout", "issuer: " + user.Admits.Issuer, "xkey: " + user.Admits.XKey, `auth_users: ["` + user.PublicKey + `"]`, "account: TOKENS"} {
		require.Contains(t, config, w)
	}
	_, stderr, code = m.Run("keys", "rotate", "token-service")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "cannot overlap")
}
