// Package httpserve opens nod's HTTP servers safely: it checks the address to listen on,
// the host names in requests, and the token of each caller.
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

// Listen is the address of a server and the protection of its connections.
type Listen struct {
	// Addr is HOST:PORT.
	Addr string
	// PublicURL is the address by which people and agents reach the server, if it is not
	// Addr.
	PublicURL string
	// TLSCert and TLSKey are PEM files.
	TLSCert, TLSKey string
	// BehindProxy means that a proxy in front of the server speaks TLS.
	BehindProxy bool
}

// Server holds the names of a server and of its settings, for errors.
type Server struct {
	Name      string // "the web inbox"
	Flag      string // the flag for Addr
	Default   string // an example of Addr
	PublicURL string // the setting for PublicURL
}

// Address is the address of an open server.
type Address struct {
	URL    string // without a slash at its end
	Secure bool   // callers reach it over TLS
	Port   int
	// Origins are the origins of the server's own pages.
	Origins []string

	hosts []string // the accepted Host values
}

// Open starts to listen. It returns a one-line error if the server would serve other
// machines without TLS, or without a public name to check requests against.
func (l Listen) Open(s Server) (net.Listener, Address, error) {
	host, _, err := net.SplitHostPort(l.Addr)
	if err != nil {
		return nil, Address{}, fmt.Errorf("%q is not an address for %s: use HOST:PORT, such as %s", l.Addr, s.Name, s.Default)
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
		return nil, fmt.Errorf("%s would listen on %s without TLS, and everybody on the network could read its traffic: give --http-cert and --http-key, or --behind-proxy if a proxy in front of it speaks TLS", s.Name, l.Addr)
	case public == nil:
		return nil, fmt.Errorf("%s on %s needs its public address: set %s", s.Name, l.Addr, s.PublicURL)
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

// Serve handles requests on listener until s is shut down, over TLS if there is a
// certificate.
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

// Answers reports whether host is one of the server's names. A foreign page may have let
// another name resolve to this machine (DNS rebinding).
func (a Address) Answers(host string) bool {
	return slices.ContainsFunc(a.hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// Loopback reports whether host is localhost or a loopback address.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
