package rig

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/internal/testprogram"
	"github.com/nodbus/nod/schemas"
)

// Machine is a data directory with the nod process that runs on it.
type Machine struct {
	T   *testing.T
	Dir string
	Nod string
	Up  *exec.Cmd
	Env []string // further environment variables of the machine's commands, as NAME=VALUE
	// Errs is the stderr of nod up. A test may read it only after nod up has ended.
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
	c.Env = append(append(os.Environ(), "NOD_DATA="+m.Dir, "NOD_URL=", "NOD_CREDS=", "NOD_TOKEN_FILE=", "NOD_AGENT=", "TZ=UTC", "COLUMNS="), m.Env...)
	return c
}

// StartNod starts the process nod up, and returns when the process prints that nod is up.
func (m *Machine) StartNod(args ...string) {
	m.Up = m.Command(append([]string{"up", "-q", "--listen", "127.0.0.1:0"}, args...)...)
	out, err := m.Up.StdoutPipe()
	require.NoError(m.T, err)
	m.Errs.Reset()
	m.Up.Stderr = &m.Errs
	require.NoError(m.T, testprogram.Start(m.Up))
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(m.T, err, "nod up said: %s", &m.Errs)
	require.Contains(m.T, line, "nod is up on")
	go func() { _, _ = io.Copy(io.Discard, out) }()
	m.T.Cleanup(m.Kill)
}

// Kill kills the process nod up, so that the process cannot shut down in order.
func (m *Machine) Kill() {
	_ = m.Up.Process.Kill() // Kill fails if the process has ended
	_ = m.Up.Wait()
}

// Run runs a nod command, and returns its output and exit code. After four times Patience Run kills the
// command, so that a command that waits for an answer fails the test instead of blocking it.
func (m *Machine) Run(args ...string) (stdout, stderr string, code int) {
	c := m.Command(args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	require.NoError(m.T, testprogram.Start(c))
	late := time.AfterFunc(4*Patience, func() { _ = c.Process.Kill() }) // Kill fails if the command has just ended
	defer late.Stop()
	err := c.Wait()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		require.NoError(m.T, err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// Ask returns the arguments of nod ask for a call that no rule decides.
func Ask(session, id string) []string {
	return []string{"ask", "--session", session, "--id", id, "--tool", "Frobnicate", "--input", `{"n":1}`, "--json"}
}

// Soon polls the running nod, over its own connection as the terminal, until the condition is true. A nod
// command for each poll would need far more CPU.
func (m *Machine) Soon(holds func(ctx context.Context, d *connector.Desk) bool) {
	m.T.Helper()
	conn, err := bus.Join(m.T.Context(), bus.Place{DataDir: m.Dir}, roles.ConnectorID(schemas.ConnectorTerminal), Quiet())
	require.NoError(m.T, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(m.T.Context(), time.Minute)
	defer cancel()
	desk := connector.NewDesk(conn, schemas.ConnectorTerminal)
	require.Eventually(m.T, func() bool { return holds(ctx, desk) }, time.Minute, Tick)
}

// Pending waits for a pending request of a session, and returns its id. An empty session means any session.
func (m *Machine) Pending(session string) (id string) {
	m.T.Helper()
	m.Soon(func(ctx context.Context, d *connector.Desk) bool {
		all, err := d.Pending(ctx, schemas.Query{SessionID: session})
		if err != nil || len(all) == 0 {
			return false
		}
		id = all[len(all)-1].PendingID
		return true
	})
	return id
}

// Shown waits until the prompt of a request meets a condition.
func (m *Machine) Shown(id string, holds func(schemas.Prompt) bool) {
	m.T.Helper()
	m.Soon(func(ctx context.Context, d *connector.Desk) bool {
		p, _, err := d.Find(ctx, "", id)
		return err == nil && holds(p)
	})
}

// Asked runs nod ask --async, requires that the request stays pending, and returns the receipt.
func (m *Machine) Asked(t *testing.T, id string, args ...string) schemas.Receipt {
	t.Helper()
	out, stderr, code := m.Run(append([]string{"ask", "--id", id, "--async", "--json"}, args...)...)
	require.Equal(t, 6, code, stderr)
	var r schemas.Receipt
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	return r
}
