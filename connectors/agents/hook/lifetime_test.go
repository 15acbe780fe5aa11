//go:build unix

package hook_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/nodbus/nod/connectors/agents/hook"
	"github.com/nodbus/nod/schemas"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asProcess is an environment variable. It makes this test binary act as the process whose name is its
// value.
const asProcess = "NOD_TEST_AS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) == "hook" {
		os.Exit(hookProcess())
	}
	os.Exit(m.Run())
}

// hookProcess runs a hook like cmd/nod. Its Nod never decides, and tells of each call of its methods on
// descriptor 3.
func hookProcess() int {
	ctx, stop := hook.Lifetime(context.Background(), os.Stdout)
	defer stop()
	asker := tellingNod{os.NewFile(3, "events")}
	return hook.Run(ctx, hook.ClaudeCode(), os.Stdin, os.Stdout,
		func(context.Context) (hook.Nod, error) { return asker, nil }, hook.Options{Stderr: os.Stderr})
}

type tellingNod struct{ events io.Writer }

func (n tellingNod) Ask(ctx context.Context, _ schemas.Request) (schemas.Decision, error) {
	fmt.Fprintln(n.events, "asked")
	<-ctx.Done()
	return schemas.Decision{}, ctx.Err()
}

func (n tellingNod) Withdraw(_ context.Context, session, id, reason string) error {
	fmt.Fprintf(n.events, "withdrawn %s.%s: %s\n", session, id, reason)
	return nil
}

func (n tellingNod) Detach(_ context.Context, session, id, reason string) error {
	fmt.Fprintf(n.events, "detached %s.%s: %s\n", session, id, reason)
	return nil
}

func (n tellingNod) TakeNotices(context.Context, string) ([]schemas.Notice, error) { return nil, nil }

func (n tellingNod) HostResolved(context.Context, schemas.HostResolved) error { return nil }

// child is the process of a hook that has sent its request and waits for the decision.
type child struct {
	cmd    *exec.Cmd
	stdout *os.File
	stderr *strings.Builder
	events *bufio.Reader
}

func startChild(t *testing.T) child {
	t.Helper()
	return startAs(t, exec.Command(os.Args[0]))
}

// startAs runs cmd, which makes this test binary a hook process, and returns when the hook has sent its
// request.
func startAs(t *testing.T, cmd *exec.Cmd) child {
	t.Helper()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		t.Cleanup(func() { _ = r.Close() })
		return r, w
	}
	c := child{cmd: cmd, stderr: &strings.Builder{}}
	var out, events *os.File
	c.stdout, out = pipe()
	eventsRead, events := pipe()
	c.events = bufio.NewReader(eventsRead)
	c.cmd.Env = append(os.Environ(), asProcess+"=hook")
	c.cmd.Stdin = strings.NewReader(preToolCall)
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.ExtraFiles = out, c.stderr, []*os.File{events}
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	require.NoError(t, out.Close())
	require.NoError(t, events.Close())
	assert.Equal(t, "asked\n", c.event(t))
	return c
}

func (c child) event(t *testing.T) string {
	t.Helper()
	line, err := c.events.ReadString('\n')
	require.NoError(t, err, "the hook ended: %s", c.stderr)
	return line
}

func TestSignalsWithdraw(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			c := startChild(t)
			require.NoError(t, c.cmd.Process.Signal(sig))

			assert.Regexp(t, `^withdrawn s1\.t1: `+sig.String()+` signal received\n$`, c.event(t))
			out, err := io.ReadAll(c.stdout)
			require.NoError(t, err)
			oneObject(t, string(out))
			assert.Contains(t, string(out), `"permissionDecision":"deny"`)
			assert.NoError(t, c.cmd.Wait(), "exit code")
			assert.Equal(t, 1, strings.Count(c.stderr.String(), "\n"), c.stderr)
		})
	}
}

// TestHostGoneWithdraws: when a host is killed, its hook gets no signal, but the host's end of the
// hook's stdout closes. The hook then withdraws the request.
func TestHostGoneWithdraws(t *testing.T) {
	c := startChild(t)
	require.NoError(t, c.stdout.Close())

	assert.Regexp(t, `^withdrawn s1\.t1: the host is gone`, c.event(t))
	var exit *exec.ExitError
	require.ErrorAs(t, c.cmd.Wait(), &exit)
	assert.Equal(t, 2, exit.ExitCode(), "not killed by SIGPIPE before it could withdraw")
}

// TestAHostThatKillsTheShellWithdraws: some hosts stop a hook by killing only the shell that runs it,
// and keep the hook's stdout open. Even then, the hook withdraws the request.
func TestAHostThatKillsTheShellWithdraws(t *testing.T) {
	c := startAs(t, exec.Command("/bin/sh", "-c", os.Args[0]+" || exit 2"))
	require.NoError(t, c.cmd.Process.Kill())
	assert.Regexp(t, `^withdrawn s1\.t1: the host has stopped the hook\n$`, c.event(t))
}
