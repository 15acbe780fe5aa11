package web

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/schemas"
)

// service is a push service that replies with a fixed status. If the status is 0, the service cannot be
// reached.
type service struct {
	status int
	posts  atomic.Int32
}

func (s *service) RoundTrip(*http.Request) (*http.Response, error) {
	if s.posts.Add(1); s.status == 0 {
		return nil, errors.New("no route to host")
	}
	return &http.Response{StatusCode: s.status, Status: http.StatusText(s.status), Body: io.NopCloser(strings.NewReader(""))}, nil
}

// aPusher returns a pusher with one device that has got no push yet.
func aPusher(t *testing.T, s *service) *pusher {
	t.Helper()
	key, err := newPushKey(tokenSigner{key: []byte("key")})
	require.NoError(t, err)
	list, err := openDevices(t.TempDir())
	require.NoError(t, err)
	p := &pusher{
		list: list, key: key, client: &http.Client{Transport: s}, log: slog.New(slog.DiscardHandler), retryAfter: pushRetry, wake: make(chan struct{}, 1),
		pending:      map[string]pendingRequest{},
		checkSession: func(context.Context, token) (string, error) { return "Ann", nil },
		notifyAfter:  func(context.Context) (time.Duration, error) { return 40 * time.Second, nil },
	}
	d := aDevice("one")
	d.Key = key.public
	require.NoError(t, list.add(d))
	return p
}

func aDevice(name string) device {
	return device{
		Subscription: webpush.Subscription{Endpoint: "https://fcm.googleapis.com/" + name, Keys: webpush.Keys{
			P256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", Auth: "BTBZMqHH6r4Tts7J_aSIgg",
		}},
		Session: token{User: "ann", ID: "session", Ends: time.Now().Add(time.Hour)},
	}
}

func ask(id string, tier schemas.Tier) *schemas.Prompt {
	return &schemas.Prompt{SessionID: "S", PendingID: id, Tier: tier}
}

func TestSimultaneousRequestsMakeOnePush(t *testing.T) {
	t.Parallel()
	s := &service{status: http.StatusCreated}
	p := aPusher(t, s)
	p.round(t.Context())
	require.Zero(t, s.posts.Load(), "nothing waits")
	for _, id := range []string{"one", "two", "three"} {
		p.show(ask(id, schemas.TierDisconnected))
		p.show(ask(id, schemas.TierDisconnected)) // a new version of the same request
	}
	p.round(t.Context())
	p.round(t.Context())
	require.EqualValues(t, 1, s.posts.Load())

	p.show(ask("four", schemas.TierDisconnected))
	next := p.round(t.Context())
	require.EqualValues(t, 1, s.posts.Load(), "not so soon again")
	d := p.list.all()[0]
	require.Equal(t, d.notBefore, next)
	require.Equal(t, pushEvery, d.notBefore.Sub(d.notified))
	p.list.update(d.Endpoint, func(o *device) { o.notBefore = time.Now() }) // the next push to the device is due, as if a minute had passed
	p.round(t.Context())
	require.EqualValues(t, 2, s.posts.Load())

	decided := ask("five", schemas.TierDisconnected)
	p.show(decided)
	decided.Decision = &schemas.Decision{}
	p.show(decided)
	p.list.update(d.Endpoint, func(o *device) { o.notBefore = time.Now() })
	p.round(t.Context())
	require.EqualValues(t, 2, s.posts.Load(), "no push for a request that was answered meanwhile")
}

// If a client has the session's input lock, nod sends pushes only after a delay.
func TestPushesWaitWhileAClientHoldsTheLock(t *testing.T) {
	t.Parallel()
	s := &service{status: http.StatusCreated}
	p := aPusher(t, s)
	before := time.Now()
	p.show(ask("one", schemas.TierConnected))
	next := p.round(t.Context())
	require.Zero(t, s.posts.Load())
	require.WithinRange(t, next, before.Add(40*time.Second), time.Now().Add(40*time.Second))
	two := aDevice("two")
	<-p.wake // the signal that show has sent
	require.NoError(t, p.add(two.Subscription, two.Session))
	<-p.wake // the signal that add has sent; the new device also gets its push only after the delay
	require.Equal(t, next, p.round(t.Context()))
	p.pending["S.one"] = pendingRequest{at: time.Now()} // the test acts as if the delay were over
	p.round(t.Context())
	require.EqualValues(t, 2, s.posts.Load())
}

func TestAPushThatFailsIsTriedAgainLaterEachTime(t *testing.T) {
	t.Parallel()
	s := &service{}
	p := aPusher(t, s)
	p.show(ask("one", schemas.TierDisconnected))
	var last time.Duration
	for _, status := range []int{0, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusForbidden} {
		s.status = status
		p.list.update("https://fcm.googleapis.com/one", func(o *device) { o.notBefore = time.Time{} }) // the next push is due
		before := time.Now()
		p.round(t.Context())
		d := p.list.all()[0]
		require.True(t, d.notified.IsZero(), "status %d", status)
		wait := d.notBefore.Sub(before)
		require.Greater(t, wait, last)
		last = wait
	}
	require.EqualValues(t, 4, s.posts.Load())
	s.status = http.StatusCreated
	p.list.update("https://fcm.googleapis.com/one", func(o *device) { o.notBefore, o.failures = time.Time{}, 1000 })
	p.round(t.Context())
	require.False(t, p.list.all()[0].notified.IsZero())
	require.Zero(t, p.list.all()[0].failures)
}

func TestADeviceThatIsGoneIsRemoved(t *testing.T) {
	t.Parallel()
	refuse := func(err error) func(*pusher) {
		return func(p *pusher) { p.checkSession = func(context.Context, token) (string, error) { return "", err } }
	}
	for name, c := range map[string]struct {
		status, posts, left int
		change              func(*pusher)
	}{
		"gone":                 {http.StatusGone, 1, 0, func(*pusher) {}},
		"not found":            {http.StatusNotFound, 1, 0, func(*pusher) {}},
		"logged out":           {http.StatusCreated, 0, 0, refuse(errLoggedOut)},
		"its login has ended":  {http.StatusCreated, 0, 0, refuse(errLoginEnded)},
		"no approver any more": {http.StatusCreated, 0, 0, refuse(schemas.Errorf(schemas.CodeForbidden, "no"))},
		"nod is away":          {http.StatusCreated, 0, 1, refuse(schemas.Errorf(schemas.CodeUnavailable, "no"))},
		"another key":          {http.StatusCreated, 0, 0, func(p *pusher) { p.key, _ = newPushKey(tokenSigner{key: []byte("another")}) }},
		"the session's end": {http.StatusCreated, 0, 0, func(p *pusher) {
			p.list.update("https://fcm.googleapis.com/one", func(o *device) { o.Session.Ends = time.Now() })
		}},
	} {
		s := &service{status: c.status}
		p := aPusher(t, s)
		c.change(p)
		p.show(ask("one", schemas.TierDisconnected))
		p.round(t.Context())
		require.EqualValues(t, c.posts, s.posts.Load(), name)
		require.Len(t, p.list.all(), c.left, name)
		again, err := openDevices(strings.TrimSuffix(p.list.path, devicesName))
		require.NoError(t, err, name)
		require.Len(t, again.all(), c.left, name)
	}
}

// If nod fails to remove a device, the log does not claim that nod will push to the device again.
func TestADeviceThatCannotBeForgotten(t *testing.T) {
	t.Parallel()
	p := aPusher(t, &service{status: http.StatusGone})
	var log strings.Builder
	p.log = slog.New(slog.NewTextHandler(&log, nil))
	require.NoError(t, os.Remove(p.list.path))
	require.NoError(t, os.Mkdir(p.list.path, 0o700))
	p.show(ask("one", schemas.TierDisconnected))
	p.round(t.Context())
	require.Contains(t, log.String(), "a device that gets no more notifications could not be removed")
	require.NotContains(t, log.String(), "tried again")
}

// If no push key can be made from a login key, the error names the file of the login key.
func TestALoginKeyThatMakesNoPushKey(t *testing.T) {
	t.Parallel()
	_, err := pushKeyFrom(make([]byte, 32), "/etc/nod/login-key")
	require.ErrorContains(t, err, "/etc/nod/login-key")
	file := filepath.Join(t.TempDir(), "key")
	signer, err := openSigner(t.TempDir(), "")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(signer.dir, "key"), signer.path)
	require.NoError(t, os.Rename(signer.path, file))
	signer, err = openSigner(t.TempDir(), file)
	require.NoError(t, err)
	require.Equal(t, file, signer.path)
}

func TestDevicesAreStoredUpToALimit(t *testing.T) {
	t.Parallel()
	p := aPusher(t, &service{})
	dir := strings.TrimSuffix(p.list.path, devicesName)
	other, err := openDevices(dir) // the second object acts as another gateway on the same directory
	require.NoError(t, err)
	require.NoError(t, other.add(aDevice("two")))
	require.NoError(t, p.list.add(aDevice("three")))
	require.NoError(t, p.list.add(aDevice("three")))
	require.Len(t, p.list.all(), 3)
	for i := range maxOwn {
		require.NoError(t, p.list.add(aDevice(strings.Repeat("x", i+1))))
	}
	all := p.list.all()
	require.Len(t, all, maxOwn)
	require.Equal(t, "https://fcm.googleapis.com/x", all[0].Endpoint, "the oldest have gone")
	again, err := openDevices(dir)
	require.NoError(t, err)
	require.Len(t, again.all(), maxOwn)
	require.Equal(t, all[0].Subscription, again.all()[0].Subscription)
}

// The gateway refuses a subscription that no browser would send, because nod must send pushes only to
// push services.
func TestInvalidSubscriptionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*webpush.Subscription){
		"in the clear":      func(s *webpush.Subscription) { s.Endpoint = "http://fcm.googleapis.com/x" },
		"another host":      func(s *webpush.Subscription) { s.Endpoint = "https://evil.example/x" },
		"a lookalike":       func(s *webpush.Subscription) { s.Endpoint = "https://fcm.googleapis.com.evil.example/x" },
		"another lookalike": func(s *webpush.Subscription) { s.Endpoint = "https://evilpush.apple.com/x" },
		"another port":      func(s *webpush.Subscription) { s.Endpoint = "https://fcm.googleapis.com:22/x" },
		"a user":            func(s *webpush.Subscription) { s.Endpoint = "https://a:b@fcm.googleapis.com/x" },
		"nothing":           func(s *webpush.Subscription) { s.Endpoint = "" },
		"long":              func(s *webpush.Subscription) { s.Endpoint += strings.Repeat("x", 2048) },
		"no key":            func(s *webpush.Subscription) { s.Keys.P256dh = "" },
		"a key off curve":   func(s *webpush.Subscription) { s.Keys.P256dh = strings.Repeat("A", 87) },
		"a short secret":    func(s *webpush.Subscription) { s.Keys.Auth = "AAAA" },
	} {
		d := aDevice("x")
		require.NoError(t, checkDevice(&d.Subscription))
		change(&d.Subscription)
		require.ErrorIs(t, checkDevice(&d.Subscription), &schemas.Error{Code: schemas.CodeValidation}, name)
	}
	apple := aDevice("x")
	apple.Endpoint = "https://web.push.apple.com/x"
	require.NoError(t, checkDevice(&apple.Subscription))
}

func TestADamagedDeviceListIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(Options{DataDir: dir, Listen: httpserve.Listen{Addr: "127.0.0.1:0"}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, os.WriteFile(dir+"/web/push.json", []byte("{"), 0o600))
	_, err = Open(Options{DataDir: dir, Listen: httpserve.Listen{Addr: "127.0.0.1:0"}, Log: slog.New(slog.DiscardHandler)})
	require.ErrorContains(t, err, "remove "+dir)
}
