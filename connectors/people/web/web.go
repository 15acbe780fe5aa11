// Package web is the inbox in a browser: a page that shows what every agent
// wants, live, and the WebSocket gateway behind it that other front ends may
// speak. What each message looks like is in shapes.go.
//
// Whoever has opened a login link is the identity {"web", user}; the approvers
// in the settings say who that is, and without one of them nothing is shown.
// Listening here opens nothing: other hosts, other origins and requests
// without a session are turned away, whatever the address.
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
	"github.com/nodbus/nod/schemas"
)

// Name is the connector's.
const Name = schemas.ConnectorWeb

// Registry says who may look, and what time it is where deadlines are kept.
type Registry interface {
	// Approver is whom a login belongs to; FORBIDDEN where that is nobody.
	Approver(ctx context.Context, userID string) (schemas.Approver, error)
	// Freezes are the brakes that are on.
	Freezes(ctx context.Context) ([]schemas.Freeze, error)
	// Now is the broker's time.
	Now(ctx context.Context) (time.Time, error)
	// NotifyAfter is how long phones are not told where somebody is there.
	NotifyAfter(ctx context.Context) (time.Duration, error)
}

// LoginCodes says which login links and sessions count still, for all gateways of one
// nod alike. An error is no yes.
type LoginCodes interface {
	// RedeemLoginCode is the user whom a pass from another channel lets in, once; NOT_FOUND
	// where it is none.
	RedeemLoginCode(ctx context.Context, code string) (userID string, err error)
	// SpendLoginCode makes a link or a session count no more until it would end by itself.
	// Of all who spend it, one is told that it is the first.
	SpendLoginCode(ctx context.Context, id string, until time.Time) (first bool, err error)
	// LoginCodeSpent reports whether it was spent.
	LoginCodeSpent(ctx context.Context, id string) (bool, error)
}

// Ledger is what was decided, and what was allowed beyond one call.
type Ledger interface {
	// History lists what was decided, of one session where that is named, as
	// far as it is kept.
	History(ctx context.Context, session string) ([]schemas.Prompt, error)
	// Grants lists the standing answers, ended ones too for a while; those of one
	// session where that is named.
	Grants(ctx context.Context, session string) ([]schemas.StandingAnswer, error)
	// Revoke ends a standing answer for an approver; FORBIDDEN for anybody else.
	Revoke(ctx context.Context, g *schemas.StandingAnswer, userID string) error
}

// Options say where to listen and what to work with.
type Options struct {
	// DataDir tells where the inbox is.
	DataDir string
	// KeyFile is what logins are signed with: one for all gateways that are reached
	// at one address. Where it is not named DataDir holds it.
	KeyFile string
	httpserve.Listen
	Desk       people.Desk
	Registry   Registry
	LoginCodes LoginCodes
	Ledger     Ledger
	// Check is how often clients are told the time and are looked at anew: may
	// they still answer? 0 is every 15 s.
	Check time.Duration
	// Push reaches browsers' push services; nil is a client of its own.
	Push *http.Client
	Log  *slog.Logger
}

// Server is a running inbox. It shows what Show is given.
type Server struct {
	opts  Options
	addr  httpserve.Address
	taken string // the address that was asked for, where another port is used
	seals seals

	proxied                      bool    // something in front of it speaks TLS
	sessions, strangers, guesses *limits // of plain requests; see guard

	board  *board
	pushes *pusher
	clock  clock
	http   *http.Server
	done   chan struct{}
	end    context.CancelFunc
}

// open listens. On this machine's own addresses another free port is used where
// the one that was asked for is taken.
func open(l httpserve.Listen) (listener net.Listener, a httpserve.Address, taken string, err error) {
	inbox := httpserve.Server{Name: "the web inbox", Flag: "--http", Default: "127.0.0.1:4280", PublicURL: "connectors.web.public_url in settings.json"}
	listener, a, err = l.Open(inbox)
	host, _, _ := net.SplitHostPort(l.Addr) // Open has said what is wrong with it
	if errors.Is(err, syscall.EADDRINUSE) && httpserve.Loopback(host) && l.PublicURL == "" {
		taken, l.Addr = l.Addr, net.JoinHostPort(host, "0")
		listener, a, err = l.Open(inbox)
	}
	return listener, a, taken, err
}

// Open starts to listen, and returns when it does. What keeps it from that is
// one line.
func Open(o Options) (*Server, error) {
	seals, err := openSeals(o.DataDir, o.KeyFile)
	if err != nil {
		return nil, err
	}
	pushes, err := newPusher(&o, seals)
	if err != nil {
		return nil, err
	}
	listener, addr, taken, err := open(o.Listen)
	if err != nil {
		return nil, err
	}
	if err := seals.tell(addr.URL); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	o.Check = cmp.Or(o.Check, checkEvery)
	s := &Server{
		opts: o, addr: addr, taken: taken, seals: seals, board: newBoard(), pushes: pushes,
		done:     make(chan struct{}),
		proxied:  o.BehindProxy || addr.Secure && o.TLSCert == "",
		sessions: newLimits(requestsPerSecond, requestsAtOnce), strangers: newLimits(requestsPerSecond, requestsAtOnce),
		guesses: newLimits(guessesPerSecond, guessesAtOnce),
	}
	s.http = &http.Server{
		Handler: s.handler(), ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	pushes.counts, pushes.url = s.counts, addr.URL
	ctx, cancel := context.WithCancel(context.Background())
	s.end = cancel
	s.board.tasks.Go(func() { pushes.run(ctx) })
	go s.serve(listener)
	return s, nil
}

func (s *Server) serve(l net.Listener) {
	defer close(s.done)
	if err := s.opts.Listen.Serve(s.http, l); err != nil {
		s.opts.Log.Error("web: the inbox stopped listening", "error", err)
	}
}

// URL is where people open the inbox.
func (s *Server) URL() string { return s.addr.URL }

// Taken is the address that was asked for where it was taken, so that another
// port is used; empty where it was free.
func (s *Server) Taken() string { return s.taken }

// Link is a login link for one user. It works once, for LinkLasts.
func (s *Server) Link(userID string) string { return s.seals.link(s.addr.URL, userID, time.Now()) }

// Link is a login link to the inbox that was started last on a data directory,
// signed with the key in a file, or with the directory's own where none is named;
// see Server.Link.
func Link(dataDir, keyFile, userID string) (string, error) {
	seals, err := readSeals(dataDir, keyFile)
	if err != nil {
		return "", err
	}
	url, err := seals.where()
	if err != nil {
		return "", err
	}
	return seals.link(url, userID, time.Now()), nil
}

// Stop tells every client that the inbox goes, and stops listening.
func (s *Server) Stop(ctx context.Context) error {
	s.board.close()
	s.end()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("stop the web inbox: %w", errors.Join(err, s.http.Close()))
	}
	<-s.done
	return errors.Join(err, s.board.wait(ctx))
}
