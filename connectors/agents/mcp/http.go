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

	"github.com/nodbus/nod/internal/loopback"
)

// HTTPOptions determine which clients may connect over HTTP.
type HTTPOptions struct {
	// Token is the bearer token that every request must carry.
	Token string
	// Hosts are names of this machine, without ports, by which clients may reach the server. Clients
	// may always use localhost and the loopback addresses.
	Hosts []string
}

const (
	// Path is the HTTP path at which the server offers its tools.
	Path = "/mcp"

	// SessionHeader is the HTTP header with the id of a request's nod session. ProjectHeader is the
	// HTTP header with the full path of the client's project.
	SessionHeader = "Nod-Session"
	ProjectHeader = "Nod-Project"

	// statelessSince is the first version of the protocol in which client and server have no session.
	statelessSince = "2026-07-28"

	headerWithin  = 10 * time.Second
	idleFor       = 24 * time.Hour // a session between client and server ends after this time without a request
	answersWithin = 5 * time.Second
)

// Listen returns a TCP listener at addr, for Serve. It returns an error if other machines can reach
// addr but hosts is empty.
func Listen(ctx context.Context, addr string, hosts []string) (net.Listener, error) {
	var open net.ListenConfig
	l, err := open.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w: give a free address, such as 127.0.0.1:4281", addr, err)
	}
	if at, ok := l.Addr().(*net.TCPAddr); len(hosts) == 0 && !(ok && at.IP.IsLoopback()) {
		_ = l.Close() // the error has no effect, because the listener has accepted no connection
		return nil, fmt.Errorf("%s can be reached from other machines: listen at 127.0.0.1, or allow the name that they use for this machine with --allow-host", addr)
	}
	return l, nil
}

// Serve serves clients on l until ctx ends, and then stops the server. It returns nil when every call
// has an answer or was withdrawn. It returns an error if o is invalid, or if l fails.
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
	if server.Shutdown(last) != nil { // this fails if a client does not read its response in time
		_ = server.Close()
	}
	return nil
}

// Handler returns an HTTP handler that serves all versions of the protocol at Path. The handler refuses
// requests that may come from a web page, and requests without the token. The error means that o.Token
// is not one word of at least 16 characters.
func (s *Server) Handler(o HTTPOptions) (http.Handler, error) {
	if len(o.Token) < 16 || len(strings.Fields(o.Token)) != 1 {
		return nil, errors.New("the HTTP token must be one word of at least 16 characters: delete its file for a new one")
	}
	serve := func(stateless bool) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
			Stateless: stateless, SessionTimeout: idleFor,
			DisableLocalhostProtection: true, // authorize checks the host name, and is stricter
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

// authorize returns a handler that passes a request to the handler next only if the request has the
// token and does not come from a web page. A request of a web page has a header that says so, or names
// a host that is not in o.Hosts.
func authorize(o HTTPOptions, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(o.Token))
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		got := sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(got[:], want[:]) == 0 {
			return nil, fmt.Errorf("%w: the token is not that of this server", auth.ErrInvalidToken)
		}
		return &auth.TokenInfo{}, nil
	}
	next = auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !knownHost(r.Host, o.Hosts):
			http.Error(w, "this server is not named "+r.Host, http.StatusForbidden)
		case len(r.Header.Values("Origin")) > 0 || cmp.Or(r.Header.Get("Sec-Fetch-Site"), "none") != "none":
			http.Error(w, "web pages may not use this server", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func knownHost(host string, also []string) bool {
	name := nameOf(host)
	return loopback.Is(name) || slices.ContainsFunc(also, func(h string) bool { return strings.EqualFold(h, name) })
}

func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(host, "[]"))
}

// clientHost returns a name of the client's machine for people. For this machine, it is s.opts.Host.
// For another machine, it is the address. Behind a proxy on this machine, it is "elsewhere", because
// the address is unknown.
func (s *Server) clientHost(r *http.Request) string {
	switch at := nameOf(r.RemoteAddr); {
	case !loopback.Is(at):
		return cmp.Or(at, "elsewhere")
	case !loopback.Is(nameOf(r.Host)):
		return "elsewhere"
	}
	return s.opts.Host
}

// receive serves one HTTP request by the handler next. It registers an exchange for the request, so
// that the handlers of tool calls can find the exchange.
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
	r.Header.Set(exchangeHeader, s.exchanges.add(v)) // Set also removes a value that the client has sent
	defer s.exchanges.remove(r.Header.Get(exchangeHeader))
	next.ServeHTTP(v, r)
}
