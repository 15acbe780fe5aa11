package test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/schemas"
)

// machine is a data directory and the nod process that runs on it.
type machine struct {
	t   *testing.T
	dir string
	nod string
	up  *exec.Cmd
	// errs is the stderr of nod up; read it only after nod up has ended.
	errs bytes.Buffer
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, dir: t.TempDir(), nod: command}
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "settings.json"), apart("{}"), 0o600))
	return m
}

func (m *machine) command(args ...string) *exec.Cmd {
	c := exec.Command(m.nod, args...)
	c.Env = append(os.Environ(), "NOD_DATA="+m.dir, "NOD_URL=", "NOD_CREDS=")
	return c
}

// start starts nod up, and returns when it prints that it is up.
func (m *machine) start(args ...string) {
	m.up = m.command(append([]string{"up", "-q", "--listen", "127.0.0.1:0"}, args...)...)
	out, err := m.up.StdoutPipe()
	require.NoError(m.t, err)
	m.errs.Reset()
	m.up.Stderr = &m.errs
	require.NoError(m.t, m.up.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(m.t, err, "nod up said: %s", &m.errs)
	require.Contains(m.t, line, "nod is up on")
	go func() { _, _ = io.Copy(io.Discard, out) }()
	m.t.Cleanup(m.kill)
}

// kill ends nod at once, as a power cut would.
func (m *machine) kill() {
	_ = m.up.Process.Kill() // it may have ended
	_ = m.up.Wait()
}

// run runs a nod command, and returns its output and exit code.
func (m *machine) run(args ...string) (stdout, stderr string, code int) {
	c := m.command(args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		require.NoError(m.t, err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

func ask(session, id string) []string {
	return []string{"ask", "--session", session, "--id", id, "--tool", "Frobnicate", "--input", `{"n":1}`, "--json"}
}

// kill -9 of everything at random moments of a request's life: afterwards the request
// is pending with its old deadline, or has its one decision, or was never acknowledged.
// Asking again under its id returns that state.
func TestKillNine(t *testing.T) {
	t.Parallel()
	const machines = 2
	kills := 25
	if testing.Short() {
		kills = 4
		t.Log("the short form: 8 kills in place of 50")
	}
	for n := range machines {
		t.Run(fmt.Sprint("machine ", n+1), func(t *testing.T) {
			t.Parallel()
			killNine(t, kills)
		})
	}
}

func killNine(t *testing.T, kills int) {
	m := newMachine(t)
	m.start()
	// The time that a request takes without a kill is the range of the random moments, so
	// it is measured on this machine. The first request only warms up.
	var life time.Duration
	for _, id := range []string{"cold-life", "warm-life"} {
		begun := time.Now()
		m.asked(t, id, "--session", "kill", "--tool", "Frobnicate")
		_, errs, code := m.run("allow", id, "--session", "kill")
		require.Zero(t, code, errs)
		life = time.Since(begun)
	}
	said := map[string]int{}
	for n := range kills {
		id := "kill-" + strings.Repeat("x", n/10) + string(rune('a'+n%10)) + "-tool"
		var asked, answered, decided string
		var receiptCode, answerCode int
		done := make(chan struct{})
		go func() {
			defer close(done)
			asked, _, receiptCode = m.run(append(ask("kill", id), "--async")...)
			if receiptCode == 6 {
				answered, _, answerCode = m.run("allow", id, "--session", "kill", "--json")
			}
		}()
		fuse := time.NewTimer(rand.N(life))
		<-fuse.C
		m.kill()
		m.start()
		<-done

		decided, errs, code := m.run(append(ask("kill", id), "--async")...)
		switch code {
		case 6: // pending
			var again schemas.Receipt
			require.NoError(t, json.Unmarshal([]byte(decided), &again), errs)
			if receiptCode == 6 {
				var first schemas.Receipt
				require.NoError(t, json.Unmarshal([]byte(asked), &first))
				require.True(t, first.Deadline.Equal(again.Deadline), "the deadline moved")
			}
			require.False(t, receiptCode == 6 && answerCode == 0, "an acknowledged decision was lost")
			_, errs, code := m.run("deny", id, "--session", "kill")
			require.Zero(t, code, errs)
			said["pending"]++
		case 0: // allowed, whether or not the allow command was told so
			var d schemas.Decision
			require.NoError(t, json.Unmarshal([]byte(decided), &d))
			require.Equal(t, schemas.Allowed, d.Outcome)
			if answerCode == 0 && answered != "" {
				var first schemas.Decision
				require.NoError(t, json.Unmarshal([]byte(answered), &first))
				require.Equal(t, first.DecisionID, d.DecisionID)
			}
			said["decided"]++
		default:
			t.Fatalf("%s: exit %d: %s%s", id, code, decided, errs)
		}
	}
	t.Log(said)
}

// A waiting nod ask outlives a kill -9 of nod and its restart at another port, without
// help.
func TestAWaitingAskOutlivesTheRestart(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	waiting := m.command(ask("wait", "waits")...)
	var out, errs bytes.Buffer
	waiting.Stdout, waiting.Stderr = &out, &errs
	require.NoError(t, waiting.Start())
	require.Eventually(t, func() bool {
		_, _, code := m.run("show", "waits", "--json")
		return code == 0
	}, patience, tick)
	m.kill()
	m.start()
	_, stderr, code := m.run("allow", "waits")
	require.Zero(t, code, stderr)
	require.NoError(t, waiting.Wait(), errs.String())
	var d schemas.Decision
	require.NoError(t, json.Unmarshal(out.Bytes(), &d))
	require.Equal(t, schemas.Allowed, d.Outcome)
}

// If a deadline passes while nod is down, the request times out soon after nod is up
// again.
func TestADeadlineThatPassedWhileNodWasAway(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	_, stderr, code := m.run("session", "set", "away", "--timeout", "3s")
	require.Zero(t, code, stderr)
	out, _, code := m.run(append(ask("away", "late"), "--async")...)
	require.Equal(t, 6, code)
	var r schemas.Receipt
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	m.kill()
	passed := time.NewTimer(time.Until(r.Deadline) + 100*time.Millisecond)
	<-passed.C
	m.start()
	out, stderr, code = m.run(ask("away", "late")...)
	require.Equal(t, 4, code, out+stderr)
	require.Contains(t, out, "timed out after 3 seconds")
}

func TestStoppingIsClean(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	require.NoError(t, m.up.Process.Signal(os.Interrupt))
	require.NoError(t, m.up.Wait())
	_, stderr, code := m.run("pending")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nod is not running")
}

// Each error that keeps nod from starting is one line that names the remedy.
func TestWhatKeepsItFromStarting(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	file := filepath.Join(m.dir, "file")
	require.NoError(t, os.WriteFile(file, []byte(`{"permisions":{}}`), 0o600))
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"a second one on the directory": {[]string{"up"}, "--data"},
		"a directory that is a file":    {[]string{"up", "--data", file}, "--data"},
		"an unreachable server":         {[]string{"up", "--nats-url", "nats://127.0.0.1:1"}, "--nats-url"},
		"settings with a typing error":  {[]string{"up", "--data", t.TempDir(), "--settings", file}, "permisions"},
		"an engine without servers":     {[]string{"engine"}, "--nats-url"},
		"an address that is none":       {[]string{"up", "--listen", "here"}, "127.0.0.1"},
		"an address that is not here":   {[]string{"up", "--data", t.TempDir(), "--listen", "192.0.2.1:4222"}, "nothing can listen on 192.0.2.1:4222"},
		"a channel that is none":        {[]string{"pair", "pigeon"}, "there is telegram"},
		"a channel without a bot":       {[]string{"pair", "telegram"}, "connectors.telegram is not in the settings"},
	} {
		t.Run(name, func(t *testing.T) {
			out, stderr, code := m.run(c.args...)
			require.Equal(t, 1, code, out)
			require.Contains(t, stderr, c.says)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		})
	}
}

// A role that waits for its server says so, and says that a signal stopped it.
func TestARoleThatWaitsSaysSo(t *testing.T) {
	t.Parallel()
	c := newMachine(t).command("engine", "--nats-url", "nats://127.0.0.1:1")
	stderr, err := c.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() })
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, "waiting for the NATS server")
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	rest, err := io.ReadAll(lines)
	require.NoError(t, err)
	require.Equal(t, "nod: stopped before the command was done\n", string(rest))
	require.Error(t, c.Wait())
}

// If a flag names the data directory, nod up says that the other commands need it too.
func TestUpSaysWhatOtherCommandsNeed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.up = m.command("up", "-q", "--listen", "127.0.0.1:0", "--http", "off", "--data", t.TempDir())
	out, err := m.up.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, m.up.Start())
	t.Cleanup(m.kill)
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.HasPrefix(lines.Text(), "Stop with"); {
		said.WriteString(lines.Text() + "\n")
	}
	require.Contains(t, said.String(), "  note      nod's other commands find it by --data or NOD_DATA\n")
}

// Scripts rely on the exit codes and on the output beside them.
func TestWhatScriptsGoBy(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.start()
	out, stderr, code := m.run("ask", "--session", "s", "--tool", "Read", "--input", `{"file_path":"/x"}`)
	require.Zero(t, code, stderr)
	require.Equal(t, "Allowed by the built-in rules.\n", out)
	out, _, code = m.run("ask", "--session", "s", "--tool", "Bash", "--input", `{"command":"git status | head"}`)
	require.Zero(t, code)
	require.Contains(t, out, "Allowed")

	out, _, code = m.run(append(ask("s", "open"), "--async")...)
	require.Equal(t, 6, code, out)
	out, _, code = m.run("pending", "--json")
	require.Zero(t, code)
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &rows))
	require.Len(t, rows, 1)
	for _, name := range []string{"pending_id", "session_id", "deadline", "tool_name", "digest"} {
		require.Contains(t, rows[0], name)
	}
	_, stderr, code = m.run("deny", "open", "-m", "not today")
	require.Zero(t, code, stderr)
	out, _, code = m.run(ask("s", "open")...)
	require.Equal(t, 3, code, out)
	_, stderr, code = m.run("allow", "open")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "Nothing changed:")
	require.Contains(t, stderr, "denied this")
	_, stderr, code = m.run("show", "nowhere")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no request nowhere is known")

	waiting := m.command(ask("s", "stopped")...)
	require.NoError(t, waiting.Start())
	require.Eventually(t, func() bool {
		_, _, code := m.run("show", "stopped")
		return code == 0
	}, patience, tick)
	require.NoError(t, waiting.Process.Signal(os.Interrupt))
	_ = waiting.Wait() // its exit code is checked
	require.Equal(t, 5, waiting.ProcessState.ExitCode(), "stopping the asker withdraws its request")
	out, _, code = m.run("ask", "--session", "s", "--permission", "@network", "--reason", "x", "--id", "perm", "--async")
	require.Equal(t, 6, code, out)
	_, stderr, code = m.run("allow", "perm")
	require.Zero(t, code, stderr)
	out, _, code = m.run("ask", "--session", "s", "--permission", "@network", "--reason", "x", "--id", "perm")
	require.Zero(t, code)
	require.Equal(t, "Permission granted for network access.\n", out)
}
