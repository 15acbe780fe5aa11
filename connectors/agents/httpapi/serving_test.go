package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/agents/httpapi"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/schemas"
)

func TestStoppingAnswersWaitingCallers(t *testing.T) {
	reached := make(chan struct{})
	r := fake(t, before(scriptedNod{await: func(ctx context.Context) (*schemas.Decision, error) {
		close(reached)
		<-ctx.Done()
		return nil, nil
	}}))
	waits := r.later("GET", "/api/v1/requests/S.1"+wait, "")
	<-reached
	ctx, cancel := context.WithTimeout(r.ctx, time.Minute)
	defer cancel()
	r.NoError(r.api.Stop(ctx))
	got := waits()
	r.Contains(r.refused(got, 503, "UNAVAILABLE"), "stopping")
	r.Equal("1", got.header.Get("Retry-After"))
	r.NoError(<-r.api.Done())
}

// The server refuses a request whose body does not arrive within BodyWithin. This limit does not apply
// to the wait for a decision.
func TestARequestWithASlowBodyIsRefused(t *testing.T) {
	const slow = 300 * time.Millisecond
	r := fake(t, func(o *httpapi.Options) {
		o.BodyWithin = slow
		o.Agents[0].Nod = scriptedNod{await: func(ctx context.Context) (*schemas.Decision, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(4 * slow):
				return &schemas.Decision{Type: schemas.TypeDecision, SessionID: "S", PendingID: "1", DecisionID: "d", Outcome: schemas.Denied,
					By: schemas.By{Kind: schemas.ByHuman}, Digest: schemas.AnyDigest, DecidedAt: time.Now()}, nil
			}
		}}
	})
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.api.URL(), "http://"))
	r.NoError(err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /api/v1/requests HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
		strings.TrimPrefix(r.api.URL(), "http://"), localToken)
	r.NoError(err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	r.NoError(err)
	body, err := io.ReadAll(resp.Body)
	r.NoError(err)
	r.NoError(document().check("POST", "/api/v1/requests", resp.StatusCode, resp.Header, body))
	r.refused(answer{resp.StatusCode, resp.Header, string(body)}, 408, "BAD_REQUEST")

	r.Equal(schemas.Denied, r.decision(r.does("GET", "/api/v1/requests/S.1"+wait, "")).Outcome)
}

func TestListenRefusesUnsafeAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		listen httpserve.Listen
		says   string
	}{
		"a network, in the clear": {httpserve.Listen{Addr: "0.0.0.0:0"}, "--behind-proxy"},
		"a proxy without a name":  {httpserve.Listen{Addr: "0.0.0.0:0", BehindProxy: true}, "--public-url"},
		"half of TLS":             {httpserve.Listen{Addr: "127.0.0.1:0", TLSCert: "x"}, "--http-key"},
		"no address":              {httpserve.Listen{Addr: "4282"}, "127.0.0.1:4282"},
	} {
		_, err := httpapi.Open(httpapi.Options{Listen: c.listen, Log: quiet()})
		require.ErrorContains(t, err, c.says, name)
		require.NotContains(t, err.Error(), "\n", name)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, err = httpapi.Open(httpapi.Options{Listen: httpserve.Listen{Addr: taken.Addr().String()}, Log: quiet()})
	require.ErrorContains(t, err, "--listen", "another port would not be the one that agents are told")
}

// If a request comes through a proxy on this machine, the server does not treat it as a request from
// this machine.
func TestProxiedCallerIsNotLocal(t *testing.T) {
	asked := make(chan schemas.Request, 1)
	r := fake(t, func(o *httpapi.Options) {
		o.BehindProxy, o.PublicURL, o.Host, o.User = true, "https://nod.example.com", "devbox", "ann"
		o.Agents[0].Nod = scriptedNod{submit: func(_ context.Context, r schemas.Request) (*schemas.Decision, schemas.Receipt, error) {
			asked <- r
			return nil, schemas.Receipt{}, schemas.Errorf(schemas.CodeUndeliverable, "nobody")
		}}
	})
	req, err := http.NewRequestWithContext(r.ctx, "POST", fmt.Sprintf("http://127.0.0.1:%d/api/v1/requests", r.api.Port()), strings.NewReader(deploy("S", "1")))
	r.NoError(err)
	req.Host = "nod.example.com"
	req.Header.Set("Authorization", "bearer "+localToken)
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	resp, err := r.calls.Do(req)
	r.NoError(err)
	r.NoError(resp.Body.Close())
	r.Equal(http.StatusServiceUnavailable, resp.StatusCode)
	got := <-asked
	r.Equal("elsewhere", got.Host)
	r.Empty(got.User)
}
