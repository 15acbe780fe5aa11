//go:build unix

package acp_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/acp"
	"github.com/nodbus/nod/connectors/agents/relay"
	"github.com/nodbus/nod/schemas"
)

// asAgent is an environment variable. It makes this test binary act as the agent whose name is its value.
const asAgent = "NOD_TEST_AGENT"

func TestMain(m *testing.M) {
	if name := os.Getenv(asAgent); name != "" {
		os.Exit(agents[name]())
	}
	_ = flag.Set("test.parallel", "8") // the tests mostly wait, so many can run at a time
	os.Exit(m.Run())
}

// agents are the agents that this test binary can act as. Each function returns the exit code.
var agents = map[string]func() int{
	"sdk": sdkAgent,
	"echo": func() int {
		_, _ = io.Copy(os.Stdout, os.Stdin)
		return 0
	},
	"exits": func() int {
		fmt.Println(`{"jsonrpc":"2.0","method":"last/word"}`)
		return 42
	},
	"half": func() int {
		fmt.Print(`{"jsonrpc":"2.0","method":"sess`)
		return 3
	},
	"killed": func() int {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	},
	// dies sends a request, and exits when it reads its next line of input.
	"dies": func() int {
		fmt.Println(request("1", "s", "make"))
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		return 7
	},
	// hears sends a request. When its input has ended, it writes the whole input to stderr.
	"hears": func() int {
		fmt.Println(request("1", "s", "make"))
		heard, _ := io.ReadAll(os.Stdin)
		fmt.Fprintf(os.Stderr, "heard %q", heard)
		return 0
	},
	// floods writes a line that is longer than the buffer of a pipe.
	"floods": func() int {
		fmt.Println(strings.Repeat("x", 4<<20))
		select {}
	},
	// stubborn sends a request. Neither the end of its input nor SIGTERM makes it exit.
	"stubborn": func() int {
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(request("1", "s", "make"))
		select {}
	},
}

// process contains a sidecar and the process of its agent. The test acts as the editor.
type process struct {
	editor peer
	stderr *os.File
	exit   chan int
}

func run(t testing.TB, ctx context.Context, agent string, nod *fakeNod, o acp.Options) process {
	t.Helper()
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		t.Cleanup(func() { _ = r.Close(); _ = w.Close() })
		return r, w
	}
	fromEditor, in := pipe()
	out, toEditor := pipe()
	errs, stderr := pipe()
	p := process{editor: peer{in, bufio.NewReader(out), out}, stderr: errs, exit: make(chan int, 1)}
	go func() {
		code, err := acp.RunCommand(ctx, []string{"env", asAgent + "=" + agent, "GORACE=atexit_sleep_ms=0", os.Args[0]}, relay.Peer{In: toEditor, Out: fromEditor}, stderr, nod.connect, o)
		assert.NoError(t, err)
		_ = toEditor.Close()
		_ = stderr.Close()
		p.exit <- code
	}()
	return p
}

// rest waits until the agent has ended. It returns all output that the editor has not read before.
func (p process) rest(t testing.TB) string {
	t.Helper()
	data, err := io.ReadAll(p.editor.out)
	require.NoError(t, err)
	return string(data)
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exit int
		last string
	}{
		"exits":  {42, `{"jsonrpc":"2.0","method":"last/word"}` + "\n"},
		"half":   {3, `{"jsonrpc":"2.0","method":"sess`},
		"killed": {137, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := run(t, t.Context(), name, newNod(t), acp.Options{})
			assert.Equal(t, c.last, p.rest(t))
			assert.Equal(t, c.exit, <-p.exit)
		})
	}
}

func TestAFailedStartOfTheAgentIsAnError(t *testing.T) {
	t.Parallel()
	nod := newNod(t)
	for _, argv := range [][]string{nil, {"/no/such/agent"}} {
		_, err := acp.RunCommand(t.Context(), argv, relay.Peer{In: io.Discard, Out: strings.NewReader("")}, io.Discard, nod.connect, acp.Options{})
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "\n")
	}
}

// TestTheAgentsInputEndsWithTheEditorsOutput: when the editor's output ends, the sidecar closes the
// agent's input. The agent also gets the last line if it has no line break.
func TestTheAgentsInputEndsWithTheEditorsOutput(t *testing.T) {
	t.Parallel()
	p := run(t, t.Context(), "echo", newNod(t), acp.Options{})
	p.editor.says(t, `{"jsonrpc":"2.0","id":1,"method":"x"}`+"\r")
	assert.Equal(t, `{"jsonrpc":"2.0","id":1,"method":"x"}`+"\r", p.editor.hears(t))
	_, err := io.WriteString(p.editor.in, `{"jsonrpc":"2.0","id":`)
	require.NoError(t, err)
	require.NoError(t, p.editor.in.Close())
	assert.Equal(t, `{"jsonrpc":"2.0","id":`, p.rest(t))
	assert.Zero(t, <-p.exit)
}

func TestARequestIsWithdrawnIfTheAgentDies(t *testing.T) {
	t.Parallel()
	nod := newNod(t)
	p := run(t, t.Context(), "dies", nod, acp.Options{})
	a := <-nod.submissions
	p.editor.says(t, "now")
	assert.Equal(t, withdrawal{a.PendingID, "the agent is gone"}, <-nod.withdrawn)
	assert.Empty(t, p.rest(t))
	assert.Equal(t, 7, <-p.exit)
}

// TestARequestIsWithdrawnIfTheEditorIsGone: when the editor is gone, the sidecar withdraws the agent's
// request. The agent does not get a decision that nod makes later.
func TestARequestIsWithdrawnIfTheEditorIsGone(t *testing.T) {
	t.Parallel()
	nod := newNod(t)
	p := run(t, t.Context(), "hears", nod, acp.Options{})
	a := <-nod.submissions
	require.NoError(t, p.editor.in.Close())
	assert.Equal(t, withdrawal{a.PendingID, "the editor is gone"}, <-nod.withdrawn)
	a.decisions <- person(schemas.Allowed, "yes", schemas.AllowOnce)
	assert.Zero(t, <-p.exit)
	heard, err := io.ReadAll(p.stderr)
	require.NoError(t, err)
	assert.Equal(t, `heard ""`, string(heard))
}

// TestABrokenPipeToTheEditorEndsTheAgentsInput: if the editor has closed its input, the sidecar treats
// the editor as gone and closes the agent's input.
func TestABrokenPipeToTheEditorEndsTheAgentsInput(t *testing.T) {
	t.Parallel()
	p := run(t, t.Context(), "echo", newNod(t), acp.Options{})
	require.NoError(t, p.editor.end.Close())
	p.editor.says(t, `{"jsonrpc":"2.0","method":"x"}`)
	assert.Zero(t, <-p.exit)
}

// TestStoppingWithdrawsRequestsAndEndsTheAgent: when ctx ends, the sidecar withdraws pending requests
// and sends the agent SIGTERM. It kills an agent that does not end.
func TestStoppingWithdrawsRequestsAndEndsTheAgent(t *testing.T) {
	t.Parallel()
	for agent, exit := range map[string]int{"hears": 128 + int(syscall.SIGTERM), "stubborn": 128 + int(syscall.SIGKILL)} {
		t.Run(agent, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			nod := newNod(t)
			p := run(t, ctx, agent, nod, acp.Options{})
			a := <-nod.submissions
			stop(fmt.Errorf("terminated signal received"))
			assert.Equal(t, withdrawal{a.PendingID, "terminated signal received"}, <-nod.withdrawn)
			code := <-p.exit
			if agent == "hears" && code == 0 { // the agent read the end of its input before it got SIGTERM
				return
			}
			assert.Equal(t, exit, code)
		})
	}
}

// TestAnEditorThatDoesNotReadDelaysNoStop: the sidecar stops even if the editor does not read its
// input.
func TestAnEditorThatDoesNotReadDelaysNoStop(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	p := run(t, ctx, "floods", newNod(t), acp.Options{})
	_, err := p.editor.out.Peek(1) // wait for the first byte of a line that does not fit into the pipe
	require.NoError(t, err)
	stop()
	assert.Equal(t, 128+int(syscall.SIGTERM), <-p.exit)
}
