package mcp_test

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/connectors/agents/mcp"
	"github.com/nodbus/nod/schemas"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests mostly wait, so many can run at a time
	os.Exit(m.Run())
}

const (
	token   = "a-token-of-the-test's-own"
	earlier = "2025-11-25" // a protocol version in which clients have sessions
	later   = "2026-07-28" // a protocol version in which clients have no sessions
	session = "s1"
)

// way is a transport together with a version of the protocol.
type way struct {
	name, version string
	http          bool
}

func ways() []way {
	return []way{
		{"stdio, earlier", earlier, false}, {"stdio, later", later, false},
		{"HTTP, earlier", earlier, true}, {"HTTP, later", later, true},
	}
}

func everyWay(t *testing.T, f func(*testing.T, way)) {
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			f(t, w)
		})
	}
}

// realNod is the interface to a running nod that cmd/nod uses. It also tells the test of each request
// and each withdrawal.
type realNod struct {
	*nod.Client
	asked     chan schemas.Request
	withdrawn chan schemas.Withdraw
}

func watch(client *nod.Client) *realNod {
	return &realNod{client, make(chan schemas.Request, 100), make(chan schemas.Withdraw, 100)}
}

func (n *realNod) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	asked, err := n.Submit(ctx, r)
	n.asked <- r
	if err != nil {
		return schemas.Decision{}, err
	}
	defer asked.Drop()
	return asked.Await(ctx)
}

func (n *realNod) Withdraw(ctx context.Context, session, id, reason string) error {
	_, err := n.Client.Withdraw(ctx, session, id, reason)
	n.withdrawn <- schemas.Withdraw{SessionID: session, PendingID: id, Reason: reason}
	return err
}

// fakeNod is a nod whose behaviour the test sets.
type fakeNod struct {
	mcp.Nod
	ask       func(context.Context, schemas.Request) (schemas.Decision, error)
	withdrawn chan schemas.Withdraw
}

func (n *fakeNod) Notices(context.Context, string, func(schemas.Notice)) error { return nil }

func (n *fakeNod) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	return n.ask(ctx, r)
}

func (n *fakeNod) Withdraw(_ context.Context, session, id, reason string) error {
	n.withdrawn <- schemas.Withdraw{SessionID: session, PendingID: id, Reason: reason}
	return nil
}

func fake(ask func(context.Context, schemas.Request) (schemas.Decision, error)) *fakeNod {
	return &fakeNod{ask: ask, withdrawn: make(chan schemas.Withdraw, 100)}
}

func serve(t *testing.T, n mcp.Nod, o mcp.Options) *mcp.Server {
	o.Session, o.Host, o.User, o.Version = session, "devbox", "ann", "0.0.0"
	s := mcp.New(n, o)
	t.Cleanup(s.Stop)
	return s
}

// web serves s over HTTP at a free port until the test ends.
func web(t *testing.T, s *mcp.Server) *httptest.Server {
	handler, err := s.Handler(mcp.HTTPOptions{Token: token})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(func() { s.Stop(); server.CloseClientConnections(); server.Close() })
	return server
}

// bearer adds the token, and the HTTP headers in its field header, to each request of a client.
type bearer struct {
	header http.Header
	next   http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	for name, values := range b.header {
		r.Header[name] = values
	}
	return b.next.RoundTrip(r)
}

func reach(t *testing.T, s *mcp.Server, w way, o *sdk.ClientOptions) *sdk.ClientSession {
	if w.http {
		return reachHTTP(t, web(t, s).URL, w.version, bearer{next: &http.Transport{}}, o)
	}
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeStdio(context.Background(), serverIn, serverOut) }()
	c := connect(t, &sdk.IOTransport{Reader: clientIn, Writer: clientOut}, w.version, o)
	t.Cleanup(func() {
		_ = c.Close() // fails if the test has closed the connection
		require.NoError(t, <-ended)
	})
	return c
}

func reachHTTP(t *testing.T, url, version string, through http.RoundTripper, o *sdk.ClientOptions) *sdk.ClientSession {
	c := connect(t, &sdk.StreamableClientTransport{Endpoint: url + mcp.Path, HTTPClient: &http.Client{Transport: through}}, version, o)
	t.Cleanup(func() { _ = c.Close() }) // fails if the test has closed the connection
	return c
}

func connect(t *testing.T, transport sdk.Transport, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	client := sdk.NewClient(&sdk.Implementation{Name: "claude-code", Title: "Claude Code", Version: "9"}, o)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	require.Equal(t, version, c.InitializeResult().ProtocolVersion)
	return c
}

// calls calls a tool. It returns the text of the result, and whether the result is marked as an error.
func calls(t *testing.T, c *sdk.ClientSession, tool, arguments string) (string, bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := c.CallTool(ctx, callOf(tool, arguments))
	require.NoError(t, err)
	return said(t, result), result.IsError
}

func callOf(tool, arguments string) *sdk.CallToolParams {
	p := &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)}
	p.SetProgressToken("p-" + tool)
	return p
}

func said(t *testing.T, result *sdk.CallToolResult) string {
	t.Helper()
	require.Len(t, result.Content, 1)
	return result.Content[0].(*sdk.TextContent).Text
}

// progress stores the progress notifications of a client. For each of them, it sends an element to the
// channel more.
type progress struct {
	mu   sync.Mutex
	seen []*sdk.ProgressNotificationParams
	more chan struct{}
}

func (p *progress) options() *sdk.ClientOptions {
	p.more = make(chan struct{}, 1000)
	return &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen = append(p.seen, r.Params)
		p.more <- struct{}{}
	}}
}
