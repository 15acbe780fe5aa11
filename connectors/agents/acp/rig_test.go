package acp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/acp"
	"github.com/nodbus/nod/connectors/agents/relay"
	"github.com/nodbus/nod/schemas"
)

// fakeNod acts as nod, and the test makes its decisions. It checks that the sidecar sends only valid
// requests, sends each request once, and withdraws each request at most once.
type fakeNod struct {
	t           testing.TB
	submissions chan *submission
	withdrawn   chan withdrawal
	next        chan func(context.Context, *submission) (acp.Waiting, error) // each function handles one call of Submit
	notices     chan schemas.Notice

	mu        sync.Mutex
	seen      map[string]int  // 1 after the submission, and 2 after the withdrawal, by pending_id
	abandoned map[string]bool // whether the sidecar said that the call never runs, by pending_id
}

type withdrawal struct{ pendingID, reason string }

// submission is a request that waits for the test's decision.
type submission struct {
	schemas.Request
	now       bool // nod decides the request at once, by a rule
	decisions chan schemas.Decision
	errors    chan error
}

func newNod(t testing.TB) *fakeNod {
	return &fakeNod{
		t: t, notices: make(chan schemas.Notice, 100), seen: map[string]int{}, abandoned: map[string]bool{}, submissions: make(chan *submission, 100), withdrawn: make(chan withdrawal, 1000),
		next: make(chan func(context.Context, *submission) (acp.Waiting, error), 100),
	}
}

func (f *fakeNod) connect(context.Context) (acp.Nod, error) { return f, nil }

func (f *fakeNod) Submit(ctx context.Context, r schemas.Request) (acp.Waiting, error) {
	data, err := schemas.Encode(r)
	assert.NoError(f.t, err)
	assert.NoError(f.t, schemas.Decode(data, new(schemas.Request)), "not a request that nod takes: %s", data)
	f.mu.Lock()
	assert.Zero(f.t, f.seen[r.PendingID], "asked twice")
	f.seen[r.PendingID]++
	f.mu.Unlock()
	a := &submission{Request: r, decisions: make(chan schemas.Decision, 1), errors: make(chan error, 1)}
	select {
	case next := <-f.next:
		w, err := next(ctx, a)
		f.submissions <- a
		return w, err
	default:
		f.submissions <- a
		return a, nil
	}
}

// Notices passes on the notices of f until ctx ends.
func (f *fakeNod) Notices(ctx context.Context, _ string, heard func(schemas.Notice)) error {
	go func() {
		for {
			select {
			case n := <-f.notices:
				heard(n)
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

func (f *fakeNod) Withdraw(ctx context.Context, sessionID, pendingID, reason string) error {
	assert.NoError(f.t, ctx.Err(), "the withdrawal could not get through")
	f.mu.Lock()
	assert.Equal(f.t, 1, f.seen[pendingID], "withdrawn unasked, or twice")
	f.seen[pendingID]++
	f.mu.Unlock()
	f.withdrawn <- withdrawal{pendingID, reason}
	return nil
}

func (f *fakeNod) Abandon(ctx context.Context, sessionID, pendingID, reason string) error {
	f.mu.Lock()
	f.abandoned[pendingID] = true
	f.mu.Unlock()
	return f.Withdraw(ctx, sessionID, pendingID, reason)
}

func (a *submission) Open() bool { return !a.now }

func (a *submission) Await(ctx context.Context) (schemas.Decision, error) {
	select {
	case d := <-a.decisions:
		d.Type, d.SessionID, d.PendingID = schemas.TypeDecision, a.SessionID, a.PendingID
		return d, nil
	case err := <-a.errors:
		return schemas.Decision{}, err
	case <-ctx.Done():
		return schemas.Decision{}, ctx.Err()
	}
}

// decided makes the fake nod decide the next request at once, as nod does when a rule decides.
func (f *fakeNod) decided(d schemas.Decision) {
	f.next <- func(_ context.Context, a *submission) (acp.Waiting, error) {
		a.now = true
		a.decisions <- d
		return a, nil
	}
}

func (f *fakeNod) fails(err error) {
	f.next <- func(context.Context, *submission) (acp.Waiting, error) { return nil, err }
}

// person returns a decision of a person, with this outcome, and an option with this id and kind.
func person(o schemas.Outcome, id string, kind schemas.OptionKind) schemas.Decision {
	return schemas.Decision{Outcome: o, OptionID: id, OptionKind: kind, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann"}}
}

// rig runs a sidecar. The test acts as its editor and its agent.
type rig struct {
	t      testing.TB
	nod    *fakeNod
	log    *bytes.Buffer
	editor peer
	agent  peer
	ended  chan error
	cancel context.CancelCauseFunc
}

// peer is the editor or the agent of the sidecar.
type peer struct {
	in  io.WriteCloser // the test writes the peer's output here, which is the sidecar's input
	out *bufio.Reader  // the test reads the peer's input here, which is the sidecar's output
	end io.Closer      // the test closes end, so that the peer no longer reads
}

func start(t testing.TB, o acp.Options) *rig {
	nod := newNod(t)
	return startWith(t, nod, nod.connect, o)
}

func startWith(t testing.TB, nod *fakeNod, connect acp.Connect, o acp.Options) *rig {
	r := &rig{t: t, nod: nod, ended: make(chan error, 1), log: &bytes.Buffer{}}
	side := func() (peer, relay.Peer) {
		fromPeer, in := io.Pipe()
		out, toPeer := io.Pipe()
		t.Cleanup(func() { _ = in.Close(); _ = out.Close() })
		return peer{in, bufio.NewReaderSize(out, 64<<10), out}, relay.Peer{In: toPeer, Out: fromPeer}
	}
	var editor, agent relay.Peer
	r.editor, editor = side()
	r.agent, agent = side()
	var log lockedWriter
	log.w = r.log
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, cancel := context.WithCancelCause(t.Context())
	r.cancel = cancel
	go func() {
		err := acp.Run(ctx, editor, agent, connect, o)
		_ = editor.In.(io.Closer).Close() // if the sidecar were a process, its end would close the editor's input
		r.ended <- err
	}()
	return r
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
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

// ends closes the agent's output and waits until Run returns. It returns all that the editor and the
// agent have not read yet.
func (r *rig) ends() (editor, agent string) {
	r.t.Helper()
	type rest struct {
		data []byte
		err  error
	}
	read := func(p peer) chan rest {
		c := make(chan rest, 1)
		go func() {
			data, err := io.ReadAll(p.out)
			c <- rest{data, err}
		}()
		return c
	}
	toEditor, toAgent := read(r.editor), read(r.agent)
	require.NoError(r.t, r.agent.in.Close())
	require.NoError(r.t, <-r.ended)
	e, a := <-toEditor, <-toAgent
	require.NoError(r.t, errors.Join(e.err, a.err))
	return string(e.data), string(a.data)
}

func request(id, session, command string) string {
	input, _ := json.Marshal(map[string]string{"command": command})
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"session/request_permission","params":{"sessionId":"` + session + `","toolCall":{"toolCallId":"call-` + session +
		`","title":"Run it","kind":"execute","rawInput":` + string(input) + `},"options":[{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}}`
}

// answered returns the response to a permission request. The response chooses the option with the id
// option, or is "cancelled" if option is empty.
func answered(id, option string) string {
	if option == "" {
		return `{"jsonrpc":"2.0","id":` + id + `,"result":{"outcome":{"outcome":"cancelled"}}}`
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"outcome":{"outcome":"selected","optionId":"` + option + `"}}}`
}

// allowsAfter returns a function that handles one call of Submit. The decision is an allow. It arrives
// when the channel closed is closed, even if the sidecar no longer waits for it.
func (f *fakeNod) allowsAfter(closed chan bool) func(context.Context, *submission) (acp.Waiting, error) {
	return func(_ context.Context, a *submission) (acp.Waiting, error) { return stubborn{a, closed}, nil }
}

type stubborn struct {
	*submission
	closed chan bool
}

func (s stubborn) Await(context.Context) (schemas.Decision, error) {
	<-s.closed
	d := person(schemas.Allowed, "yes", schemas.AllowOnce)
	d.Type, d.SessionID, d.PendingID = schemas.TypeDecision, s.SessionID, s.PendingID
	return d, nil
}

// abandons reports whether the sidecar has told nod that the call of a request never runs.
func (f *fakeNod) abandons(pendingID string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.abandoned[pendingID]
}
