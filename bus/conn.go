// Package bus is nod's only way to NATS: connecting and embedding, calls and
// their answers, the stores with their timers, work queues, leases, and asking.
// Nothing else in nod imports nats.go or nats-server.
package bus

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nodbus/nod/schemas"
)

// Options say how to reach a bus and as whom.
type Options struct {
	URL  string // one address or several, comma-separated
	Name string // shown by the server beside the connection
	// Creds is a file with an nkey seed or with NATS credentials; empty on an
	// open server.
	Creds string
	// Inbox is the role's own inbox prefix, which its key may subscribe to.
	Inbox string
	// Server connects within the process, without a socket.
	Server *Server
	// Wait is how long to go on trying to reach the bus; 0 tries once.
	Wait time.Duration
	Log  *slog.Logger

	// follow is the data directory whose run.json tells the address.
	follow string
	// trust is who vouches for the server, in PEM, where that is its own authority.
	trust func() ([]byte, error)
}

// ErrNoServer is in the error of an address where no NATS server answers.
var ErrNoServer = errors.New("no NATS server answers")

// Conn is one connection to the bus. It reconnects by itself for as long as it
// is open; calls made meanwhile wait as long as their contexts allow. A server that
// says nothing any more, or does not serve what is asked of it, is left within 10 s
// for another, if the address names several or the server has told of others.
type Conn struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	log *slog.Logger

	health      health
	mu          sync.Mutex
	reconnected []func()
	closed      chan struct{}
}

// Connect opens a connection. An unreachable bus, refused credentials and a
// server whose message limit is too small are one-line errors.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Conn{log: o.Log, closed: make(chan struct{})}
	opts, err := c.options(o)
	if err != nil {
		return nil, err
	}
	if err := c.dial(ctx, o, opts); err != nil {
		return nil, err
	}
	if limit := c.nc.MaxPayload(); limit < schemas.MaxPayloadBytes {
		c.nc.Close()
		return nil, fmt.Errorf("the NATS server at %s carries messages of at most %d bytes and nod needs %d: raise max_payload in its configuration", c.where(o), limit, schemas.MaxPayloadBytes)
	}
	c.js, err = jetstream.New(c.nc, jetstream.WithPublishAsyncTimeout(hopTimeout))
	if err != nil {
		c.nc.Close()
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	return c, nil
}

func (c *Conn) options(o Options) ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name(o.Name),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // a server whose configuration is being changed may refuse a key for a while
		nats.ReconnectWait(200 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 300*time.Millisecond),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsMissed),
		nats.FlusherTimeout(writeWithin),
		nats.DrainTimeout(10 * time.Second),
		nats.Timeout(3 * time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.log.Warn("bus", "connection", o.Name, "error", err)
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				c.log.Info("bus: disconnected, reconnecting", "connection", o.Name, "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { c.onReconnect() }),
		nats.ClosedHandler(func(*nats.Conn) { close(c.closed) }),
	}
	if o.Inbox != "" {
		opts = append(opts, nats.CustomInboxPrefix(o.Inbox))
	}
	if o.Server != nil {
		opts = append(opts, o.Server.InProcess())
	}
	if o.follow != "" {
		opts = append(opts, nats.SetCustomDialer(runDialer{o.follow}))
	}
	if o.trust != nil {
		opts = append(opts, trusting(o.trust))
	}
	if o.Creds == "" {
		return opts, nil
	}
	auth, err := credentials(o.Creds)
	if err != nil {
		return nil, err
	}
	return append(opts, auth), nil
}

// credentials reads a key file: an nkey seed as nod makes them, or the
// credentials file of a NATS operator.
func credentials(path string) (nats.Option, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	if bytes.Contains(data, []byte("BEGIN NATS USER JWT")) {
		return nats.UserCredentials(path), nil
	}
	opt, err := nats.NkeyOptionFromSeed(path)
	if err != nil {
		return nil, fmt.Errorf("credentials %s hold neither an nkey seed nor a NATS user: %w", path, err)
	}
	return opt, nil
}

func (c *Conn) dial(ctx context.Context, o Options, opts []nats.Option) error {
	deadline := time.Now().Add(o.Wait)
	level := slog.LevelWarn // once: whoever started it sees why nothing happens
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		nc, err := nats.Connect(o.URL, opts...)
		if err == nil {
			c.nc = nc
			return nil
		}
		if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) {
			return fmt.Errorf("the NATS server at %s refused these credentials: name others with --creds or NOD_CREDS", c.where(o))
		}
		if !time.Now().Add(wait).Before(deadline) {
			return fmt.Errorf("%w at %s (%v): start it, or name another with --nats-url or NOD_URL", ErrNoServer, c.where(o), err)
		}
		c.log.Log(ctx, level, "bus: waiting for the NATS server", "url", c.where(o), "error", err)
		level = slog.LevelInfo
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// where names the server without what a URL may hold of user and password.
func (c *Conn) where(o Options) string {
	if o.Server != nil {
		return "this process"
	}
	urls := strings.Split(o.URL, ",")
	for i, u := range urls {
		if scheme, rest, ok := strings.Cut(u, "://"); ok {
			if _, host, ok := strings.Cut(rest, "@"); ok {
				urls[i] = scheme + "://" + host
			}
		}
	}
	return strings.Join(urls, ",")
}

// OnReconnect has f called, in a goroutine of its own, after every reconnect,
// until stop is called.
func (c *Conn) OnReconnect(f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reconnected = append(c.reconnected, f)
	i := len(c.reconnected) - 1
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reconnected[i] = nil
	}
}

func (c *Conn) onReconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log.Info("bus: reconnected")
	for _, f := range c.reconnected {
		if f != nil {
			go f()
		}
	}
}

// URL is the address of the server that the connection is on.
func (c *Conn) URL() string { return c.nc.ConnectedUrlRedacted() }

// Open reports whether the server asks for no credentials, so that anybody who
// reaches it may answer.
func (c *Conn) Open() bool { return !c.nc.AuthRequired() }

// Publish sends v to subject, with no word of who heard it.
func (c *Conn) Publish(subject string, v any) error { return c.publish(subject, v, nil) }

// PublishVersion is Publish of one version of a record, which says beside the
// message which one it is: whoever has seen a newer one need not read it.
func (c *Conn) PublishVersion(subject string, v any, key string, revision uint64) error {
	return c.publish(subject, v, nats.Header{nats.MsgIdHdr: {key + "." + strconv.FormatUint(revision, 10)}})
}

func (c *Conn) publish(subject string, v any, header nats.Header) error {
	data, err := schemas.Encode(v)
	if err != nil {
		return fmt.Errorf("encode for %s: %w", subject, err)
	}
	if err := c.nc.PublishMsg(&nats.Msg{Subject: subject, Data: data, Header: header}); err != nil {
		return fmt.Errorf("publish to %s: %w", subject, err)
	}
	return nil
}

// Message is what a subscription hears.
type Message struct {
	Subject string
	Data    []byte
	// Revision is that of the record's version it tells of; 0 where it does
	// not say.
	Revision uint64
}

func message(m *nats.Msg) Message {
	id := m.Header.Get(nats.MsgIdHdr)
	revision, _ := strconv.ParseUint(id[strings.LastIndexByte(id, '.')+1:], 10, 64) // none is 0
	return Message{Subject: m.Subject, Data: m.Data, Revision: revision}
}

// Subscribe calls handle for every message on subject, one after another,
// until stop is called.
func (c *Conn) Subscribe(subject string, handle func(Message)) (stop func(), err error) {
	sub, err := c.nc.Subscribe(subject, func(m *nats.Msg) { handle(message(m)) })
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // it fails only on a closed connection, which ended it
}

// Flush waits until the server has seen all that was sent.
func (c *Conn) Flush(ctx context.Context) error { return c.nc.FlushWithContext(ctx) }

// Close sends what is buffered, ends the subscriptions and the connection.
func (c *Conn) Close() {
	if c.nc.Drain() != nil {
		c.nc.Close()
	}
	<-c.closed
}

// NewID is a random id of 16 lower-case letters and digits: its first four are
// usually a unique prefix.
func NewID() string { return strings.ToLower(rand.Text()[:16]) }
