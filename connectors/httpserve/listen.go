// Package httpserve is how nod's HTTP servers are opened: where they may listen,
// under which names they answer, and the token that their callers show.
package httpserve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Listen says where a server is to be reached.
type Listen struct {
	// Addr is HOST:PORT.
	Addr string
	// PublicURL is how people and agents reach it where that is not Addr.
	PublicURL string
	// TLSCert and TLSKey are PEM files.
	TLSCert, TLSKey string
	// BehindProxy: something in front of it speaks TLS.
	BehindProxy bool
}

// Server is how errors call a server, and where its Listen comes from.
type Server struct {
	Name      string // "the web inbox"
	Flag      string // what names its Addr
	Default   string // an Addr to show
	PublicURL string // what names its PublicURL
}

// Address is where a server was opened.
type Address struct {
	URL    string // without a slash at its end
	Secure bool   // it is reached over TLS
	Port   int
	// Origins are those of the server's own pages.
	Origins []string

	hosts []string // those that it answers to
}

// Open listens, or says in one line why that would not be safe: in the clear on
// a network, or without a name that callers could be held to.
func (l Listen) Open(s Server) (net.Listener, Address, error) {
	host, _, err := net.SplitHostPort(l.Addr)
	if err != nil {
		return nil, Address{}, fmt.Errorf("%q is no address for %s: use HOST:PORT, such as %s", l.Addr, s.Name, s.Default)
	}
	public, err := l.check(s, host)
	if err != nil {
		return nil, Address{}, err
	}
	listener, err := net.Listen("tcp", l.Addr)
	if err != nil {
		return nil, Address{}, fmt.Errorf("open %s: %w: name another address with %s", s.Name, err, s.Flag)
	}
	return listener, l.address(public, listener.Addr().(*net.TCPAddr).Port, host), nil
}

func (l Listen) check(s Server, host string) (public *url.URL, err error) {
	if (l.TLSCert == "") != (l.TLSKey == "") {
		return nil, fmt.Errorf("%s needs both --http-cert and --http-key, or neither", s.Name)
	}
	if l.TLSCert != "" {
		if _, err := tls.LoadX509KeyPair(l.TLSCert, l.TLSKey); err != nil {
			return nil, fmt.Errorf("read --http-cert and --http-key: %w", err)
		}
	}
	if l.PublicURL != "" {
		if public, err = url.Parse(l.PublicURL); err != nil || public.Host == "" || strings.Trim(public.Path, "/") != "" {
			return nil, fmt.Errorf("%s is %q: use the address alone, such as https://nod.example.com", s.PublicURL, l.PublicURL)
		}
		if public.Scheme != "https" && !Loopback(public.Hostname()) {
			return nil, fmt.Errorf("%s is %q: it must begin with https://", s.PublicURL, l.PublicURL)
		}
	}
	switch {
	case Loopback(host):
		return public, nil
	case l.TLSCert == "" && !l.BehindProxy:
		return nil, fmt.Errorf("%s would listen on %s without TLS, for everybody on the network to read: give --http-cert and --http-key, or --behind-proxy where a proxy in front of it speaks TLS", s.Name, l.Addr)
	case public == nil:
		return nil, fmt.Errorf("%s on %s needs to know how it is reached: say %s", s.Name, l.Addr, s.PublicURL)
	}
	return public, nil
}

func (l Listen) address(public *url.URL, port int, host string) Address {
	a := Address{Port: port, Secure: l.TLSCert != ""}
	scheme := "http://"
	if l.TLSCert != "" {
		scheme = "https://"
	}
	if Loopback(host) {
		for _, name := range []string{host, "127.0.0.1", "localhost", "::1"} {
			at := net.JoinHostPort(name, strconv.Itoa(port))
			a.hosts, a.Origins = append(a.hosts, at), append(a.Origins, scheme+at)
		}
	}
	if public != nil {
		a.hosts, a.Origins = append(a.hosts, public.Host), append(a.Origins, public.Scheme+"://"+public.Host)
		a.URL, a.Secure = public.Scheme+"://"+public.Host, public.Scheme == "https"
		return a
	}
	a.URL = a.Origins[0]
	return a
}

// Serve answers at l, over TLS where that was asked for, until s is shut down.
func (l Listen) Serve(s *http.Server, listener net.Listener) error {
	var err error
	if l.TLSCert != "" {
		err = s.ServeTLS(listener, l.TLSCert, l.TLSKey)
	} else {
		err = s.Serve(listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Answers reports whether the server goes by this host: a page in a browser may
// have had any other name resolved to this machine.
func (a Address) Answers(host string) bool {
	return slices.ContainsFunc(a.hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// Loopback reports whether a host is this machine alone.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
