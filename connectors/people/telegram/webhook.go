package telegram

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// hookPath ends the address of every webhook of nod's: by it nod knows its own,
	// and removes nobody else's.
	hookPath = "/nod/telegram"
	// hookSecret is the header in which Telegram shows the secret.
	hookSecret = "X-Telegram-Bot-Api-Secret-Token"
	// maxUpdate bounds one update; the longest there are have two long messages.
	maxUpdate = 1 << 20
	// hookEvery is how often nod looks whether the webhook is set still, and whether
	// anything waits.
	hookEvery = 30 * time.Second
	// minSecret is the shortest secret.
	minSecret = 16
)

// Webhook is how Telegram reaches nod, where nod does not poll.
type Webhook struct {
	Listen    string // HOST:PORT; without TLS of this machine alone
	PublicURL string // https://, without hookPath
	Secret    string
	TLS       *tls.Certificate // nil behind a reverse proxy
}

// Receive has Run take what people press and write through a webhook. It refuses
// what would let others than Telegram in, or show the secret to the network.
func (c *Carrier) Receive(w Webhook) error {
	u, err := url.Parse(w.PublicURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("connectors.telegram.webhook.public_url: it must be a plain address that begins with https://, such as https://nod.example.com")
	}
	host, _, err := net.SplitHostPort(w.Listen)
	if err != nil {
		return errors.New("connectors.telegram.webhook.listen: it must be HOST:PORT, such as 127.0.0.1:4281")
	}
	if w.TLS == nil && !loopback(host) {
		return errors.New("connectors.telegram.webhook.listen: without cert_file and key_file it must be of this machine alone, such as 127.0.0.1:4281, with a reverse proxy before it")
	}
	if len(w.Secret) < minSecret || len(w.Secret) > 256 || strings.Trim(w.Secret, secretLetters) != "" {
		return fmt.Errorf("connectors.telegram.webhook: the secret must be %d to 256 letters, digits, _ and -: make one with `openssl rand -hex 32`", minSecret)
	}
	w.PublicURL = strings.TrimRight(w.PublicURL, "/") + hookPath
	c.hook, c.api.secrets = &w, append(c.api.secrets, w.Secret)
	return nil
}

const secretLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"

// receive serves the webhook until ctx ends. It stays set then: what people press
// while nobody serves it waits at Telegram, as it does without one.
func (c *Carrier) receive(ctx context.Context, desk people.Desk) error {
	listener, err := net.Listen("tcp", c.hook.Listen)
	if err != nil {
		return fmt.Errorf("connectors.telegram.webhook.listen: %w", err)
	}
	if c.hook.TLS != nil {
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*c.hook.TLS}, MinVersion: tls.VersionTLS12})
	}
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.called(w, r, desk) }),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: callTimeout, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(c.log.Handler(), slog.LevelDebug), // strangers' broken connections
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	err = c.hooked(ctx, ended)
	// What is being handled ends with ctx, and is answered so that it comes again.
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout)
	defer cancel()
	if server.Shutdown(stopping) != nil {
		_ = server.Close() // it may be closed
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// hooked sets the webhook, and again where somebody removed it. It returns when
// ctx or the serving ends.
func (c *Carrier) hooked(ctx context.Context, ended <-chan error) error {
	if err := c.setHook(ctx); err != nil {
		return err
	}
	for {
		wait := hookEvery
		heard, err := c.look(ctx)
		if err != nil {
			return err
		}
		if !heard {
			wait = pollPause
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return err
		case <-time.After(wait):
		}
	}
}

func (c *Carrier) setHook(ctx context.Context) error {
	return c.api.call(ctx, "setWebhook", map[string]any{"url": c.hook.PublicURL, "secret_token": c.hook.Secret, "allowed_updates": allowed}, nil)
}

// look reports whether Telegram has sent what waited.
func (c *Carrier) look(ctx context.Context) (heard bool, err error) {
	var now hookInfo
	asked := c.late.now()
	if err := c.api.call(ctx, "getWebhookInfo", struct{}{}, &now); err != nil {
		return false, err
	}
	if !strings.HasSuffix(now.URL, hookPath) {
		return false, c.setHook(ctx)
	}
	return now.Pending == 0 && c.late.heard(asked), nil
}

type hookInfo struct {
	URL     string `json:"url"`
	Pending int    `json:"pending_update_count"`
}

// called takes one update. It is confirmed only when nod has taken or refused it
// for good: Telegram sends again what is not.
func (c *Carrier) called(w http.ResponseWriter, r *http.Request, desk people.Desk) {
	shown := []byte(r.Header.Get(hookSecret))
	switch {
	case subtle.ConstantTimeCompare(shown, []byte(c.hook.Secret)) != 1:
		http.Error(w, "this is not for you", http.StatusForbidden)
		return
	case r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, hookPath):
		http.Error(w, "nothing is here", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpdate))
	if err != nil {
		http.Error(w, "the update is too long, or was cut off", http.StatusRequestEntityTooLarge)
		return
	}
	var u update
	if err := json.Unmarshal(body, &u); err != nil || u.ID == 0 {
		http.Error(w, "this is no update", http.StatusBadRequest)
		return
	}
	if err := c.handle(r.Context(), desk, u); err != nil {
		c.log.Warn("telegram: an update was not taken; it comes again", "update", u.ID, "error", err)
		http.Error(w, "not taken: send it again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// errForeign is a webhook of another program's.
var errForeign = errors.New("another program receives what this bot is told, through a webhook of its own: give nod a bot of its own, or remove that webhook")

// leave removes a webhook of nod's own, so that nod may poll. One that is not
// nod's stays, and is told of.
func (c *Carrier) leave(ctx context.Context) error {
	var now hookInfo
	if err := c.api.call(ctx, "getWebhookInfo", struct{}{}, &now); err != nil || now.URL == "" {
		return err
	}
	if !strings.HasSuffix(now.URL, hookPath) {
		return &people.Error{After: rivalPause, Err: errForeign}
	}
	return c.api.call(ctx, "deleteWebhook", struct{}{}, nil)
}

// openHook reads what the settings name of a webhook.
func openHook(s *schemas.TelegramWebhook) (w Webhook, err error) {
	w = Webhook{Listen: s.Listen, PublicURL: s.PublicURL}
	w.Secret, err = readSecret("connectors.telegram.webhook.secret", s.SecretEnv, s.SecretFile, "a secret of your own")
	if err != nil || s.CertFile == "" {
		return w, err
	}
	cert, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		return w, fmt.Errorf("connectors.telegram.webhook.cert_file and key_file: %w", err)
	}
	w.TLS = &cert
	return w, nil
}
