package web

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
)

// Listen says where an inbox is to be reached.
type Listen struct {
	// Addr is HOST:PORT. On this machine's own addresses another free port is
	// used where it is taken.
	Addr string
	// PublicURL is how people reach it where that is not Addr.
	PublicURL string
	// TLSCert and TLSKey are PEM files.
	TLSCert, TLSKey string
	// BehindProxy: something in front of it speaks TLS.
	BehindProxy bool
}

// address is where an inbox was opened.
type address struct {
	url     string   // without a slash at its end
	origins []string // those that may ask
	hosts   []string // those that it answers to
	secure  bool     // people reach it over TLS
	port    int
	taken   bool
}

// open listens, or says in one line why that would not be safe.
func (l Listen) open() (net.Listener, address, error) {
	host, _, err := net.SplitHostPort(l.Addr)
	if err != nil {
		return nil, address{}, fmt.Errorf("%q is no address for the web inbox: use HOST:PORT, such as 127.0.0.1:4280", l.Addr)
	}
	public, err := l.check(host)
	if err != nil {
		return nil, address{}, err
	}
	listener, err := net.Listen("tcp", l.Addr)
	taken := errors.Is(err, syscall.EADDRINUSE) && loopback(host) && public == nil
	if taken {
		listener, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, address{}, fmt.Errorf("open the web inbox: %w: name another address with --http", err)
	}
	a := l.address(public, listener.Addr().(*net.TCPAddr).Port, host)
	a.taken = taken
	return listener, a, nil
}

// check refuses what would send a session over a network in the clear, and
// names that nobody could be held to.
func (l Listen) check(host string) (public *url.URL, err error) {
	if (l.TLSCert == "") != (l.TLSKey == "") {
		return nil, errors.New("the web inbox needs both --http-cert and --http-key, or neither")
	}
	if l.TLSCert != "" {
		if _, err := tls.LoadX509KeyPair(l.TLSCert, l.TLSKey); err != nil {
			return nil, fmt.Errorf("read --http-cert and --http-key: %w", err)
		}
	}
	if l.PublicURL != "" {
		if public, err = url.Parse(l.PublicURL); err != nil || public.Host == "" || strings.Trim(public.Path, "/") != "" {
			return nil, fmt.Errorf("connectors.web.public_url is %q: use the address alone, such as https://nod.example.com", l.PublicURL)
		}
		if public.Scheme != "https" && !loopback(public.Hostname()) {
			return nil, fmt.Errorf("connectors.web.public_url is %q: it must begin with https://", l.PublicURL)
		}
	}
	switch {
	case loopback(host):
		return public, nil
	case l.TLSCert == "" && !l.BehindProxy:
		return nil, fmt.Errorf("the web inbox would listen on %s without TLS, for everybody on the network to read: give --http-cert and --http-key, or --behind-proxy where a proxy in front of it speaks TLS", l.Addr)
	case public == nil:
		return nil, fmt.Errorf("the web inbox on %s needs to know how people reach it: say connectors.web.public_url in settings.json", l.Addr)
	}
	return public, nil
}

func (l Listen) address(public *url.URL, port int, host string) address {
	a := address{port: port, secure: l.TLSCert != ""}
	scheme := "http://"
	if l.TLSCert != "" {
		scheme = "https://"
	}
	if loopback(host) {
		for _, name := range []string{host, "127.0.0.1", "localhost", "::1"} {
			at := net.JoinHostPort(name, strconv.Itoa(port))
			a.hosts, a.origins = append(a.hosts, at), append(a.origins, scheme+at)
		}
	}
	if public != nil {
		a.hosts, a.origins = append(a.hosts, public.Host), append(a.origins, public.Scheme+"://"+public.Host)
		a.url, a.secure = public.Scheme+"://"+public.Host, public.Scheme == "https"
		return a
	}
	a.url = a.origins[0]
	return a
}

// loopback reports whether a host is this machine alone.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
