// Package voice asks people by voice. Clients connect by WebSocket or HTTP: they speak the lines
// that nod sends, and send transcripts of the person's speech. nod itself recognises no speech.
//
// A client has a token. The hash of the token is the user id of its person, and the settings list
// this user id as an identity of an approver. nod stores no token. An utterance is an answer of
// this person alone.
//
// Speech is easily misheard, and a misheard word must not allow anything:
//
//   - Only a whole utterance such as "yes" or "no" counts, and no partial transcript.
//   - The client asks about one request at a time, and first speaks the whole payload; see spell.
//   - The client repeats a yes, which counts only after "confirm" or the code word.
//   - Words during the client's own speech or shortly after it, and words that repeat that
//     speech, are no answer.
package voice

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// DefaultRate is the number of words that a client speaks in a minute, if the settings name none.
	DefaultRate = 120
	// DefaultMargin is the time after a client's own speech in which words do not count.
	DefaultMargin = 2 * time.Second
	// clientWithin is how long nod tries to reach a person who has no connected client, counted from the
	// request. In this time the client may connect again, or another worker that has the client may take
	// the prompt.
	clientWithin = 10 * time.Second
	// clientPause is the pause between two attempts to reach a person without a connected client.
	clientPause = time.Second
	// maxSkew is how far in the future the creation time of a request may lie; the agent writes this
	// time. If it lies further ahead, nod does not wait for the client.
	maxSkew = time.Minute
)

// Carrier implements people.Carrier for voice clients.
type Carrier struct {
	settings   Settings
	rate       int
	margin     time.Duration
	userID     func(token string) string
	utterances rate.Limit // the number of utterances that one client may send in a second
	log        *slog.Logger
	talks      talks
}

var _ people.Carrier = (*Carrier)(nil)

// New creates the carrier. The carrier listens only while Run runs.
func New(s Settings, log *slog.Logger) *Carrier {
	c := &Carrier{settings: s, rate: s.WordsPerMinute, margin: time.Duration(s.EchoMarginMS) * time.Millisecond, userID: UserID, utterances: utterances, log: log}
	if c.rate == 0 {
		c.rate = DefaultRate
	}
	if c.margin == 0 {
		c.margin = DefaultMargin
	}
	return c
}

// Run serves voice clients until ctx ends.
func (c *Carrier) Run(ctx context.Context, desk people.Desk) error {
	listen := c.settings.listen()
	l, addr, err := listen.Open(httpserveNames)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{Carrier: c, desk: desk, addr: addr, ctx: ctx, limit: newLimiter()}
	web := &http.Server{
		Handler: s.handler(), ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	stop := context.AfterFunc(ctx, func() { _ = web.Close() }) // closing the server ends Serve
	defer stop()
	c.log.Debug("voice: listening", "url", addr.URL)
	err = listen.Serve(web, l)
	cancel()
	_ = web.Close()
	c.talks.endAll()
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// Prompt makes the recipient's client ask about p, or puts p in the queue behind the open
// request. If no client of the recipient is connected, the error says that the recipient is
// unreachable or, for a new request, when to try again.
func (c *Carrier) Prompt(ctx context.Context, p schemas.Prompt) (people.Ref, error) {
	t := c.talks.of(p.Recipient)
	if t == nil || !t.do(ctx, func(context.Context) { t.offer(p) }) {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", c.unreachable(&p)
	}
	return people.Ref(p.Key()), nil
}

// unreachable returns the error for a recipient without a connected client. For clientWithin
// after a request was made, the error asks the worker to try again.
func (c *Carrier) unreachable(p *schemas.Prompt) error {
	e := &people.Error{Err: fmt.Errorf("no voice client of %s is connected: run nod voice", p.Recipient)}
	waited := time.Since(p.Request.CreatedAt)
	if e.Unreachable = p.Decision != nil || waited > clientWithin || waited < -maxSkew; !e.Unreachable {
		e.After = clientPause
	}
	return e
}

// Settle tells the person how p ended, if the person was being asked about p. It does nothing if
// no client of the person is connected.
func (c *Carrier) Settle(ctx context.Context, _ people.Ref, p schemas.Prompt) error {
	if t := c.talks.of(p.Recipient); t != nil && !t.do(ctx, func(context.Context) { t.offer(p) }) {
		return ctx.Err()
	}
	return nil
}

// Check tries to connect to the address for voice clients.
func (c *Carrier) Check(ctx context.Context) error {
	addr := c.settings.listen().Addr
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("nothing listens for voice clients on %s: start nod up, or nod connector voice", addr)
	}
	return conn.Close()
}
