package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Refusal is an endpoint to which the proxy did not connect.
type Refusal struct {
	Endpoint
	Times  int
	Reason string // the reason for refusing a granted endpoint; "" if the endpoint is not granted
}

// Proxy connects its clients to granted endpoints only.
type Proxy struct {
	granted []Endpoint
	public  func(netip.Addr) bool
	lookup  func(ctx context.Context, host string) ([]netip.Addr, error)

	mu      sync.Mutex
	refused []Refusal
	names   []string // the names that clients looked up without the proxy
	open    map[io.Closer]bool
	closed  bool
}

// maxConnections is the largest number of connections that the proxy has at the same time.
const maxConnections = 512

// dialTimeout is the time limit for a connection to an endpoint, and headTimeout the time limit
// for a client to send its request.
const (
	dialTimeout = 20 * time.Second
	headTimeout = 30 * time.Second
)

// New returns a proxy that connects to the granted endpoints.
func New(granted []Endpoint) *Proxy {
	return &Proxy{
		granted: granted, public: Public, open: map[io.Closer]bool{},
		lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
	}
}

// AllowAddresses replaces Public by the function test, which reports whether the proxy may connect
// to an address. Call AllowAddresses before Serve.
func (p *Proxy) AllowAddresses(test func(netip.Addr) bool) { p.public = test }

// Serve accepts clients on l until Close.
func (p *Proxy) Serve(l net.Listener) {
	if !p.keep(l) {
		l.Close()
		return
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if !p.keep(conn) {
			conn.Close()
			continue
		}
		go func() {
			defer p.drop(conn)
			p.serve(conn)
		}()
	}
}

// keep registers c, so that Close also closes c. It returns false if the proxy is closed or has too
// many connections.
func (p *Proxy) keep(c io.Closer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.open) >= maxConnections {
		return false
	}
	p.open[c] = true
	return true
}

func (p *Proxy) drop(c io.Closer) {
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	c.Close()
}

// Close closes all listeners and connections of the proxy.
func (p *Proxy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.open {
		c.Close()
	}
}

// Refused returns the endpoints to which the proxy did not connect, in the order of the first
// attempts.
func (p *Proxy) Refused() []Refusal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// maxRefusals is the largest number of endpoints that Refused returns, because a command can try
// many.
const maxRefusals = 100

func (p *Proxy) refuse(e Endpoint, reason string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.refused, func(r Refusal) bool { return r.Endpoint == e && r.Reason == reason })
	if i >= 0 {
		p.refused[i].Times++
	} else if len(p.refused) < maxRefusals {
		p.refused = append(p.refused, Refusal{e, 1, reason})
	}
	if reason != "" {
		return &refusedError{fmt.Sprintf("nod: %s %s", e, reason)}
	}
	return &refusedError{fmt.Sprintf("nod: %s is not granted; the permission is @network:%[1]s", e)}
}

type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// dial connects to an endpoint. It looks up the name only once, checks the addresses, and connects to
// one of them. A second lookup could return addresses that nobody checked.
func (p *Proxy) dial(hostPort string) (net.Conn, error) {
	e, err := ParseEndpoint(hostPort)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(p.granted, e) {
		return nil, p.refuse(e, "")
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	addrs := []netip.Addr{}
	if a, err := netip.ParseAddr(e.Host); err == nil {
		addrs = append(addrs, a)
	} else if addrs, err = p.lookup(ctx, e.Host); err != nil {
		return nil, err
	}
	last := error(nil)
	for _, a := range addrs {
		if !p.public(a) {
			last = p.refuse(e, "has the address "+a.String()+", which is not public")
			continue
		}
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(a.Unmap(), e.Port).String())
		if err == nil {
			return conn, nil
		}
		last = err
	}
	if last == nil {
		last = fmt.Errorf("%s has no address", e.Host)
	}
	return nil, last
}

func (p *Proxy) serve(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(headTimeout))
	in := bufio.NewReader(conn)
	first, err := in.Peek(1)
	if err != nil {
		return
	}
	if first[0] == socksVersion {
		p.serveSocks(conn, in)
		return
	}
	p.serveHTTP(conn, in)
}

// serveHTTP serves one request and then closes the connection. A client must open a new connection
// for its next request, so that the proxy checks every request.
func (p *Proxy) serveHTTP(conn net.Conn, in *bufio.Reader) {
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	to := r.Host
	if r.Method != http.MethodConnect {
		if r.URL.Scheme != "http" || r.URL.Host == "" {
			answer(conn, http.StatusBadRequest, "nod: this is a proxy: ask for a full http:// address")
			return
		}
		if to = r.URL.Host; r.URL.Port() == "" {
			to = net.JoinHostPort(r.URL.Hostname(), "80")
		}
	}
	out, err := p.dial(to)
	if err != nil {
		status := http.StatusBadGateway
		var refused *refusedError
		if errors.As(err, &refused) {
			status = http.StatusForbidden
		}
		answer(conn, status, err.Error())
		return
	}
	if !p.keep(out) {
		out.Close()
		return
	}
	defer p.drop(out)
	_ = conn.SetReadDeadline(time.Time{})
	if r.Method == http.MethodConnect {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
		join(conn, in, out)
		return
	}
	for _, name := range []string{"Proxy-Connection", "Proxy-Authorization", "Connection", "Upgrade", "Keep-Alive", "Te"} {
		r.Header.Del(name)
	}
	r.Close, r.Host = true, r.URL.Host
	if r.Write(out) == nil {
		_, _ = io.Copy(conn, out)
	}
}

func answer(conn net.Conn, status int, text string) {
	text = strings.ReplaceAll(text, "\n", " ") + "\n"
	_, _ = io.WriteString(conn, "HTTP/1.1 "+strconv.Itoa(status)+" "+http.StatusText(status)+
		"\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: "+strconv.Itoa(len(text))+"\r\n\r\n"+text)
}

// join copies data in both directions until both connections are closed.
func join(client net.Conn, in io.Reader, server net.Conn) {
	var wait sync.WaitGroup
	wait.Go(func() {
		_, _ = io.Copy(server, in)
		closeWrite(server)
	})
	_, _ = io.Copy(client, server)
	closeWrite(client)
	wait.Wait()
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
