// Package httpserve contains code that nod's HTTP servers share. It opens a server's address only if
// that is safe, checks the host names in requests, and creates and reads tokens.
package httpserve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/nodbus/nod/internal/loopback"
)

// Listen describes the address of a server and the protection of its connections.
type Listen struct {
	// Addr is the address to listen on, as HOST:PORT.
	Addr string
	// PublicURL is the URL by which people and agents reach the server, such as
	// https://nod.example.com. It is empty if they reach the server by Addr.
	PublicURL string
	// TLSCert and TLSKey are the names of PEM files; both are empty without TLS.
	TLSCert, TLSKey string
	// BehindProxy means that a proxy in front of the server speaks TLS.
	BehindProxy bool
}

// Server contains the names of a server, of its flags and of its settings, for error messages.
type Server struct {
	Name      string // such as "the web inbox"
	Flag      string // the flag that sets Listen.Addr
	Default   string // an example for Listen.Addr
	PublicURL string // the flag or setting that sets Listen.PublicURL
}

// Address describes how callers reach a server that Listen.Open has opened.
type Address struct {
	URL    string // the server's URL, without a slash at its end
	Secure bool   // whether callers reach the server over TLS
	Port   int
	// Origins are the values of the Origin header that the server's own pages send.
	Origins []string

	hosts []string // the values of the Host header that the server accepts
}

// Open starts to listen. It returns an error if other machines could reach the server without TLS. For
// a server that other machines can reach, PublicURL must be set, because the server checks the host
// names in requests. Each error is one line that names the setting to change.
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
		if public.Scheme != "https" && !loopback.Is(public.Hostname()) {
			return nil, fmt.Errorf("%s is %q: it must begin with https://", s.PublicURL, l.PublicURL)
		}
	}
	switch {
	case loopback.Is(host):
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
	if loopback.Is(host) {
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

// Serve handles requests on listener with s, over TLS if l.TLSCert is set. It returns nil when s has
// been shut down.
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

// Answers reports whether a request's Host header names this server. The server must refuse a request with
// another name, because a web page may have made its own host name resolve to this machine (DNS rebinding).
func (a Address) Answers(host string) bool {
	return slices.ContainsFunc(a.hosts, func(h string) bool { return strings.EqualFold(h, host) })
}
