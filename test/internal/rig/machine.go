package rig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// Machine is a data directory and the nod process that runs on it.
type Machine struct {
	T   *testing.T
	Dir string
	Nod string
	Up  *exec.Cmd
	// Errs is the stderr of nod up. Read it only after nod up has ended.
	Errs bytes.Buffer
}

// NewMachine makes a data directory with settings. It starts no process.
func NewMachine(t *testing.T) *Machine {
	m := &Machine{T: t, Dir: t.TempDir(), Nod: Binary}
	require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "settings.json"), Apart("{}"), 0o600))
	return m
}

// Command returns a nod command with the machine's environment, without starting it.
func (m *Machine) Command(args ...string) *exec.Cmd {
	c := exec.Command(m.Nod, args...)
	c.Env = append(os.Environ(), "NOD_DATA="+m.Dir, "NOD_URL=", "NOD_CREDS=", "TZ=UTC")
	return c
}

// StartNod starts nod up, and returns when it prints that it is up.
func (m *Machine) StartNod(args ...string) {
	m.Up = m.Command(append([]string{"up", "-q", "--listen", "127.0.0.1:0"}, args...)...)
	out, err := m.Up.StdoutPipe()
	require.NoError(m.T, err)
	m.Errs.Reset()
	m.Up.Stderr = &m.Errs
	require.NoError(m.T, m.Up.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(m.T, err, "nod up said: %s", &m.Errs)
	require.Contains(m.T, line, "nod is up on")
	go func() { _, _ = io.Copy(io.Discard, out) }()
	m.T.Cleanup(m.Kill)
}

// Kill kills nod up, so that it cannot shut down in order.
func (m *Machine) Kill() {
	_ = m.Up.Process.Kill() // the process may have ended
	_ = m.Up.Wait()
}

// Run runs a nod command, and returns its output and exit code.
func (m *Machine) Run(args ...string) (stdout, stderr string, code int) {
	c := m.Command(args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		require.NoError(m.T, err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// Ask returns the arguments of a nod ask for a call that no rule decides.
func Ask(session, id string) []string {
	return []string{"ask", "--session", session, "--id", id, "--tool", "Frobnicate", "--input", `{"n":1}`, "--json"}
}

// Pending waits for a pending request of a session, or of any session if session is empty, and
// returns its id.
func (m *Machine) Pending(session string) (id string) {
	require.Eventually(m.T, func() bool {
		stdout, _, _ := m.Run("pending", "--json")
		var all []struct {
			SessionID string `json:"session_id"`
			PendingID string `json:"pending_id"`
		}
		if json.Unmarshal([]byte(stdout), &all) != nil {
			return false
		}
		for _, p := range all {
			if p.SessionID == session || session == "" {
				id = p.PendingID
			}
		}
		return id != ""
	}, time.Minute, 50*time.Millisecond)
	return id
}

// Asked runs nod ask without waiting for the decision, and returns the receipt. The request
// must stay pending.
func (m *Machine) Asked(t *testing.T, id string, args ...string) schemas.Receipt {
	t.Helper()
	out, stderr, code := m.Run(append([]string{"ask", "--id", id, "--async", "--json"}, args...)...)
	require.Equal(t, 6, code, stderr)
	var r schemas.Receipt
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	return r
}
