package telegram_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/connectors/people/telegram"
	"github.com/nodbus/nod/internal/testports"
	"github.com/nodbus/nod/schemas"
)

const hookSecret = "secretsecret-0123456789"

// webhookRig is a rig with a proxy through which Telegram calls the webhooks of its carriers.
type webhookRig struct {
	*rig
	listen string
}

func (r webhookRig) Open(log *slog.Logger) people.Carrier {
	c := r.rig.Open(log).(*telegram.Carrier)
	require.NoError(r.t, c.UseWebhook(hookAt(r.listen)))
	return c
}

func hookAt(listen string) telegram.Webhook {
	return telegram.Webhook{Listen: listen, PublicURL: "https://nod.example.com/", Secret: hookSecret}
}

func TestTheSuiteOnAWebhook(t *testing.T) {
	t.Parallel()
	peopletest.Run(t, features, func(t *testing.T) peopletest.Rig {
		r := webhookRig{newRig(t).(*rig), testports.Address(t)}
		r.Proxy("http://" + r.listen)
		return r
	}, token, "secretsecret")
}

// useWebhook makes the carrier use a webhook instead of polling. It returns the URL at which the
// carrier receives updates.
func (w *world) useWebhook() (target string) {
	listen := testports.Address(w.t)
	w.Proxy("http://" + listen)
	w.NoError(w.carrier.UseWebhook(hookAt(listen)))
	return "http://" + listen + "/nod/telegram"
}

func TestAWebhookConfirmsNothingBeforeNodTookIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.shows()
	w.useWebhook()
	tries := make(chan struct{}, 1000)
	w.desk.err = func() error { tries <- struct{}{}; return schemas.Errorf(schemas.CodeUnavailable, "no engine") }
	stop := w.run()
	w.Press(ann, ann, m.ID, m.Buttons[0].Data, false)
	<-tries
	<-tries // wait until Telegram sends the update again
	w.Equal(1, w.Unconfirmed())
	w.ErrorIs(stop(), context.Canceled)

	w.desk.err = func() error { return nil }
	defer w.run()()
	w.Equal("allow_once", (<-w.desk.answers).OptionID)
	w.waits(func() bool { return w.Unconfirmed() == 0 })
	w.Empty(w.Rejected())
}

// The server refuses a call without the right secret before it reads the body.
func TestAWebhookCallWithoutTheSecretIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.shows()
	target := w.useWebhook()
	defer w.run()()
	w.waits(func() bool { return w.Webhook() != "" })
	update := fmt.Sprintf(`{"update_id":1,"callback_query":{"id":"x","from":{"id":%d},"data":%q,"message":{"message_id":%d,"chat":{"id":%d,"type":"private"},"text":%q}}}`,
		ann, m.Buttons[0].Data, m.ID, ann, m.Text)
	for name, c := range map[string]struct {
		secret, method, path, body string
		want                       int
	}{
		"none":           {"", "POST", "", update, 403},
		"a wrong one":    {hookSecret[1:] + "x", "POST", "", update, 403},
		"the beginning":  {hookSecret[:10], "POST", "", update, 403},
		"no update":      {hookSecret, "POST", "", `{"update_id":"x"`, 400},
		"an empty one":   {hookSecret, "POST", "", `{}`, 400},
		"a long one":     {hookSecret, "POST", "", `{"update_id":1,"x":"` + strings.Repeat("x", 1<<20) + `"}`, 413},
		"another method": {hookSecret, "GET", "", "", 404},
		"another path":   {hookSecret, "POST", "/x", update, 404},
	} {
		req, err := http.NewRequest(c.method, target+c.path, strings.NewReader(c.body))
		w.NoError(err)
		req.Header.Set("X-Telegram-Bot-Api-Secret-Token", c.secret)
		resp, err := http.DefaultClient.Do(req)
		w.NoError(err, name)
		resp.Body.Close()
		w.Equal(c.want, resp.StatusCode, name)
	}
	w.Empty(w.desk.answers)
}

// nod loses no update when it changes between polling and a webhook.
func TestFromAWebhookToPollingAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.shows()
	polling := w.carrier
	hooking, err := telegram.New(w.URL(), token, slog.New(slog.DiscardHandler))
	w.NoError(err)
	for _, c := range []*telegram.Carrier{hooking, polling, hooking} {
		if w.carrier = c; c == hooking {
			w.useWebhook()
		}
		w.Press(ann, ann, m.ID, m.Buttons[0].Data, false) // press while no carrier receives updates
		stop := w.run()
		<-w.desk.answers
		w.waits(func() bool { return w.Unconfirmed() == 0 })
		w.Equal(c == hooking, w.Webhook() == "https://nod.example.com/nod/telegram")
		w.ErrorIs(stop(), context.Canceled)
	}
	w.Empty(w.Rejected())
}

// UseWebhook refuses an unsafe webhook. The error is one line without the secret.
func TestUnsafeWebhooksAreRefused(t *testing.T) {
	t.Parallel()
	ok := hookAt("127.0.0.1:0")
	for want, change := range map[string]func(*telegram.Webhook){
		"public_url": func(w *telegram.Webhook) { w.PublicURL = "http://nod.example.com" },
		"listen: it": func(w *telegram.Webhook) { w.Listen = "here" },
		"reverse":    func(w *telegram.Webhook) { w.Listen = "0.0.0.0:8443" },
		"16 to 256":  func(w *telegram.Webhook) { w.Secret = "short" },
		"letters":    func(w *telegram.Webhook) { w.Secret = strings.Repeat("ä", 20) },
	} {
		w := ok
		change(&w)
		c, err := telegram.New("", token, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		err = c.UseWebhook(w)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
		require.NotContains(t, err.Error(), hookSecret)
	}
}

// If the port is in use, Run returns an error. The worker then calls Run again.
func TestAWebhookWhosePortIsInUseIsAnError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.NoError(err)
	defer l.Close()
	w.carrier, err = telegram.New(w.URL(), token, slog.New(slog.NewTextHandler(&log, nil)))
	w.NoError(err)
	w.NoError(w.carrier.UseWebhook(hookAt(l.Addr().String())))
	w.ErrorContains(w.carrier.Run(w.ctx, w.desk), "connectors.telegram.webhook.listen: listen tcp")
	w.Empty(w.Webhook())
}
