package web_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people/web"
	"github.com/nodbus/nod/internal/testports"
)

// proxied returns an inbox behind a TLS proxy, and an HTTP client that sends every request to
// this proxy, whatever host the URL names. If keepsHost is true, the proxy passes on the client's
// Host header.
func (r *rig) proxied(listen httpserve.Listen, keepsHost bool) (*web.Server, *http.Client) {
	port := strconv.Itoa(testports.Free(r.t, 1)[0])
	listen.Addr = net.JoinHostPort(listen.Addr, port)
	desk := connector.NewDesk(r.connect(roles.ConnectorID(web.Name)), web.Name)
	inbox, err := web.Open(web.Options{DataDir: r.t.TempDir(), Listen: listen, Desk: desk, Registry: desk, LoginCodes: desk, Records: desk, Log: quiet()})
	r.NoError(err)
	r.t.Cleanup(func() { r.NoError(inbox.Stop(context.Background())) })
	to := &url.URL{Scheme: "http", Host: net.JoinHostPort("127.0.0.1", port)}
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(to)
		if keepsHost {
			p.Out.Host = p.In.Host
		}
	}})
	r.t.Cleanup(proxy.Close)
	return inbox, &http.Client{Transport: &http.Transport{
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // these tests check host names, not certificates
			return dialer.DialContext(ctx, network, proxy.Listener.Addr().String())
		},
	}}
}

// The inbox works behind a proxy that forwards WebSockets and the Host header, as in docs/phone.md. It
// refuses requests for other hosts.
func TestBehindAProxy(t *testing.T) {
	t.Parallel()
	const public = "https://nod.example.com"
	here := httpserve.Listen{Addr: "127.0.0.1", PublicURL: public}
	everywhere := httpserve.Listen{Addr: "0.0.0.0", PublicURL: public, BehindProxy: true}
	for name, c := range map[string]struct {
		listen    httpserve.Listen
		keepsHost bool
		url       string
		status    int
	}{
		"on this machine":     {here, true, public, http.StatusNoContent},
		"on another":          {everywhere, true, public, http.StatusNoContent},
		"another name":        {here, true, "https://evil.example.com", http.StatusMisdirectedRequest},
		"a name of the proxy": {everywhere, false, public, http.StatusMisdirectedRequest},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t)
			inbox, client := r.proxied(c.listen, c.keepsHost)
			_, token, ok := strings.Cut(inbox.Link("ann"), public+"/#login=")
			r.True(ok, "a link is to the address that people use")
			req, err := http.NewRequestWithContext(r.ctx, http.MethodPost, c.url+"/login", strings.NewReader(`{"token":"`+token+`"}`))
			r.NoError(err)
			req.Header.Set("Origin", c.url)
			reply, err := client.Do(req)
			r.NoError(err)
			defer reply.Body.Close()
			r.Equal(c.status, reply.StatusCode)
			if c.status != http.StatusNoContent {
				return
			}
			cookie := reply.Cookies()[0]
			require.True(t, cookie.Secure)
			from := http.Header{"Origin": {public}, "Cookie": {cookie.Name + "=" + cookie.Value}}
			conn, _, err := websocket.Dial(r.ctx, strings.Replace(public, "https", "wss", 1)+"/ws", &websocket.DialOptions{HTTPHeader: from, HTTPClient: client})
			r.NoError(err)
			defer func() { _ = conn.CloseNow() }() // CloseNow fails if the connection is already closed
			s := &socket{r, conn}
			s.asksFor("inbox.subscribe", nil)
			r.Equal("response", s.next().Type)
		})
	}
}
