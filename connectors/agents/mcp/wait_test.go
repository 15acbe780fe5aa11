package mcp_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/mcp"
	"github.com/nodbus/nod/nodtest"
	"github.com/nodbus/nod/schemas"
)

var realTime = flag.Bool("mcp.realtime", false, "wait as long as clients and people do, which takes some minutes, and not a sixtieth of it")

func transport() *http.Transport { return &http.Transport{} }

func silent(schemas.Prompt) nodtest.Answer { return nodtest.Answer{} }

// If a client cancels a call, the server withdraws the call's request. This is so over every transport.
func TestCancellationWithdraws(t *testing.T) {
	t.Parallel()
	client := nodtest.Start(t, silent)
	everyWay(t, func(t *testing.T, w way) {
		n := watch(client)
		c := reach(t, serve(t, n, mcp.Options{}), w, nil)
		for tool, arguments := range map[string]string{
			"approve":            use("Deploy", `{}`, ""),
			"request_permission": `{"permission":"@network","reason":"r"}`,
		} {
			ctx, cancel := context.WithCancel(t.Context())
			called := make(chan error, 1)
			go func() {
				_, err := c.CallTool(ctx, callOf(tool, arguments))
				called <- err
			}()
			r := <-n.asked
			cancel()
			require.ErrorIs(t, <-called, context.Canceled)
			assert.Equal(t, schemas.Withdraw{SessionID: r.SessionID, PendingID: r.PendingID, Reason: "the agent no longer waits for the answer"}, <-n.withdrawn)
			d, err := client.Withdraw(t.Context(), r.SessionID, r.PendingID, "the test looks")
			require.NoError(t, err)
			assert.Equal(t, schemas.Withdrawn, d.Outcome)
			assert.Equal(t, "the agent no longer waits for the answer", d.Message)
		}
		got, _ := calls(t, c, "approve", use("Read", `{"file_path":"/tmp/x"}`, ""))
		assert.Contains(t, got, `"allow"`, "the client goes on")
	})
}

// If a client is killed, its connection ends without a cancellation. The server then withdraws the
// request of its call.
func TestAClientThatIsGoneWithdraws(t *testing.T) {
	t.Parallel()
	client := nodtest.Start(t, silent)
	everyWay(t, func(t *testing.T, w way) {
		n := watch(client)
		s := serve(t, n, mcp.Options{})
		if !w.http {
			serverIn, clientOut := io.Pipe()
			clientIn, serverOut := io.Pipe()
			ended := make(chan error, 1)
			go func() { ended <- s.ServeStdio(context.Background(), serverIn, serverOut) }()
			c := connect(t, &sdk.IOTransport{Reader: clientIn, Writer: clientOut}, w.version, nil)
			go func() { _, _ = c.CallTool(t.Context(), callOf("approve", use("Deploy", `{}`, ""))) }()
			<-n.asked
			require.NoError(t, errors.Join(clientOut.Close(), clientIn.Close()))
			<-n.withdrawn
			require.NoError(t, <-ended)
			return
		}
		wires := &wires{idle: time.Hour}
		c := reachHTTP(t, web(t, s).URL, w.version, bearer{next: wires.transport()}, nil)
		go func() { _, _ = c.CallTool(t.Context(), callOf("approve", use("Deploy", `{}`, ""))) }()
		<-n.asked
		wires.cut.Store(true)
		wires.closeAll()
		<-n.withdrawn
	})
}

// wires contains the connections of an HTTP client. A read fails after the time idle without data.
type wires struct {
	idle  time.Duration
	reads atomic.Int64 // how many reads returned data
	cut   atomic.Bool
	open  []net.Conn
	lock  chan struct{}
}

func (w *wires) transport() *http.Transport {
	w.lock = make(chan struct{}, 1)
	return &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if w.cut.Load() {
			return nil, net.ErrClosed
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		w.lock <- struct{}{}
		w.open = append(w.open, conn)
		<-w.lock
		return idleConn{conn, w}, nil
	}}
}

func (w *wires) closeAll() {
	w.lock <- struct{}{}
	for _, c := range w.open {
		_ = c.Close()
	}
	<-w.lock
}

type idleConn struct {
	net.Conn
	w *wires
}

func (c idleConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.w.idle)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.w.reads.Add(1)
	}
	return n, err
}

// The server's signs of life keep a call open although the client gives up after a minute without data.
// In this test, the client gives up after 3 s, and the server sends a sign every 0.3 s. A slow machine
// may therefore delay several signs. This command uses the real times, a minute and 20 s:
//
//	go test ./connectors/agents/mcp -run TestProgressKeeps -mcp.realtime
func TestProgressKeepsALongWaitAlive(t *testing.T) {
	t.Parallel()
	idle, every := 3*time.Second, 300*time.Millisecond
	if *realTime {
		idle, every = time.Minute, 0 // 0 means the default, 20 s
	} else {
		t.Log("a minute is three seconds here; -mcp.realtime waits for minutes")
	}
	n := watch(nodtest.Start(t, silent))
	for _, w := range ways()[2:] {
		for _, withToken := range []bool{true, false} {
			t.Run(w.name+map[bool]string{true: ", progress", false: ", no progress asked for"}[withToken], func(t *testing.T) {
				t.Parallel()
				n := watch(n.Client)
				heard := &progress{}
				wires := &wires{idle: idle}
				s := serve(t, n, mcp.Options{SignOfLife: every})
				c := reachHTTP(t, web(t, s).URL, w.version, bearer{next: wires.transport()}, heard.options())
				call := callOf("approve", use("Deploy", `{}`, ""))
				if !withToken {
					call.Meta = nil
				}
				before := wires.reads.Load()
				answered := make(chan error, 1)
				go func() {
					_, err := c.CallTool(t.Context(), call)
					answered <- err
				}()
				r := <-n.asked
				begun := time.Now()
				// A client with a session also has a stream of notifications. The server sends signs
				// of life in this stream too.
				signs := int64(5)
				if w.version == earlier {
					signs = 12
				}
				require.Eventually(t, func() bool {
					return time.Since(begun) > idle+every && wires.reads.Load() >= before+signs
				}, 3*time.Minute, 10*time.Millisecond, "signs go on for longer than the client's waitAtMost")
				_, err := n.Client.Withdraw(t.Context(), r.SessionID, r.PendingID, "enough")
				require.NoError(t, err)
				require.NoError(t, <-answered, "the client was still there")
				if withToken {
					require.GreaterOrEqual(t, len(heard.more), 4)
					heard.mu.Lock()
					defer heard.mu.Unlock()
					for i, p := range heard.seen {
						assert.Equal(t, "p-approve", p.ProgressToken)
						assert.Equal(t, float64(i+1), p.Progress)
					}
				} else {
					assert.Empty(t, heard.more, "nobody asked for progress")
				}
			})
		}
	}
	t.Run("without progress", func(t *testing.T) {
		t.Parallel()
		n := watch(n.Client)
		wires := &wires{idle: idle}
		s := serve(t, n, mcp.Options{SignOfLife: time.Hour})
		c := reachHTTP(t, web(t, s).URL, later, bearer{next: wires.transport()}, nil)
		_, err := c.CallTool(t.Context(), callOf("approve", use("Deploy", `{}`, "")))
		require.Error(t, err, "the client gives up")
		<-n.withdrawn
	})
}

// Over standard input and output, the server sends the first sign of life at once, and none after it
// has answered.
func TestProgressOverStdio(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	n := fake(func(_ context.Context, r schemas.Request) (schemas.Decision, error) {
		<-hold
		return schemas.Decision{SessionID: r.SessionID, PendingID: r.PendingID, Outcome: schemas.Allowed}, nil
	})
	for _, w := range ways()[:2] {
		heard := &progress{}
		c := reach(t, serve(t, n, mcp.Options{SignOfLife: time.Hour}), w, heard.options())
		go func() {
			<-heard.more
			hold <- struct{}{}
		}()
		got, _ := calls(t, c, "approve", use("Bash", `{}`, ""))
		assert.Contains(t, got, `"allow"`)
		assert.Len(t, heard.seen, 1)
	}
}

// When the server stops, it withdraws the request of every call and answers the call with a denial.
func TestStoppingAnswersAndWithdraws(t *testing.T) {
	t.Parallel()
	client := nodtest.Start(t, silent)
	everyWay(t, func(t *testing.T, w way) {
		n := watch(client)
		s := serve(t, n, mcp.Options{})
		c := reach(t, s, w, nil)
		answered := make(chan string, 1)
		go func() {
			answered <- answerOf(t.Context(), c)
		}()
		<-n.asked
		s.Stop()
		assert.Equal(t, `{"behavior":"deny","message":"Not allowed, because nod could not get a decision: nod mcp was stopped"}`, <-answered)
		assert.Equal(t, "nod mcp was stopped", (<-n.withdrawn).Reason)
	})
}

// answerOf calls the tool approve. It returns the text of the result, or of the error.
func answerOf(ctx context.Context, c *sdk.ClientSession) string {
	result, err := c.CallTool(ctx, callOf("approve", use("Deploy", `{}`, "")))
	if err != nil {
		return err.Error()
	}
	return result.Content[0].(*sdk.TextContent).Text
}

// When the context of Serve ends, Serve answers all calls, withdraws their requests, and returns.
func TestServeEndsWhenItIsStopped(t *testing.T) {
	t.Parallel()
	n := watch(nodtest.Start(t, silent))
	for _, version := range []string{earlier, later} {
		s := mcp.New(n, mcp.Options{})
		l, err := mcp.Listen(t.Context(), "127.0.0.1:0", nil)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, l, mcp.HTTPOptions{Token: token}) }()
		c := reachHTTP(t, "http://"+l.Addr().String(), version, bearer{next: transport()}, nil)
		answered := make(chan string, 1)
		go func() {
			answered <- answerOf(t.Context(), c)
		}()
		<-n.asked
		stop()
		require.NoError(t, <-served)
		assert.Contains(t, <-answered, `"deny"`)
		<-n.withdrawn
	}
}

func TestInvalidInputEndsTheServer(t *testing.T) {
	t.Parallel()
	for _, input := range []string{"hello\n", "{\"jsonrpc\":\"2.0\"}\n", "[]\n", "\x00\n", "{} {}\n"} {
		s := mcp.New(fake(nil), mcp.Options{})
		var out strings.Builder
		err := s.ServeStdio(t.Context(), ioReader{strings.NewReader(input)}, ioWriter{&out})
		s.Stop()
		require.Error(t, err, input)
		assert.NotContains(t, err.Error(), "\n")
		assert.Empty(t, out.String())
	}
}

type ioReader struct{ *strings.Reader }

func (ioReader) Close() error { return nil }

type ioWriter struct{ *strings.Builder }

func (ioWriter) Close() error { return nil }
