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
	pushText      = "something waits" // the only text of a push
	pushEvery     = time.Minute       // the smallest interval between two pushes to one device
	pushRetry     = 5 * time.Second   // the wait before the first retry of a failed push; the wait doubles with each retry
	maxPushRetry  = 10 * time.Minute
	pushWithin    = 15 * time.Second
	pushTTL       = 24 * time.Hour // how long a push service keeps a push for an offline device
	maxRoundPause = time.Hour
)

// pendingRequest is a request without a decision.
type pendingRequest struct {
	at      time.Time // the time from which nod notifies devices of the request
	present bool      // a client had the session's input lock, so notifyTimes must still add the delay of notifyAfter to at
}

// pusher sends pushes to the subscribed devices when a request is pending. A push contains no text
// about the request, because third parties run the push services.
type pusher struct {
	list         *devices
	key          pushKey
	url          string
	client       *http.Client
	log          *slog.Logger
	retryAfter   time.Duration
	checkSession func(context.Context, token) (name string, err error)
	notifyAfter  func(context.Context) (time.Duration, error)
	wake         chan struct{}

	mu      sync.Mutex
	pending map[string]pendingRequest // the pending requests, by key
}

// pushKey is the VAPID key pair by which push services identify nod.
type pushKey struct{ private, public string }

// newPushKey derives the VAPID key, by which push services identify nod, from the key that signs
// logins. Gateways with the same login key therefore have the same VAPID key. A new login key
// makes all subscriptions invalid.
func newPushKey(s tokenSigner) (pushKey, error) {
	h := hmac.New(sha256.New, s.key)
	h.Write([]byte("web push"))
	return pushKeyFrom(h.Sum(nil), s.path)
}

// pushKeyFrom makes the key pair from its private number. file is the path of the login key, for the
// error message.
func pushKeyFrom(number []byte, file string) (pushKey, error) {
	key, err := ecdh.P256().NewPrivateKey(number)
	if err != nil { // one login key in 2^32 makes no valid key
		return pushKey{}, fmt.Errorf("derive the key for push services from the login key: %w: replace %s by a new key; all users then log in again", err, file)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return pushKey{encode(key.Bytes()), encode(key.PublicKey().Bytes())}, nil
}

func newPusher(o *Options, s tokenSigner) (*pusher, error) {
	key, err := newPushKey(s)
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
		list: list, key: key, client: client, log: o.Log, retryAfter: pushRetry,
		notifyAfter: func(ctx context.Context) (time.Duration, error) { return o.Registry.NotifyAfter(ctx) }, wake: make(chan struct{}, 1), pending: map[string]pendingRequest{},
	}, nil
}

// show passes a version of a request to the pusher.
func (p *pusher) show(q *schemas.Prompt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.pending[q.Key()]
	switch {
	case q.Decision != nil:
		delete(p.pending, q.Key())
	case !known:
		p.pending[q.Key()] = pendingRequest{at: time.Now(), present: q.Tier == schemas.TierConnected || q.Tier == schemas.TierVoice}
		p.signal()
	}
}

// add stores a device. The device gets no push for requests that are already pending, unless their push
// is still delayed.
func (p *pusher) add(s webpush.Subscription, session token) error {
	if err := p.list.add(device{Subscription: s, Key: p.key.public, Session: session, notified: time.Now()}); err != nil {
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

// round sends all pushes that are due. It returns the time of the next round.
func (p *pusher) round(ctx context.Context) (next time.Time) {
	now := time.Now()
	next = now.Add(maxRoundPause)
	devices := p.list.all()
	if len(devices) == 0 {
		return next
	}
	at := p.notifyTimes(ctx)
	var all sync.WaitGroup
	for _, d := range devices {
		i := slices.IndexFunc(at, func(t time.Time) bool { return t.After(d.notified) })
		switch {
		case i < 0:
		case at[i].After(now) || d.notBefore.After(now):
			if turn := later(at[i], d.notBefore); turn.Before(next) {
				next = turn
			}
		default:
			all.Go(func() { p.notify(ctx, d, now) })
			if again := now.Add(p.retryAfter); again.Before(next) { // the time at which to retry a failed push
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

// notifyTimes returns, in ascending order, the times from which nod notifies devices of the pending
// requests. If a client had the input lock of a request's session, notifyTimes first adds the delay of
// notifyAfter, once.
func (p *pusher) notifyTimes(ctx context.Context) []time.Time {
	holdOff, err := p.notifyAfter(ctx)
	if err != nil {
		holdOff = schemas.DefaultNotifyAfter
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []time.Time
	for key, w := range p.pending {
		if w.present {
			w = pendingRequest{at: w.at.Add(holdOff)}
			p.pending[key] = w
		}
		all = append(all, w.at)
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// notify sends a push to one device and stores the result. It removes the device if the device has
// unsubscribed or its session is no longer valid.
func (p *pusher) notify(stopping context.Context, d device, now time.Time) {
	ctx, cancel := context.WithTimeout(stopping, pushWithin)
	defer cancel()
	_, err := p.checkSession(ctx, d.Session)
	over := errors.Is(err, &schemas.Error{Code: schemas.CodeUnauthorized}) || errors.Is(err, &schemas.Error{Code: schemas.CodeForbidden}) ||
		!now.Before(d.Session.Ends) || d.Key != p.key.public // a different key means that the login key was replaced
	if err == nil && !over {
		over, err = p.push(ctx, d)
	}
	switch {
	case stopping.Err() != nil:
		return
	case over:
		if err := p.list.remove(func(o *device) bool { return o.Endpoint == d.Endpoint }); err != nil {
			p.log.Warn("web: a device that gets no more notifications could not be removed", "service", host(d.Endpoint), "error", err)
		}
	case err == nil:
		p.list.update(d.Endpoint, func(o *device) { o.notified, o.notBefore, o.failures = now, now.Add(pushEvery), 0 })
	default:
		p.list.update(d.Endpoint, func(o *device) {
			o.notBefore = time.Now().Add(min(p.retryAfter<<min(o.failures, 20), maxPushRetry))
			o.failures++
		})
		p.log.Warn("web: a device could not be notified; it is tried again", "service", host(d.Endpoint), "error", err)
	}
}

// push sends one push. gone is true if the push service reports that the subscription no longer
// exists.
func (p *pusher) push(ctx context.Context, d device) (gone bool, err error) {
	resp, err := webpush.SendNotificationWithContext(ctx, []byte(pushText), &d.Subscription, &webpush.Options{
		HTTPClient: p.client, Subscriber: p.subscriber(), TTL: int(pushTTL / time.Second), Urgency: webpush.UrgencyHigh, Topic: "nod",
		VAPIDPublicKey: p.key.public, VAPIDPrivateKey: p.key.private,
	})
	if err != nil {
		return false, errors.New(strings.ReplaceAll(err.Error(), d.Endpoint, "its address")) // the endpoint is a secret: any program that knows it can send a push
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, maxBody) // the HTTP client reuses the connection only if the body was read
	switch {
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone:
		return true, nil
	case resp.StatusCode/100 != 2:
		return false, fmt.Errorf("its push service answered %s", resp.Status)
	}
	return false, nil
}

// subscriber returns the contact address that nod gives to push services.
func (p *pusher) subscriber() string {
	if strings.HasPrefix(p.url, "https:") {
		return p.url
	}
	return "https://github.com/nodbus/nod"
}
