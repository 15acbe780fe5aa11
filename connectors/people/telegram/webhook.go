package telegram

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people"
)

const (
	// hookPath is the end of the address of every webhook that nod sets. It distinguishes nod's
	// webhooks from those of other programs, which nod does not remove.
	hookPath   = "/nod/telegram"
	hookSecret = "X-Telegram-Bot-Api-Secret-Token"
	// maxUpdate is the largest update in bytes. The longest update contains two long messages.
	maxUpdate = 1 << 20
	// hookCheckEvery is the interval at which nod checks whether the webhook is still set and
	// whether updates wait at Telegram.
	hookCheckEvery = 30 * time.Second
	// minSecret is the smallest length of the secret, in characters.
	minSecret = 16
)

// Webhook describes the HTTP server to which Telegram sends updates, if the carrier does not poll.
type Webhook struct {
	Listen    string // the address to listen on, HOST:PORT; without TLS, only a loopback address is accepted
	PublicURL string // the public address, an https:// URL without hookPath
	Secret    string
	TLS       *tls.Certificate // the certificate; nil behind a reverse proxy
}

// UseWebhook makes Run receive updates through a webhook. It returns an error for a webhook that would
// accept other callers than Telegram, or send the secret unencrypted over the network.
func (c *Carrier) UseWebhook(w Webhook) error {
	u, err := url.Parse(w.PublicURL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("connectors.telegram.webhook.public_url: it must be a plain address that begins with https://, such as https://nod.example.com")
	}
	if err := w.server().Check(); err != nil {
		return err
	}
	if len(w.Secret) < minSecret || len(w.Secret) > 256 || strings.Trim(w.Secret, secretLetters) != "" {
		return fmt.Errorf("connectors.telegram.webhook: the secret must be %d to 256 letters, digits, _ and -: make one with `openssl rand -hex 32`", minSecret)
	}
	w.PublicURL = strings.TrimRight(w.PublicURL, "/") + hookPath
	c.hook = &w
	c.api.Hide(w.Secret)
	return nil
}

func (w *Webhook) server() *httpserve.Hook {
	return &httpserve.Hook{Setting: "connectors.telegram.webhook", Listen: w.Listen, TLS: w.TLS}
}

const secretLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"

// serveWebhook serves the webhook until ctx ends. It does not remove the webhook then, so updates wait at
// Telegram until a worker receives them. An update that is being handled when ctx ends gets an error as
// the reply, so that Telegram sends it again.
func (c *Carrier) serveWebhook(ctx context.Context, desk people.Desk) error {
	return c.hook.server().Serve(ctx, c.log, func(w http.ResponseWriter, r *http.Request) { c.serveUpdate(w, r, desk) }, c.keepWebhook)
}

// keepWebhook sets the webhook, and sets it again if it was removed. It returns when ctx ends.
func (c *Carrier) keepWebhook(ctx context.Context) error {
	if err := c.setHook(ctx); err != nil {
		return err
	}
	for {
		wait := hookCheckEvery
		heard, err := c.checkBacklog(ctx)
		if err != nil {
			return err
		}
		if !heard {
			wait = pollPause
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (c *Carrier) setHook(ctx context.Context) error {
	return c.api.call(ctx, "setWebhook", map[string]any{"url": c.hook.PublicURL, "secret_token": c.hook.Secret, "allowed_updates": allowed}, nil)
}

// checkBacklog reports whether no update is waiting at Telegram. If the webhook was removed or
// replaced, it sets the webhook again.
func (c *Carrier) checkBacklog(ctx context.Context) (heard bool, err error) {
	var now hookInfo
	askedAt := c.backlog.now()
	if err := c.api.call(ctx, "getWebhookInfo", struct{}{}, &now); err != nil {
		return false, err
	}
	if !strings.HasSuffix(now.URL, hookPath) {
		return false, c.setHook(ctx)
	}
	return now.Pending == 0 && c.backlog.drained(askedAt), nil
}

type hookInfo struct {
	URL     string `json:"url"`
	Pending int    `json:"pending_update_count"`
}

// serveUpdate handles one update. It confirms the update only after nod has stored the answer or
// refused it permanently. Telegram sends an unconfirmed update again.
func (c *Carrier) serveUpdate(w http.ResponseWriter, r *http.Request, desk people.Desk) {
	shown := []byte(r.Header.Get(hookSecret))
	switch {
	case subtle.ConstantTimeCompare(shown, []byte(c.hook.Secret)) != 1:
		http.Error(w, "only Telegram may call this address", http.StatusForbidden)
		return
	case r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, hookPath):
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpdate))
	if err != nil {
		http.Error(w, "the update is too long, or was cut off", http.StatusRequestEntityTooLarge)
		return
	}
	var u update
	if err := json.Unmarshal(body, &u); err != nil || u.ID == 0 {
		http.Error(w, "this is not an update", http.StatusBadRequest)
		return
	}
	if err := c.handle(r.Context(), desk, u); err != nil {
		c.log.Warn("telegram: an update could not be handled; Telegram sends it again", "update", u.ID, "error", err)
		http.Error(w, "not taken: send it again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

var errForeign = errors.New("another program receives this bot's updates, through its own webhook: give nod its own bot, or remove that webhook")

// removeWebhook removes a webhook of nod, because Telegram refuses polls while a webhook is set. If
// the webhook belongs to another program, it returns errForeign and removes nothing.
func (c *Carrier) removeWebhook(ctx context.Context) error {
	var now hookInfo
	if err := c.api.call(ctx, "getWebhookInfo", struct{}{}, &now); err != nil || now.URL == "" {
		return err
	}
	if !strings.HasSuffix(now.URL, hookPath) {
		return &people.Error{After: rivalPause, Err: errForeign}
	}
	return c.api.call(ctx, "deleteWebhook", struct{}{}, nil)
}
