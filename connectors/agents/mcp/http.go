package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// HTTPOptions say who may come over HTTP.
type HTTPOptions struct {
	// Token is what every request must carry as its bearer token.
	Token string
	// Hosts are names besides the loopback ones under which clients may reach the
	// server, without ports.
	Hosts []string
}

const (
	// Path is where the tools are served over HTTP.
	Path = "/mcp"

	// SessionHeader names the session of nod's that a request is made in, and
	// ProjectHeader the full path of the project that its client works in.
	SessionHeader = "Nod-Session"
	ProjectHeader = "Nod-Project"

	// statelessSince is the first version of the protocol without sessions.
	statelessSince = "2026-07-28"

	headerWithin  = 10 * time.Second
	idleFor       = 24 * time.Hour // then a client's session must begin anew
	answersWithin = 5 * time.Second
)

// Listen opens the address to serve HTTP at. Beyond this machine it does so
// only where names are given for others to reach it by.
func Listen(ctx context.Context, addr string, hosts []string) (net.Listener, error) {
	var open net.ListenConfig
	l, err := open.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w: name a free address, such as 127.0.0.1:4281", addr, err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); len(hosts) == 0 && !(ok && at.IP.IsLoopback()) {
		_ = l.Close() // nobody was accepted
		return nil, fmt.Errorf("%s can be reached from other machines: listen at 127.0.0.1, or name this machine as they do with --allow-host", addr)
	}
	return l, nil
}

// Serve serves clients at l until ctx ends; then every call has been
// answered or withdrawn.
func (s *Server) Serve(ctx context.Context, l net.Listener, o HTTPOptions) error {
	handler, err := s.Handler(o)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerWithin}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		s.Stop()
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}
	s.Stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), answersWithin)
	defer cancel()
	if server.Shutdown(last) != nil { // somebody does not read
		_ = server.Close()
	}
	return nil
}

// Handler serves both generations of the protocol at Path: clients of the
// earlier one keep a session with the server. It refuses what a web page could
// send, and whoever lacks the token.
func (s *Server) Handler(o HTTPOptions) (http.Handler, error) {
	if len(o.Token) < 16 || len(strings.Fields(o.Token)) != 1 {
		return nil, errors.New("the token for HTTP is not one word of at least 16 characters: remove its file for a new one")
	}
	serve := func(stateless bool) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
			Stateless: stateless, SessionTimeout: idleFor,
			DisableLocalhostProtection: true, // guard does more
		})
	}
	sessions, stateless := serve(false), serve(true)
	mux := http.NewServeMux()
	mux.HandleFunc(Path, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= statelessSince {
			s.receive(stateless, w, r)
		} else {
			s.receive(sessions, w, r)
		}
	})
	return authorize(o, mux), nil
}

// guard lets through what comes from a program with the token. A page in a
// browser says its origin with whatever it posts, and comes under a name of its
// own where it has had that resolved to this machine.
func authorize(o HTTPOptions, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(o.Token))
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		got := sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(got[:], want[:]) == 0 {
			return nil, fmt.Errorf("%w: it is not this server's", auth.ErrInvalidToken)
		}
		return &auth.TokenInfo{}, nil
	}
	next = auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !knownHost(r.Host, o.Hosts):
			http.Error(w, "this server is not called "+r.Host, http.StatusForbidden)
		case len(r.Header.Values("Origin")) > 0 || cmp.Or(r.Header.Get("Sec-Fetch-Site"), "none") != "none":
			http.Error(w, "a web page may not ask here", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func knownHost(host string, also []string) bool {
	name := nameOf(host)
	return thisMachine(name) || slices.ContainsFunc(also, func(h string) bool { return strings.EqualFold(h, name) })
}

// nameOf is a host without its port.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// thisMachine reports whether a name leads here from this machine alone.
func thisMachine(name string) bool {
	return name == "localhost" || net.ParseIP(name).IsLoopback()
}

// clientHost is where a client runs: here, or at an address; where a proxy
// brings it, nobody knows.
func (s *Server) clientHost(r *http.Request) string {
	switch at := nameOf(r.RemoteAddr); {
	case !thisMachine(at):
		return cmp.Or(at, "elsewhere")
	case !thisMachine(nameOf(r.Host)):
		return "elsewhere"
	}
	return s.opts.Host
}

// receive serves one HTTP request as a visit, which its tool calls find.
func (s *Server) receive(next http.Handler, w http.ResponseWriter, r *http.Request) {
	ctx, leave := context.WithCancel(r.Context())
	defer leave()
	v := newExchange(ctx, w)
	v.calls = r.Method == http.MethodPost
	v.session, v.project, v.host = r.Header.Get(SessionHeader), cmp.Or(r.Header.Get(ProjectHeader), s.opts.Project), s.clientHost(r)
	if !v.calls {
		defer context.AfterFunc(s.news, leave)()
		defer every(s.opts.SignOfLife, func(int) { v.comment() })()
	}
	r = r.WithContext(ctx)
	r.Header.Set(exchangeHeader, s.exchanges.add(v)) // whatever the client wrote there
	defer s.exchanges.remove(r.Header.Get(exchangeHeader))
	next.ServeHTTP(v, r)
}
