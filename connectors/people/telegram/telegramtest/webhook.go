package telegramtest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"time"
)

type hook struct {
	url, secret string
	stop        context.CancelFunc
}

// hookAgain is the time after which the server repeats an update that the webhook refused.
const hookAgain = 50 * time.Millisecond

// Proxy sets the address to which the server sends the updates for any webhook, such as
// http://127.0.0.1:4281. The server thus acts as the proxy at the webhook's public address.
func (s *Server) Proxy(target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proxy = target
}

// ForeignWebhook sets the webhook of another program. That program then receives the bot's updates.
func (s *Server) ForeignWebhook() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unhook()
	s.hook = &hook{url: "https://elsewhere.example/hook", stop: func() {}}
}

// Webhook returns the address of the webhook, or "" if no webhook is set.
func (s *Server) Webhook() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook == nil {
		return ""
	}
	return s.hook.url
}

func (s *Server) unhook() {
	if s.hook != nil {
		s.hook.stop()
		s.hook = nil
	}
}

var secretWords = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)

// setWebhook ends the open poll and starts to send updates, including the updates that are waiting.
func (s *Server) setWebhook(_ *http.Request, body []byte) (any, *failure) {
	var m struct {
		URL     string   `json:"url"`
		Secret  string   `json:"secret_token"`
		Allowed []string `json:"allowed_updates"`
	}
	if f := strict(body, &m); f != nil {
		return nil, f
	}
	u, err := url.Parse(m.URL)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		return nil, bad("bad webhook: An HTTPS URL must be provided for webhook")
	case u.Port() != "" && u.Port() != "443" && u.Port() != "80" && u.Port() != "88" && u.Port() != "8443":
		return nil, bad("bad webhook: Webhook can be set up only on ports 80, 88, 443 or 8443")
	case !secretWords.MatchString(m.Secret):
		return nil, bad("secret token contains unallowed characters")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unhook()
	if s.poll != nil {
		close(s.poll)
		s.poll = nil
	}
	ctx, stop := context.WithCancel(context.Background())
	s.hook = &hook{m.URL, m.Secret, stop}
	go s.send(ctx, u.Path, m.Secret)
	return true, nil
}

func (s *Server) deleteWebhook(_ *http.Request, body []byte) (any, *failure) {
	if f := strict(body, &struct{}{}); f != nil {
		return nil, f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unhook()
	return true, nil
}

func (s *Server) getWebhookInfo(_ *http.Request, body []byte) (any, *failure) {
	if f := strict(body, &struct{}{}); f != nil {
		return nil, f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	info := map[string]any{"url": "", "pending_update_count": len(s.updates)}
	if s.hook != nil {
		info["url"] = s.hook.url
	}
	return info, nil
}

// send sends one update after another until ctx ends. It repeats an update until the webhook confirms
// it.
func (s *Server) send(ctx context.Context, path, secret string) {
	for ctx.Err() == nil {
		s.mu.Lock()
		found, wake, target := append([]update{}, s.updates...), s.wake, s.proxy
		s.mu.Unlock()
		again := time.NewTimer(hookAgain)
		switch {
		case len(found) == 0:
			select {
			case <-wake:
			case <-ctx.Done():
			}
		case s.took(ctx, target+path, secret, found[0]):
			s.mu.Lock()
			s.forgetBelow(found[0].ID + 1)
			s.mu.Unlock()
		default:
			select {
			case <-again.C:
			case <-ctx.Done():
			}
		}
		again.Stop()
	}
}

func (s *Server) took(ctx context.Context, target, secret string, u update) bool {
	data, err := json.Marshal(u)
	if err != nil {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(data))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // only the status of the reply counts
	return resp.StatusCode == http.StatusOK
}
