package mcpgate_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/mcpgate"
	"github.com/nodbus/nod/connectors/agents/relay"
	"github.com/nodbus/nod/internal/testlog"
	"github.com/nodbus/nod/schemas"
)

// fakeNod acts as nod, and the test makes its decisions. It checks that nod would accept each request.
type fakeNod struct {
	t     testing.TB
	asked chan *question
	left  chan left

	mu   sync.Mutex
	auto func(schemas.Request) *schemas.Decision // decides a request at once; if it returns nil, the test decides the request
}

// left is a request that the gate no longer waits for.
type left struct {
	id, reason string
	detached   bool
}

// question is a request that waits for the test's decision.
type question struct {
	schemas.Request
	decisions chan schemas.Decision
	errors    chan error
}

func newNod(t testing.TB) *fakeNod {
	return &fakeNod{t: t, asked: make(chan *question, 100), left: make(chan left, 100)}
}

func (f *fakeNod) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	data, err := schemas.Encode(r)
	assert.NoError(f.t, err)
	if err := schemas.Decode(data, new(schemas.Request)); err != nil {
		return schemas.Decision{}, err
	}
	f.mu.Lock()
	auto := f.auto
	f.mu.Unlock()
	q := &question{r, make(chan schemas.Decision, 1), make(chan error, 1)}
	if auto != nil {
		if d := auto(r); d != nil {
			return q.about(*d), nil
		}
	}
	f.asked <- q
	select {
	case d := <-q.decisions:
		return q.about(d), nil
	case err := <-q.errors:
		return schemas.Decision{}, err
	case <-ctx.Done():
		return schemas.Decision{}, ctx.Err()
	}
}

func (q *question) about(d schemas.Decision) schemas.Decision {
	d.Type, d.SessionID, d.PendingID = schemas.TypeDecision, q.SessionID, q.PendingID
	return d
}

func (f *fakeNod) Withdraw(ctx context.Context, _, id, reason string) error {
	assert.NoError(f.t, ctx.Err())
	f.left <- left{id, reason, false}
	return nil
}

func (f *fakeNod) Detach(ctx context.Context, _, id, reason string) error {
	assert.NoError(f.t, ctx.Err())
	f.left <- left{id, reason, true}
	return nil
}

func (f *fakeNod) decides(auto func(schemas.Request) *schemas.Decision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.auto = auto
}

func byAnn(o schemas.Outcome) schemas.Decision {
	return schemas.Decision{Outcome: o, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann"}}
}

func allow() schemas.Decision { return byAnn(schemas.Allowed) }

// chooses returns a decision of Ann, who chooses an option.
func chooses(o schemas.Outcome, option string, kind schemas.OptionKind) schemas.Decision {
	d := byAnn(o)
	d.OptionID, d.OptionKind = option, kind
	return d
}

// rig runs a gate. The test acts as its client and its server.
type rig struct {
	t              testing.TB
	nod            *fakeNod
	client, server peer
	ended          chan error
	stop           context.CancelCauseFunc
}

// peer is the client or the server. The test writes the peer's output to in, and reads the peer's input
// from out.
type peer struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t testing.TB, o mcpgate.Options) *rig {
	nod := newNod(t)
	return startWith(t, nod, nod, o)
}

func startWith(t testing.TB, fake *fakeNod, nod mcpgate.Nod, o mcpgate.Options) *rig {
	r := &rig{t: t, nod: fake, ended: make(chan error, 1)}
	fromClient, clientIn := io.Pipe()
	clientOut, toClient := io.Pipe()
	serverOut, toServer := io.Pipe()
	fromServer, serverIn := io.Pipe()
	r.client = peer{clientIn, bufio.NewReader(clientOut)}
	r.server = peer{serverIn, bufio.NewReader(serverOut)}
	o.Name, o.Session, o.Host, o.User, o.Server = "fs", "s1", "devbox", "ann", "server-fs /srv"
	ctx, stop := context.WithCancelCause(t.Context())
	r.stop = stop
	go func() {
		err := mcpgate.Run(ctx, relay.Peer{In: toClient, Out: fromClient}, toServer, fromServer, nod, o)
		_ = toClient.Close()
		r.ended <- err
	}()
	t.Cleanup(func() { _ = clientIn.Close(); _ = clientOut.Close(); _ = serverIn.Close(); _ = serverOut.Close() })
	return r
}

func (p peer) says(t testing.TB, line string) {
	t.Helper()
	_, err := io.WriteString(p.in, line+"\n")
	require.NoError(t, err)
}

func (p peer) hears(t testing.TB) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	require.NoError(t, err)
	return line[:len(line)-1]
}

// next returns the next question that the gate asks nod.
func (r *rig) next() *question {
	r.t.Helper()
	select {
	case q := <-r.nod.asked:
		return q
	case <-time.After(30 * time.Second):
		require.Fail(r.t, "nod was not asked")
		return nil
	}
}

// ends ends the server, and returns all output that the client has not read.
func (r *rig) ends() string {
	r.t.Helper()
	rest := make(chan string, 1)
	go func() {
		data, _ := io.ReadAll(r.client.out) // the pipe ends when the gate ends
		rest <- string(data)
	}()
	require.NoError(r.t, r.server.in.Close())
	require.NoError(r.t, <-r.ended)
	return <-rest
}

func logTo(b *testlog.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

const ping = `{"jsonrpc":"2.0","id":"ping","method":"ping"}`

// reachesOnlyPing sends a ping, and checks that the server gets nothing else before it.
func (r *rig) reachesOnlyPing() {
	r.t.Helper()
	own := strings.Replace(ping, `"ping"`, `"`+rand.Text()+`"`, 1) // an id without a response must not be used again
	r.client.says(r.t, own)
	require.Equal(r.t, own, r.server.hears(r.t))
}
