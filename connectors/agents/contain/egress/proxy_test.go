package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEndpoints(t *testing.T) {
	for in, want := range map[string]string{
		"Registry.NPMJS.org.:443": "registry.npmjs.org:443", "1.2.3.4:80": "1.2.3.4:80", "[::ffff:1.2.3.4]:80": "1.2.3.4:80", "[2606:4700::1]:443": "[2606:4700::1]:443",
		"x": "", "x:0": "", "x:65536": "", ":80": "", "a b:80": "", "x/y:80": "", "u@x:80": "", "x:80:90": "", "x\n:80": "", "*.x:80": "", "ü.example:80": "", "$(x):80": "",
	} {
		e, err := ParseEndpoint(in)
		if want == "" {
			assert.Error(t, err, in)
			continue
		}
		require.NoError(t, err, in)
		assert.Equal(t, want, e.String())
	}
}

func TestOnlyPublicAddressesAreReached(t *testing.T) {
	for _, a := range []string{
		"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255", "240.0.0.1", "198.18.0.1", "192.0.0.1",
		"::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:1::1", "::7f00:1", "fec0::1",
	} {
		assert.False(t, Public(netip.MustParseAddr(a)), a)
	}
	for _, a := range []string{"1.1.1.1", "104.16.0.1", "2606:4700::1", "::ffff:1.1.1.1"} {
		assert.True(t, Public(netip.MustParseAddr(a)), a)
	}
}

// start starts a proxy that resolves every name to this machine.
func start(t *testing.T, granted ...Endpoint) (*Proxy, string) {
	p := New(granted)
	p.AllowAddresses(func(netip.Addr) bool { return true })
	p.lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go p.Serve(l)
	t.Cleanup(p.Close)
	return p, l.Addr().String()
}

func portOf(t *testing.T, s *httptest.Server) uint16 {
	a, err := netip.ParseAddrPort(s.Listener.Addr().String())
	require.NoError(t, err)
	return a.Port()
}

func TestRequestsReachGrantedHostsAlone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %q", r.Host, r.URL, r.Header.Get("Proxy-Authorization"))
	}))
	defer server.Close()
	tls := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "tls") }))
	defer tls.Close()
	plain, secure := Endpoint{"granted.example", portOf(t, server)}, Endpoint{"example.com", portOf(t, tls)} // the certificate is for example.com
	p, at := start(t, plain, secure)
	client := tls.Client()
	transport := client.Transport.(*http.Transport)
	transport.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("http://user:pass@" + at) }
	get := func(to string) (int, string) {
		r, err := client.Get(to)
		if err != nil {
			return 0, err.Error()
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(body)
	}
	code, body := get("http://" + plain.String() + "/a?b")
	assert.Equal(t, 200, code)
	assert.Equal(t, plain.String()+` /a?b ""`, body)
	code, body = get("https://" + secure.String() + "/")
	assert.Equal(t, 200, code, body)
	assert.Equal(t, "tls", body)
	code, body = get("http://other.example/")
	assert.Equal(t, 403, code)
	assert.Contains(t, body, "@network:other.example:80")
	_, body = get(fmt.Sprintf("https://granted.example:%d/", secure.Port))
	assert.Contains(t, body, "Forbidden")
	_, _ = get("http://other.example/")
	refused := p.Refused()
	require.Len(t, refused, 2)
	assert.Equal(t, Refusal{Endpoint{"other.example", 80}, 2, ""}, refused[0])
}

func TestAGrantedNameWithAPrivateAddressIsRefused(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	e := Endpoint{"rebound.example", portOf(t, server)}
	p, at := start(t, e)
	p.AllowAddresses(Public)
	conn, err := net.Dial("tcp", at)
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", e)
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	assert.Equal(t, 403, r.StatusCode)
	require.Len(t, p.Refused(), 1)
	assert.Contains(t, p.Refused()[0].Reason, "127.0.0.1, which is not public")
}

// A client cannot reach a second host by the header Host, or by a second request on the same connection.
func TestOneRequestIsServedPerConnection(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "served ", r.Host) }))
	defer server.Close()
	e := Endpoint{"granted.example", portOf(t, server)}
	_, at := start(t, e)
	conn, err := net.Dial("tcp", at)
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: evil.example\r\n\r\nGET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", e)
	all, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(all), "served"), string(all))
	assert.Contains(t, string(all), "served "+e.String())
}

func TestSocks(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "served") }))
	defer server.Close()
	e := Endpoint{"granted.example", portOf(t, server)}
	p, at := start(t, e)
	ask := func(command byte, host string) (net.Conn, byte) {
		conn, err := net.Dial("tcp", at)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		_, err = conn.Write(append([]byte{5, 1, 0, 5, command, 0, 3, byte(len(host))}, append([]byte(host), byte(e.Port>>8), byte(e.Port))...))
		require.NoError(t, err)
		reply := make([]byte, 12)
		_, err = io.ReadFull(conn, reply)
		require.NoError(t, err)
		return conn, reply[3]
	}
	conn, code := ask(1, e.Host)
	require.Zero(t, code)
	_, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
	require.NoError(t, err)
	body, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Contains(t, string(body), "served")
	_, code = ask(1, "other.example")
	assert.EqualValues(t, socksNotAllowed, code)
	_, code = ask(2, e.Host) // BIND
	assert.EqualValues(t, socksNoCommand, code)
	require.Len(t, p.Refused(), 1)
}
