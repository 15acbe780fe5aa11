// Package bus is nod's transport over NATS: connections, the embedded server, calls and replies, the
// stores with their timers, work queues, leases, and the client that sends an agent's requests. No other
// package of nod imports nats.go or nats-server.
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
	"github.com/nats-io/nkeys"
	"github.com/nodbus/nod/schemas"
)

// Options name a bus, and the key or token with which the client connects.
type Options struct {
	URL  string // the address of a server, or several addresses, comma-separated
	Name string // the connection's name, shown by the server's tools
	// Creds is a file with an nkey seed or with NATS credentials. It is empty for a server without
	// authentication.
	Creds string
	// TokenFile is a file with an OIDC token, which replaces Creds. By this token the token service
	// admits the client as the agent that the field Agent names.
	TokenFile string
	Agent     string
	// Inbox is the inbox prefix of the client's role. A role's key may subscribe to no other inbox.
	Inbox string
	// Server is a server in this process, to which Connect connects without a socket. If the server uses
	// SyncGroup, the stores of this connection report a write once it is on disk.
	Server *Server
	// Wait is how long Connect keeps trying to reach the bus. With 0, Connect tries once.
	Wait time.Duration
	Log  *slog.Logger

	// follow is the path of a data directory, or empty. If it is set, the connection reads the server's
	// address from run.json in that directory at each connect and reconnect.
	follow string
	// trust returns the certificates, in PEM, of the server's own certificate authority. It returns an
	// empty result if the server has no authority of its own.
	trust func() ([]byte, error)
}

// The errors of Connect.
var (
	// ErrNoServer means that no NATS server answers at the address.
	ErrNoServer = errors.New("no NATS server answers")
	// ErrRefused means that the server does not accept the credentials.
	ErrRefused = errors.New("refused these credentials")
)

// Conn is one connection to the bus. A broken connection reconnects until it is closed, and calls wait as
// long as their contexts allow. If the server is silent or does not serve calls, the connection changes
// to another server within 10 s. It knows other servers from its address or from the announcements of the
// current server.
type Conn struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	log    *slog.Logger
	server *Server // the server in this process; nil if the server is another process
	creds  string  // the path of the key file; empty without a key

	health      health
	mu          sync.Mutex
	reconnected []func()
	closed      chan struct{}
}

// Connect opens a connection. It returns a one-line error if the bus is unreachable, if the
// server refuses the credentials, or if the server's message limit is too small.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Conn{log: o.Log, server: o.Server, creds: o.Creds, closed: make(chan struct{})}
	opts, err := c.options(o)
	if err != nil {
		return nil, err
	}
	if err := c.dial(ctx, o, opts); err != nil {
		return nil, err
	}
	if limit := c.nc.MaxPayload(); limit < schemas.MaxPayloadBytes {
		c.nc.Close()
		return nil, fmt.Errorf("the NATS server at %s accepts messages of at most %d bytes, and nod needs %d: raise max_payload in its configuration", c.where(o), limit, schemas.MaxPayloadBytes)
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
		nats.IgnoreAuthErrorAbort(), // while a server's configuration changes, the server may refuse a valid key for a moment
		nats.ReconnectWait(200 * time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 300*time.Millisecond),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsMissed),
		nats.FlusherTimeout(writeWithin),
		nats.DrainTimeout(10 * time.Second),
		nats.Timeout(3 * time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if o.TokenFile != "" && errors.Is(err, nats.ErrAuthExpired) {
				c.log.Info("bus: the token of the connection has ended; connecting again by the one in its file", "connection", o.Name)
				return
			}
			c.log.Warn("bus: an error of the connection", "connection", o.Name, "error", err)
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
		opts = append(opts, trustAuthority(o.trust))
	}
	if o.TokenFile != "" {
		login, err := c.tokenLogin(o)
		return append(opts, login...), err
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

// credentials reads a key file: an nkey seed, or the credentials file of a NATS operator.
func credentials(path string) (nats.Option, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	if bytes.Contains(data, []byte("BEGIN NATS USER JWT")) {
		return userCredentials(path), nil
	}
	opt, err := nats.NkeyOptionFromSeed(path)
	if err != nil {
		return nil, fmt.Errorf("credentials %s hold neither an nkey seed nor a NATS user: %w", path, err)
	}
	return opt, nil
}

// userCredentials reads the key file at each connect, so that a reconnect uses a rotated key.
// nats.UserCredentials would not do, because it expands a $ in the path.
func userCredentials(path string) nats.Option {
	return nats.UserJWT(func() (string, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read credentials: %w", err)
		}
		defer clear(data)
		return nkeys.ParseDecoratedJWT(data)
	}, func(nonce []byte) ([]byte, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read credentials: %w", err)
		}
		defer clear(data)
		pair, err := nkeys.ParseDecoratedNKey(data)
		if err != nil {
			return nil, fmt.Errorf("credentials %s hold no nkey seed", path) // the error leaves out the library's error, which may quote the seed
		}
		defer pair.Wipe()
		return pair.Sign(nonce)
	})
}

func (c *Conn) dial(ctx context.Context, o Options, opts []nats.Option) error {
	deadline := time.Now().Add(o.Wait)
	level := slog.LevelWarn // only the first failure is logged as a warning, to tell the user the reason for the delay
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		nc, err := nats.Connect(o.URL, opts...)
		if err == nil {
			c.nc = nc
			return nil
		}
		if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || o.TokenFile != "" && pingedEarly(err) {
			if o.TokenFile != "" {
				return tokenRefused(o, c.where(o))
			}
			return fmt.Errorf("the NATS server at %s %w: name others with --creds or NOD_CREDS", c.where(o), ErrRefused)
		}
		if o.TokenFile != "" && loginTooLong(err) {
			return fmt.Errorf("the NATS server at %s %w: the token in %s is too long for it: put the max_control_line of nod keys config into its configuration, and start it again", c.where(o), ErrRefused, o.TokenFile)
		}
		if o.TokenFile != "" && errors.Is(err, nats.ErrSecureConnWanted) {
			return fmt.Errorf("the NATS server at %s does not speak TLS, and a token must not cross the network in the clear: set up TLS there, or use a key (--creds)", c.where(o))
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

// The method where returns the server's address for error texts.
func (c *Conn) where(o Options) string {
	if o.Server != nil {
		return "this process"
	}
	return Address(o.URL)
}

// Address returns the servers' URLs without user names and passwords.
func Address(url string) string {
	urls := strings.Split(url, ",")
	for i, u := range urls {
		if scheme, rest, ok := strings.Cut(u, "://"); ok {
			if _, host, ok := strings.Cut(rest, "@"); ok {
				urls[i] = scheme + "://" + host
			}
		}
	}
	return strings.Join(urls, ",")
}

// OnReconnect calls f after every reconnect, in a new goroutine, until the caller calls the returned
// function.
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

// URL returns the address of the current server.
func (c *Conn) URL() string { return c.nc.ConnectedUrlRedacted() }

// Open reports whether the server requires no credentials. On such a server every client may answer
// requests.
func (c *Conn) Open() bool { return !c.nc.AuthRequired() }

// Publish sends v to a subject. A nil error does not mean that a receiver got v.
func (c *Conn) Publish(subject string, v any) error { return c.publish(subject, v, nil) }

// PublishTraced publishes v as Publish does. It also sends the trace of ctx, if there is one, in the
// message's headers.
func (c *Conn) PublishTraced(ctx context.Context, subject string, v any) error {
	return c.publish(subject, v, traceHeader(ctx, nil))
}

// PublishVersion publishes one version of a record. The version is also in a header, so that a
// receiver that already has a newer version need not decode the message.
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

// Message is a message of a subscription.
type Message struct {
	Subject string
	Data    []byte
	// Revision is the revision of the record in the message. It is 0 if the sender has not set it.
	Revision uint64
}

func message(m *nats.Msg) Message {
	id := m.Header.Get(nats.MsgIdHdr)
	revision, _ := strconv.ParseUint(id[strings.LastIndexByte(id, '.')+1:], 10, 64) // a message without a Nats-Msg-Id header has revision 0
	return Message{Subject: m.Subject, Data: m.Data, Revision: revision}
}

// Subscribe calls the function handle for every message on a subject, one message after another,
// until the caller calls the returned function.
func (c *Conn) Subscribe(subject string, handle func(Message)) (stop func(), err error) {
	sub, err := c.nc.Subscribe(subject, func(m *nats.Msg) { handle(message(m)) })
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // Unsubscribe fails only on a closed connection, which has no subscriptions
}

// ServerInfo describes the server of a connection.
type ServerInfo struct{ Name, Cluster, Version, URL string }

// ServerInfo returns the server to which c is connected.
func (c *Conn) ServerInfo() ServerInfo {
	return ServerInfo{c.nc.ConnectedServerName(), c.nc.ConnectedClusterName(), c.nc.ConnectedServerVersion(), c.nc.ConnectedUrl()}
}

// Flush waits until the server has received all messages that this connection has sent.
func (c *Conn) Flush(ctx context.Context) error { return c.nc.FlushWithContext(ctx) }

// Close sends the buffered messages, and then ends the subscriptions and the connection.
func (c *Conn) Close() {
	if c.nc.Drain() != nil {
		c.nc.Close()
	}
	<-c.closed
}

// NewID returns a random id of 16 lower-case letters and digits. Its first four characters are
// usually enough to recognise it.
func NewID() string { return strings.ToLower(rand.Text()[:16]) }
