// Package web is the inbox in a browser. It contains a live page of the pending requests, and the
// WebSocket gateway that the page uses. Other front ends may use the gateway too; shapes.go defines
// its messages.
//
// A user who has opened a login link has the identity {"web", user}. The settings map this identity to
// an approver. A user who is no approver sees nothing. The address of a caller grants no access, not
// even a loopback address: the inbox refuses HTTP requests for another host or from another origin,
// and gives access to nod only with a session.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/internal/callerlimit"
	"github.com/nodbus/nod/internal/loopback"
	"github.com/nodbus/nod/schemas"
)

// Name is the name of the connector.
const Name = schemas.ConnectorWeb

// Registry is the interface to nod through which the inbox finds approvers, and reads the freezes and
// the broker's clock.
type Registry interface {
	// Approver returns the approver with this user id. If the user is no approver, the error is
	// FORBIDDEN.
	Approver(ctx context.Context, userID string) (schemas.Approver, error)
	// Freezes lists the freezes in force.
	Freezes(ctx context.Context) ([]schemas.Freeze, error)
	// Now returns the broker's time, on which deadlines are based.
	Now(ctx context.Context) (time.Time, error)
	// NotifyAfter returns how long a push is delayed if a client has the session's input lock. The
	// user of that client may answer first.
	NotifyAfter(ctx context.Context) (time.Duration, error)
}

// LoginCodes stores which login links and sessions are no longer valid, for all gateways of one nod.
// After any error except NOT_FOUND, the gateway refuses access, because the link or session may be
// invalid.
type LoginCodes interface {
	// RedeemLoginCode returns the user of a login code that another channel, such as Telegram, has sent.
	// A code works once. If the code is unknown, too old or used, the error is NOT_FOUND.
	RedeemLoginCode(ctx context.Context, code string) (userID string, err error)
	// SpendLoginCode makes the link or session with this id invalid. nod stores this until the time at
	// which the link or session expires. The result first is true for exactly one caller.
	SpendLoginCode(ctx context.Context, id string, until time.Time) (first bool, err error)
	// LoginCodeSpent reports whether SpendLoginCode was called for this link or session.
	LoginCodeSpent(ctx context.Context, id string) (bool, error)
}

// Records is the interface to past decisions and standing answers.
type Records interface {
	// EachDecided calls f with one page after another of the decided requests that nod still stores. If
	// session is not empty, the pages contain only the requests of that session. An error of f ends the
	// list, and EachDecided returns it.
	EachDecided(ctx context.Context, session string, f func(page []schemas.Prompt) error) error
	// Logged returns a page of the older requests, from the log, newest first. If session is not empty,
	// the page has only requests of that session. If id is not empty, it has only requests whose ids
	// begin with id. The parameter after is the field Next of the previous page. A page may be empty
	// although its Next is set.
	Logged(ctx context.Context, session, id, after string) (schemas.Page, error)
	// Grants lists the standing answers of one session or, if session is empty, of all sessions. The
	// list includes some that have ended recently.
	Grants(ctx context.Context, session string) ([]schemas.StandingAnswer, error)
	// Revoke ends a standing answer in the name of an approver. If this approver must not end it, the
	// error is FORBIDDEN.
	Revoke(ctx context.Context, g *schemas.StandingAnswer, userID string) error
}

// Options configure a Server.
type Options struct {
	// DataDir is the directory of the inbox's files. The function Link reads the inbox's address
	// there.
	DataDir string
	// KeyFile is the file with the key that signs logins. Gateways with the same public address share
	// it. Empty means a file in DataDir.
	KeyFile string
	httpserve.Listen
	Desk       people.Desk
	Registry   Registry
	LoginCodes LoginCodes
	Records    Records
	// Logins lets people log in at the issuer that the settings name. nil means that they cannot.
	Logins Logins
	// Check is the interval at which the gateway sends the time to each client, and checks again that
	// the client's user may answer. 0 means 15 s.
	Check time.Duration
	// Recheck is the age of a login at which a use of the login makes the gateway ask the issuer again; 0
	// means 30 s. LoginAge is the age at which a login no longer counts; 0 means schemas.MaxLoginAge, the
	// largest age that engines accept.
	Recheck, LoginAge time.Duration
	// Push is the HTTP client for browsers' push services. nil means a default client.
	Push *http.Client
	Log  *slog.Logger
}

// Server is a running inbox. The caller passes requests to it with the method Show.
type Server struct {
	opts   Options
	addr   httpserve.Address
	taken  string // the requested address, if its port was in use, so that the inbox listens on another port
	signer tokenSigner

	proxied                                   bool                // a proxy in front of the inbox terminates TLS
	sessionLimits, addressLimits, loginLimits *callerlimit.Limits // rate limits of HTTP requests; see allowRequest and login

	hub    *hub
	pushes *pusher
	logins *logins // nil if Options.Logins is nil
	clock  clock
	http   *http.Server
	done   chan struct{}
	end    context.CancelFunc
}

// open starts to listen. If the requested port of a loopback address is in use, it listens on a free
// port, and returns the requested address in taken.
func open(l httpserve.Listen) (listener net.Listener, a httpserve.Address, taken string, err error) {
	inbox := httpserve.Server{Name: "the web inbox", Flag: "--http", Default: "127.0.0.1:4280", PublicURL: "connectors.web.public_url in settings.json"}
	listener, a, err = l.Open(inbox)
	host, _, _ := net.SplitHostPort(l.Addr) // l.Open has already returned any error in l.Addr
	if errors.Is(err, syscall.EADDRINUSE) && loopback.Is(host) && l.PublicURL == "" {
		taken, l.Addr = l.Addr, net.JoinHostPort(host, "0")
		listener, a, err = l.Open(inbox)
	}
	return listener, a, taken, err
}

// Open starts an inbox, and returns when it listens. An error is one line of text.
func Open(o Options) (*Server, error) {
	signer, err := openSigner(o.DataDir, o.KeyFile)
	if err != nil {
		return nil, err
	}
	pushes, err := newPusher(&o, signer)
	if err != nil {
		return nil, err
	}
	listener, addr, taken, err := open(o.Listen)
	if err != nil {
		return nil, err
	}
	if err := signer.writeURL(addr.URL); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	o.Check = cmp.Or(o.Check, checkEvery)
	s := &Server{
		opts: o, addr: addr, taken: taken, signer: signer, hub: newHub(), pushes: pushes,
		done:          make(chan struct{}),
		proxied:       o.BehindProxy || addr.Secure && o.TLSCert == "",
		sessionLimits: callerlimit.New(requestsPerSecond, requestsAtOnce, maxCallers), addressLimits: callerlimit.New(requestsPerSecond, requestsAtOnce, maxCallers),
		loginLimits: callerlimit.New(loginsPerSecond, loginsAtOnce, maxCallers),
	}
	s.http = &http.Server{
		Handler: s.handler(), ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	if o.Logins != nil {
		s.logins = newLogins(o.Logins, signer.key, addr.URL, cmp.Or(o.Recheck, recheckAfter), cmp.Or(o.LoginAge, schemas.MaxLoginAge))
		s.logins.now = s.brokerTime
	}
	pushes.checkSession, pushes.url = s.checkSession, addr.URL
	ctx, cancel := context.WithCancel(context.Background())
	s.end = cancel
	s.hub.tasks.Go(func() { pushes.run(ctx) })
	go s.serve(listener)
	return s, nil
}

func (s *Server) serve(l net.Listener) {
	defer close(s.done)
	if err := s.opts.Listen.Serve(s.http, l); err != nil {
		s.opts.Log.Error("web: the inbox stopped listening", "error", err)
	}
}

// URL returns the address of the inbox for people.
func (s *Server) URL() string { return s.addr.URL }

// Taken returns the requested address if its port was in use, so that the inbox listens on another port.
// Otherwise it returns "".
func (s *Server) Taken() string { return s.taken }

// Link returns a login link for one user. The link works once, and only for the time LinkLasts.
func (s *Server) Link(userID string) string {
	return s.signer.loginLink(s.addr.URL, userID, time.Now())
}

// Link returns a login link to the inbox that was last started on a data directory. It signs the link
// with the key in keyFile or, if keyFile is empty, with the key in the data directory. The link works
// like a link from Server.Link.
func Link(dataDir, keyFile, userID string) (string, error) {
	signer, err := readSigner(dataDir, keyFile)
	if err != nil {
		return "", err
	}
	url, err := signer.readURL()
	if err != nil {
		return "", err
	}
	return signer.loginLink(url, userID, time.Now()), nil
}

// Stop disconnects every client and stops listening. If ctx ends first, it returns an error.
func (s *Server) Stop(ctx context.Context) error {
	s.hub.close()
	s.end()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("stop the web inbox: %w", errors.Join(err, s.http.Close()))
	}
	<-s.done
	return errors.Join(err, s.hub.wait(ctx))
}
