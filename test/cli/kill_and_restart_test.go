package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The test kills nod with kill -9 at a random moment while a request is sent and allowed, and starts nod
// again. A repeated request must be pending with the deadline of its printed receipt, or have exactly one
// decision. nod must not lose a receipt or a decision that a command has printed.
func TestKillNine(t *testing.T) {
	t.Parallel()
	const machines = 2
	kills := rig.Times(t, 2, 25)
	for n := range machines {
		t.Run(fmt.Sprint("machine ", n+1), func(t *testing.T) {
			t.Parallel()
			killNine(t, kills)
		})
	}
}

func killNine(t *testing.T, kills int) {
	m := rig.NewMachine(t)
	m.StartNod()
	// life is the time that a request and its answer take without a kill, and limits the random moment of the
	// kill. The second measurement replaces the first one, which is a warm-up.
	var life time.Duration
	for _, id := range []string{"cold-life", "warm-life"} {
		begun := time.Now()
		m.Asked(t, id, "--session", "kill", "--tool", "Frobnicate")
		_, errs, code := m.Run("allow", id, "--session", "kill")
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
			asked, _, receiptCode = m.Run(append(rig.Ask("kill", id), "--async")...)
			if receiptCode == 6 {
				answered, _, answerCode = m.Run("allow", id, "--session", "kill", "--json")
			}
		}()
		fuse := time.NewTimer(rand.N(life))
		<-fuse.C
		m.Kill()
		m.StartNod()
		<-done

		decided, errs, code := m.Run(append(rig.Ask("kill", id), "--async")...)
		switch code {
		case 6: // nod ask has this exit code if the request is pending
			var again schemas.Receipt
			require.NoError(t, json.Unmarshal([]byte(decided), &again), errs)
			if receiptCode == 6 {
				var first schemas.Receipt
				require.NoError(t, json.Unmarshal([]byte(asked), &first))
				require.True(t, first.Deadline.Equal(again.Deadline), "the deadline moved")
			}
			require.False(t, receiptCode == 6 && answerCode == 0, "an acknowledged decision was lost")
			_, errs, code := m.Run("deny", id, "--session", "kill")
			require.Zero(t, code, errs)
			said["pending"]++
		case 0: // nod allow may have been killed after the allow was stored and before it printed the decision
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

// A waiting nod ask gets the decision even if nod is killed with kill -9 and restarts at another port.
func TestAWaitingAskOutlivesARestart(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	waiting := m.Command(rig.Ask("wait", "waits")...)
	var out, errs bytes.Buffer
	waiting.Stdout, waiting.Stderr = &out, &errs
	require.NoError(t, waiting.Start())
	m.Shown("waits", func(schemas.Prompt) bool { return true })
	m.Kill()
	m.StartNod()
	_, stderr, code := m.Run("allow", "waits")
	require.Zero(t, code, stderr)
	require.NoError(t, waiting.Wait(), errs.String())
	var d schemas.Decision
	require.NoError(t, json.Unmarshal(out.Bytes(), &d))
	require.Equal(t, schemas.Allowed, d.Outcome)
}

// If a deadline passes while nod is not running, the request times out when nod runs again.
func TestADeadlineDuringAnOutageTimesTheRequestOut(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAWaitingAskOutlivesARestart has the same outage")
	m := rig.NewMachine(t)
	m.StartNod()
	_, stderr, code := m.Run("session", "set", "away", "--timeout", "3s")
	require.Zero(t, code, stderr)
	out, _, code := m.Run(append(rig.Ask("away", "late"), "--async")...)
	require.Equal(t, 6, code)
	var r schemas.Receipt
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	m.Kill()
	passed := time.NewTimer(time.Until(r.Deadline) + 100*time.Millisecond)
	<-passed.C
	m.StartNod()
	out, stderr, code = m.Run(rig.Ask("away", "late")...)
	require.Equal(t, 4, code, out+stderr)
	require.Contains(t, out, "timed out after 3 seconds")
}

func TestStoppingIsClean(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	require.NoError(t, m.Up.Process.Signal(os.Interrupt))
	require.NoError(t, m.Up.Wait())
	_, stderr, code := m.Run("pending")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "nod is not running")
}

// If nod cannot start, it prints an error in one line that names the remedy.
func TestWhyNodDoesNotStart(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	file := filepath.Join(m.Dir, "file")
	require.NoError(t, os.WriteFile(file, []byte(`{"permisions":{}}`), 0o600))
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"a second nod on the directory": {[]string{"up"}, "--data"},
		"a directory that is a file":    {[]string{"up", "--data", file}, "--data"},
		"an unreachable server":         {[]string{"up", "--nats-url", "nats://127.0.0.1:1"}, "--nats-url"},
		"settings with a typing error":  {[]string{"up", "--data", t.TempDir(), "--settings", file}, "permisions"},
		"an engine without servers":     {[]string{"engine"}, "--nats-url"},
		"an invalid address":            {[]string{"up", "--listen", "here"}, "127.0.0.1"},
		"an address of another machine": {[]string{"up", "--data", t.TempDir(), "--listen", "192.0.2.1:4222"}, "nothing can listen on 192.0.2.1:4222"},
		"an unknown channel":            {[]string{"pair", "pigeon"}, "there is telegram"},
		"a channel without a bot":       {[]string{"pair", "telegram"}, "connectors.telegram is not in the settings"},
	} {
		t.Run(name, func(t *testing.T) {
			out, stderr, code := m.Run(c.args...)
			require.Equal(t, 1, code, out)
			require.Contains(t, stderr, c.says)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		})
	}
}

// nod engine prints that it waits for its NATS server. If a signal stops the wait, it prints that it was
// stopped.
func TestAnEnginePrintsThatItWaitsForItsServer(t *testing.T) {
	t.Parallel()
	c := rig.NewMachine(t).Command("engine", "--nats-url", "nats://127.0.0.1:1")
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

// If a flag names the data directory, nod up says that other commands need the same flag.
func TestUpNamesTheFlagThatOtherCommandsNeed(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.Up = m.Command("up", "-q", "--listen", "127.0.0.1:0", "--http", "off", "--data", t.TempDir())
	out, err := m.Up.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, m.Up.Start())
	t.Cleanup(m.Kill)
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.HasPrefix(lines.Text(), "Stop with"); {
		said.WriteString(lines.Text() + "\n")
	}
	require.Contains(t, said.String(), "  note      nod's other commands find it by --data or NOD_DATA\n")
}

// Scripts rely on these exit codes and outputs.
func TestExitCodesForScripts(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	out, stderr, code := m.Run("ask", "--session", "s", "--tool", "Read", "--input", `{"file_path":"/x"}`)
	require.Zero(t, code, stderr)
	require.Equal(t, "Allowed by the built-in rules.\n", out)
	out, _, code = m.Run("ask", "--session", "s", "--tool", "Bash", "--input", `{"command":"git status | head"}`)
	require.Zero(t, code)
	require.Contains(t, out, "Allowed")

	out, _, code = m.Run(append(rig.Ask("s", "open"), "--async")...)
	require.Equal(t, 6, code, out)
	out, _, code = m.Run("pending", "--json")
	require.Zero(t, code)
	var rows []map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &rows))
	require.Len(t, rows, 1)
	for _, name := range []string{"pending_id", "session_id", "deadline", "tool_name", "digest"} {
		require.Contains(t, rows[0], name)
	}
	_, stderr, code = m.Run("deny", "open", "-m", "not today")
	require.Zero(t, code, stderr)
	out, _, code = m.Run(rig.Ask("s", "open")...)
	require.Equal(t, 3, code, out)
	_, stderr, code = m.Run("allow", "open")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "Nothing changed:")
	require.Contains(t, stderr, "denied this")
	_, stderr, code = m.Run("show", "nowhere")
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "no request nowhere is known")

	waiting := m.Command(rig.Ask("s", "stopped")...)
	var said bytes.Buffer
	waiting.Stderr = &said
	require.NoError(t, waiting.Start())
	m.Shown("stopped", func(schemas.Prompt) bool { return true })
	require.NoError(t, waiting.Process.Signal(os.Interrupt))
	_ = waiting.Wait() // the next line checks the exit code
	require.Equal(t, 5, waiting.ProcessState.ExitCode(), "stopping the asker withdraws its request: %s", &said)
	out, _, code = m.Run("ask", "--session", "s", "--permission", "@network", "--reason", "x", "--id", "perm", "--async")
	require.Equal(t, 6, code, out)
	_, stderr, code = m.Run("allow", "perm")
	require.Zero(t, code, stderr)
	out, _, code = m.Run("ask", "--session", "s", "--permission", "@network", "--reason", "x", "--id", "perm")
	require.Zero(t, code)
	require.Equal(t, "Permission granted for network access.\n", out)
}

// If a signal stops nod ask, nod ask withdraws the request. This holds even before an engine has sent a
// receipt.
func TestAStoppedAskWithdrawsARequestWithoutAReceipt(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, rig.AtTheTerminal(t))
	env.Engines[0].Halt()
	messages := make(chan *nats.Msg, 64)
	raw := env.RawConn(roles.ID{Role: roles.Engine})
	for _, subject := range []string{schemas.RequestSubject("*", "s", "unanswered"), schemas.WithdrawSubject("*", "s", "unanswered")} {
		_, err := raw.ChanSubscribe(subject, messages)
		env.NoError(err)
	}
	env.NoError(raw.Flush())
	ask := env.Command(rig.Ask("s", "unanswered")...)
	env.NoError(ask.Start())
	t.Cleanup(func() { _ = ask.Process.Kill(); _ = ask.Wait() })
	next := func() string {
		select {
		case msg := <-messages:
			return msg.Subject
		case <-time.After(rig.Patience):
			return "nothing"
		}
	}
	env.Contains(next(), "nod.v1.request.")
	env.NoError(ask.Process.Signal(os.Interrupt))
	sent := next()
	for strings.HasPrefix(sent, "nod.v1.request.") { // nod ask may have sent this message before the signal
		sent = next()
	}
	env.Contains(sent, "nod.v1.withdraw.")
}

// If nod up syncs many messages at once, an engine of another process cannot use its stores. The engine's
// error names the flag with which nod up must be started instead.
func TestAnEngineIsRefusedByStoresWithGroupedSyncs(t *testing.T) {
	t.Parallel()
	m := rig.NewMachine(t)
	m.StartNod()
	run, err := bus.ReadRun(m.Dir)
	require.NoError(t, err)
	key := func(name string) string { return filepath.Join(m.Dir, "keys", name+".nk") }
	_, stderr, code := m.Run("engine", "--nats-url", run.URL, "--creds", key("engine"), "--store-creds", key("engine-store"))
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "start it with --sync always")
	require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
}
