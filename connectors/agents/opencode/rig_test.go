package opencode_test

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/opencode"
	"github.com/nodbus/nod/internal/testlog"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests mostly wait, so many can run at a time
	os.Exit(m.Run())
}

// rig contains a fake OpenCode, a whole nod with an approver, and the tested connector between the two.
type rig struct {
	*fakeOpenCode
	nod       *nod.Client
	prompts   chan schemas.Prompt
	answers   chan nodtest.Answer
	abandoned atomic.Int32 // the calls of Abandon
	missing   atomic.Bool  // calls to nod fail, as if nod were not running
	log       testlog.Buffer
	stop      func()
	options   opencode.Options
}

func newRig(t *testing.T, f *fakeOpenCode) *rig {
	r := &rig{fakeOpenCode: f, prompts: make(chan schemas.Prompt, 100), answers: make(chan nodtest.Answer, 100), stop: func() {}}
	var seen sync.Map
	r.nod = nodtest.Start(t, func(p schemas.Prompt) nodtest.Answer {
		if _, again := seen.LoadOrStore(p.Key(), true); again { // nod may deliver a prompt more than once
			return nodtest.Answer{}
		}
		r.prompts <- p
		return <-r.answers
	})
	r.options = opencode.Options{URL: f.start(), Host: "devbox", User: "ann", Password: f.password, Directory: f.dir}
	t.Cleanup(func() {
		close(r.answers)
		r.stop()
	})
	return r
}

// run starts the connector and waits until it is connected to the fake OpenCode. The connector runs
// until r.stop or the end of the test.
func (r *rig) run() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done, up := make(chan error, 1), make(chan struct{}, 100)
	o := r.options
	o.Log = slog.New(slog.NewTextHandler(&r.log, nil))
	o.Connected = func() { up <- struct{}{} }
	go func() { done <- opencode.Run(ctx, testAsker{r}, o) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(r.t, <-done)
	})
	select {
	case <-up:
	case err := <-done:
		require.NoError(r.t, err)
	case <-time.After(waitAtMost):
		require.FailNow(r.t, "OpenCode was not followed", r.log.String())
	}
}

// asked waits for the next prompt that nod shows to the approver.
func (r *rig) asked() schemas.Prompt {
	r.t.Helper()
	select {
	case p := <-r.prompts:
		return p
	case <-time.After(waitAtMost):
		require.FailNow(r.t, "nobody was asked", r.log.String())
	}
	return schemas.Prompt{}
}

func (r *rig) says(a nodtest.Answer) { r.answers <- a }

// ended waits until the request of the prompt p is withdrawn, and returns the reason of the withdrawal.
func (r *rig) ended(p schemas.Prompt) string {
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

// testAsker is the connector's interface to the rig's nod. If r.missing is true, its calls fail as they
// do without a running nod.
type testAsker struct{ r *rig }

func (a testAsker) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	if a.r.missing.Load() {
		return schemas.Decision{}, schemas.Errorf(schemas.CodeUnavailable, "no nod runs here")
	}
	asked, err := a.r.nod.Submit(ctx, r)
	if err != nil {
		return schemas.Decision{}, err
	}
	defer asked.Drop()
	return asked.Await(ctx)
}

func (a testAsker) Withdraw(ctx context.Context, session, id, reason string) error {
	if a.r.missing.Load() {
		return schemas.Errorf(schemas.CodeUnavailable, "no nod runs here")
	}
	_, err := a.r.nod.Withdraw(ctx, session, id, reason)
	return err
}

func (a testAsker) Abandon(ctx context.Context, session, id, reason string) error {
	a.r.abandoned.Add(1)
	return a.Withdraw(ctx, session, id, reason)
}

var _ agents.CallAsker = testAsker{}
