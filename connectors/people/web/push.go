package web

import (
	"context"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"

	"github.com/nodbus/nod/schemas"
)

const (
	pushed      = "something waits" // all that a push ever says
	pushEvery   = time.Minute       // one device is told at most so often
	pushAgain   = 5 * time.Second   // a push that failed is tried again then, later each time
	pushAtLast  = 10 * time.Minute
	pushWithin  = 15 * time.Second
	pushesAsked = 24 * time.Hour // for how long a push service keeps one for a device that is away
	idle        = time.Hour
)

// waiting is a request that nobody has answered.
type waiting struct {
	at      time.Time // when phones are told of it
	present bool      // somebody is there, who may answer first: at is not known yet
}

// pusher tells the devices that asked for it that something waits, and nothing of
// what it is: a push service is not nod's.
type pusher struct {
	list    *devices
	key     pushKey
	url     string
	client  *http.Client
	log     *slog.Logger
	again   time.Duration
	counts  func(context.Context, pass) (name string, err error)
	holdOff func(context.Context) (time.Duration, error)
	wake    chan struct{}

	mu    sync.Mutex
	waits map[string]waiting // by key
}

// pushKey is what push services know nod by.
type pushKey struct{ private, public string }

// newPushKey derives it from the key of logins, so that gateways that share that
// one share it, and who logs everybody out ends what they asked for.
func newPushKey(logins []byte) (pushKey, error) {
	h := hmac.New(sha256.New, logins)
	h.Write([]byte("web push"))
	key, err := ecdh.P256().NewPrivateKey(h.Sum(nil))
	if err != nil { // one in 2^32 is none
		return pushKey{}, fmt.Errorf("derive the key for push services: %w: remove web/key in the data directory", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return pushKey{encode(key.Bytes()), encode(key.PublicKey().Bytes())}, nil
}

func newPusher(o *Options, s seals) (*pusher, error) {
	key, err := newPushKey(s.key)
	if err != nil {
		return nil, err
	}
	list, err := openDevices(s.dir)
	if err != nil {
		return nil, err
	}
	client := o.Push
	if client == nil {
		client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &pusher{
		list: list, key: key, client: client, log: o.Log, again: pushAgain,
		holdOff: func(ctx context.Context) (time.Duration, error) { return o.Registry.NotifyAfter(ctx) }, wake: make(chan struct{}, 1), waits: map[string]waiting{},
	}, nil
}

// show takes in one request as it stands now.
func (p *pusher) show(q *schemas.Prompt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.waits[q.Key()]
	switch {
	case q.Decision != nil:
		delete(p.waits, q.Key())
	case !known:
		p.waits[q.Key()] = waiting{at: time.Now(), present: q.Tier == schemas.TierConnected || q.Tier == schemas.TierVoice}
		p.signal()
	}
}

// add takes a device in, which knows of what waits now, but for what phones are not
// told of yet.
func (p *pusher) add(s webpush.Subscription, session pass) error {
	if err := p.list.add(device{Subscription: s, Key: p.key.public, Session: session, told: time.Now()}); err != nil {
		return err
	}
	p.signal()
	return nil
}

func (p *pusher) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run tells whoever is to be told, until ctx ends.
func (p *pusher) run(ctx context.Context) {
	for ctx.Err() == nil {
		timer := time.NewTimer(time.Until(p.round(ctx)))
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// round tells every device whose turn it is, and returns when the next one's is.
func (p *pusher) round(ctx context.Context) (next time.Time) {
	now := time.Now()
	next = now.Add(idle)
	devices := p.list.all()
	if len(devices) == 0 {
		return next
	}
	at := p.times(ctx)
	var all sync.WaitGroup
	for _, d := range devices {
		i := slices.IndexFunc(at, func(t time.Time) bool { return t.After(d.told) })
		switch {
		case i < 0:
		case at[i].After(now) || d.rest.After(now):
			if turn := later(at[i], d.rest); turn.Before(next) {
				next = turn
			}
		default:
			all.Go(func() { p.tell(ctx, d, now) })
			if again := now.Add(p.again); again.Before(next) { // for those who could not be told
				next = again
			}
		}
	}
	all.Wait()
	return next
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// times are those at which phones are told of what waits, in order.
func (p *pusher) times(ctx context.Context) []time.Time {
	holdOff, err := p.holdOff(ctx)
	if err != nil {
		holdOff = schemas.DefaultNotifyAfter
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []time.Time
	for key, w := range p.waits {
		if w.present {
			w = waiting{at: w.at.Add(holdOff)}
			p.waits[key] = w
		}
		all = append(all, w.at)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// tell pushes to one device, as far as its session counts still.
func (p *pusher) tell(stopping context.Context, d device, now time.Time) {
	ctx, cancel := context.WithTimeout(stopping, pushWithin)
	defer cancel()
	_, err := p.counts(ctx, d.Session)
	over := errors.Is(err, errLoggedOut) || errors.Is(err, &schemas.Error{Code: schemas.CodeForbidden}) ||
		!now.Before(d.Session.Ends) || d.Key != p.key.public // its session was signed by another as well
	if err == nil && !over {
		over, err = p.push(ctx, d)
	}
	switch {
	case stopping.Err() != nil:
		return
	case over:
		err = p.list.drop(func(o *device) bool { return o.Endpoint == d.Endpoint })
	case err == nil:
		p.list.mark(d.Endpoint, func(o *device) { o.told, o.rest, o.tries = now, now.Add(pushEvery), 0 })
	default:
		p.list.mark(d.Endpoint, func(o *device) {
			o.rest = time.Now().Add(min(p.again<<min(o.tries, 20), pushAtLast))
			o.tries++
		})
	}
	if err != nil {
		p.log.Warn("web: a device could not be told that something waits; it is tried again", "service", host(d.Endpoint), "error", err)
	}
}

// push reports whether the device has gone.
func (p *pusher) push(ctx context.Context, d device) (gone bool, err error) {
	resp, err := webpush.SendNotificationWithContext(ctx, []byte(pushed), &d.Subscription, &webpush.Options{
		HTTPClient: p.client, Subscriber: p.subscriber(), TTL: int(pushesAsked / time.Second), Urgency: webpush.UrgencyHigh, Topic: "nod",
		VAPIDPublicKey: p.key.public, VAPIDPrivateKey: p.key.private,
	})
	if err != nil {
		return false, errors.New(strings.ReplaceAll(err.Error(), d.Endpoint, "its address")) // who knows that may push
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxBody) // so that the connection is used again
	switch {
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone:
		return true, nil
	case resp.StatusCode/100 != 2:
		return false, fmt.Errorf("its push service answered %s", resp.Status)
	}
	return false, nil
}

// subscriber is whom a push service may turn to.
func (p *pusher) subscriber() string {
	if strings.HasPrefix(p.url, "https:") {
		return p.url
	}
	return "https://github.com/nodbus/nod"
}
