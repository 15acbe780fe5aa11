//go:build unix

package codex_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/codex"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

const waitAtMost = 30 * time.Second

// asCodex is an environment variable. It makes this test binary act as Codex.
const asCodex = "NOD_TEST_CODEX"

func TestMain(m *testing.M) {
	if os.Getenv(asCodex) != "" {
		os.Exit(fakeCodex())
	}
	_ = flag.Set("test.parallel", "8") // the tests mostly wait, so many can run at a time
	os.Exit(m.Run())
}

// fakeCodex acts as Codex, and the test controls it. It reads orders in JSON from its input: "say"
// makes it write a text, and "exit" and "die" end it. It answers every other line with {"heard": LINE},
// so that the test sees Codex's input.
func fakeCodex() int {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		var m struct {
			Say  *string `json:"say"`
			Exit *int    `json:"exit"`
			Die  bool    `json:"die"`
		}
		_ = json.Unmarshal([]byte(line), &m) // ignore a line that is not JSON
		switch {
		case m.Say != nil:
			fmt.Print(*m.Say)
		case m.Exit != nil:
			return *m.Exit
		case m.Die:
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case line != "":
			heard, _ := json.Marshal(map[string]string{"heard": line})
			fmt.Printf("%s\n", heard)
		}
		if err != nil {
			return 0
		}
	}
}

// rig runs the sidecar with a fake Codex process, which has a thread thr-1 in the directory /p. The
// test acts as the client. rig also runs a whole nod, whose approver is the test.
type rig struct {
	t         *testing.T
	nod       *nod.Client
	prompts   chan schemas.Prompt
	answers   chan nodtest.Answer
	abandoned atomic.Int32                                   // the calls of Abandon
	missing   atomic.Bool                                    // the sidecar's calls to nod fail, as if nod were not running
	decides   func(schemas.Request) (schemas.Decision, bool) // decides a request in place of nod, unless the function is nil or returns false
	in        *io.PipeWriter
	out       *bufio.Reader
	cancel    context.CancelFunc
	exit      chan int
}

func newRig(t *testing.T, o codex.Options) *rig {
	r := &rig{t: t, prompts: make(chan schemas.Prompt, 100), answers: make(chan nodtest.Answer, 100), exit: make(chan int, 1)}
	seen := map[string]bool{}
	r.nod = nodtest.Start(t, func(p schemas.Prompt) nodtest.Answer {
		if seen[p.Key()] { // nod may deliver a prompt more than once
			return nodtest.Answer{}
		}
		seen[p.Key()] = true
		r.prompts <- p
		return <-r.answers
	})
	r.run(o, testAsker{r})
	t.Cleanup(func() { close(r.answers) })
	started := `{"id":"t","result":{"thread":{"id":"thr-1","cwd":"/p"},"cwd":"/p","model":"m"}}` + "\n"
	r.says(started)
	require.Equal(t, started, r.reads())
	return r
}

func (r *rig) run(o codex.Options, nod agents.CallAsker) {
	in, toSidecar := io.Pipe()
	fromSidecar, out := io.Pipe()
	r.in, r.out = toSidecar, bufio.NewReader(fromSidecar)
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	o.Host, o.User, o.Log = "devbox", "ann", slog.New(slog.DiscardHandler)
	go func() {
		code, err := codex.Run(ctx, []string{"env", asCodex + "=1", os.Args[0]}, in, out, os.Stderr, nod, o)
		if err != nil {
			code = -1
		}
		_ = out.Close()
		r.exit <- code
	}()
	r.t.Cleanup(func() {
		r.cancel()
		_ = fromSidecar.Close()
	})
}

func (r *rig) sends(line string) {
	r.t.Helper()
	_, err := io.WriteString(r.in, line)
	require.NoError(r.t, err)
}

// says makes Codex write text, byte for byte.
func (r *rig) says(text string) {
	r.t.Helper()
	order, err := json.Marshal(map[string]string{"say": text})
	require.NoError(r.t, err)
	r.sends(string(order) + "\n")
}

// reads returns the next line that the client gets.
func (r *rig) reads() string {
	r.t.Helper()
	type result struct {
		line string
		err  error
	}
	got := make(chan result, 1)
	go func() {
		line, err := r.out.ReadString('\n')
		got <- result{line, err}
	}()
	select {
	case g := <-got:
		require.True(r.t, g.err == nil || g.err == io.EOF, "%v", g.err)
		return g.line
	case <-time.After(waitAtMost):
		require.FailNow(r.t, "the client was told nothing")
	}
	return ""
}

// heard returns the next line that Codex gets.
func (r *rig) heard() string {
	r.t.Helper()
	var m struct {
		Heard string `json:"heard"`
	}
	line := r.reads()
	require.NoError(r.t, json.Unmarshal([]byte(line), &m), line)
	require.NotEmpty(r.t, m.Heard, line)
	return m.Heard
}

func (r *rig) asked() schemas.Prompt {
	r.t.Helper()
	select {
	case p := <-r.prompts:
		return p
	case <-time.After(waitAtMost):
		require.FailNow(r.t, "nobody was asked")
	}
	return schemas.Prompt{}
}

// withdrawn waits until the request of the prompt p is withdrawn, and returns the reason of the withdrawal.
func (r *rig) withdrawn(p schemas.Prompt) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitAtMost)
	defer cancel()
	asked, err := r.nod.Submit(ctx, p.Request)
	require.NoError(r.t, err)
	d, err := asked.Await(ctx)
	require.NoError(r.t, err)
	require.Equal(r.t, schemas.Withdrawn, d.Outcome)
	return d.Message
}

func (r *rig) ended() int {
	r.t.Helper()
	select {
	case code := <-r.exit:
		return code
	case <-time.After(waitAtMost):
		require.FailNow(r.t, "it did not end")
	}
	return 0
}

// testAsker is the sidecar's interface to the rig's nod. If r.missing is set, its calls fail with
// UNAVAILABLE.
type testAsker struct{ r *rig }

func (a testAsker) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	if a.r.missing.Load() {
		return schemas.Decision{}, schemas.Errorf(schemas.CodeUnavailable, "no nod runs here")
	}
	if a.r.decides != nil {
		if d, ok := a.r.decides(r); ok {
			return d, nil
		}
	}
	asked, err := a.r.nod.Submit(ctx, r)
	if err != nil {
		return schemas.Decision{}, err
	}
	defer asked.Drop()
	return asked.Await(ctx)
}

func (a testAsker) Withdraw(ctx context.Context, session, id, reason string) error {
	_, err := a.r.nod.Withdraw(ctx, session, id, reason)
	return err
}

func (a testAsker) Abandon(ctx context.Context, session, id, reason string) error {
	a.r.abandoned.Add(1)
	return a.Withdraw(ctx, session, id, reason)
}
