package people

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// workerProcess starts a worker of a channel as a separate process, with the given variable in its
// environment. The returned function kills the process with SIGKILL, and requires that it has printed no
// secret.
func workerProcess(m *rig.Machine, channel, variable string) (kill func()) {
	c := m.Command("connector", channel)
	c.Env = append(c.Env, variable)
	out, err := c.StdoutPipe()
	require.NoError(m.T, err)
	var errs bytes.Buffer
	c.Stderr = &errs
	require.NoError(m.T, c.Start())
	kill = func() {
		_ = c.Process.Kill() // Kill fails if the process has ended
		_ = c.Wait()
		require.NotContains(m.T, errs.String(), "secretsecret")
	}
	m.T.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(m.T, err, "the connector said: %s", &errs)
	require.Contains(m.T, line, "the connector "+channel+" is up")
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return kill
}

// asking starts nod ask in a session. The returned function waits for the decision.
func asking(m *rig.Machine, session, id string) (hears func() schemas.Decision) {
	var out, errs bytes.Buffer
	c := m.Command(rig.Ask(session, id)...)
	c.Stdout, c.Stderr = &out, &errs
	require.NoError(m.T, c.Start())
	m.T.Cleanup(func() { _ = c.Process.Kill() }) // Kill fails if the process has ended
	return func() (d schemas.Decision) {
		_ = c.Wait() // the error of Wait contains only the exit code
		require.NoError(m.T, json.Unmarshal(out.Bytes(), &d), errs.String())
		return d
	}
}

func pairingCode(t *testing.T, pair *exec.Cmd, out *bytes.Buffer) string {
	pipe, err := pair.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, pair.Start())
	t.Cleanup(func() { _ = pair.Process.Kill() }) // Kill fails if the process has ended
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		if m := regexp.MustCompile(`/(?:start|nod pair) (\w+)`).FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(out, pipe) }()
			return m[1]
		}
	}
	require.Fail(t, "nod pair printed no code")
	return ""
}
