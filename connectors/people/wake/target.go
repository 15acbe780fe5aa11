package wake

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"net/url"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/webapi"
	"github.com/nodbus/nod/internal/loopback"
	"github.com/nodbus/nod/schemas"
)

// message is one notification for one target.
type message struct {
	people.Wakeup
	id     string // the id of the notification: webhook-id or Message-ID; see messageID
	first  string // the id of the notification that the same request waits; the mail about the outcome refers to this id
	event  string
	at     time.Time // the time of this attempt to send the notification
	prompt *schemas.Prompt
}

// text returns the message's text. If the target's settings permit the payload, the text contains the
// payload, or says that the payload would make the text longer than limit bytes.
func (m *message) text(t *target, limit int) string {
	if !t.Payload {
		return m.Text
	}
	return m.Text + "\n\n" + people.Payload(m.prompt, m.at, limit-len(m.Text)-2)
}

// target is a Target whose secrets have been read.
type target struct {
	*Target
	url    *url.URL
	secret string
	key    []byte        // the key of a webhook's signature
	from   *mail.Address // set for the kind mail, like the field to
	to     *mail.Address
}

// newTarget checks a target's settings, and reads its address and its secret.
func newTarget(s *Target) (*target, error) {
	t, setting := &target{Target: s}, "connectors.wake.targets "+s.Name+"."
	address := s.URL
	var err error
	if address == "" {
		if address, err = people.ReadSecret(setting+"url", s.URLEnv, s.URLFile, "the address"); err != nil {
			return nil, err
		}
	}
	if t.url, err = t.Kind.parseURL(address); err != nil {
		return nil, fmt.Errorf("%surl: %w", setting, err)
	}
	if s.SecretEnv+s.SecretFile != "" {
		if t.secret, err = people.ReadSecret(setting+"secret", s.SecretEnv, s.SecretFile, "the secret"); err != nil {
			return nil, err
		}
	}
	if s.Kind == Mail {
		if t.from, err = parseMailbox(s.From); err == nil {
			t.to, err = parseMailbox(s.To)
		}
		if err != nil {
			return nil, fmt.Errorf("%sfrom and to: %w", setting, err)
		}
	}
	if s.Kind == Webhook {
		if t.key, err = webhookKey(t.secret); err != nil {
			return nil, fmt.Errorf("%ssecret: %w", setting, err)
		}
	}
	if strings.ContainsFunc(t.secret, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, fmt.Errorf("%ssecret: it must be one line of ASCII characters", setting)
	}
	return t, nil
}

// parseURL parses an address to which nod sends messages. Its errors do not contain the address.
func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return nil, errors.New("it must be a plain address such as https://ntfy.example.com")
	case u.Scheme != "https" && !(u.Scheme == "http" && loopback.Is(u.Hostname())):
		return nil, errors.New("it must begin with https://; http:// is for this machine alone")
	}
	return u, nil
}

// parseURL parses the address of a target of this kind.
func (k Kind) parseURL(address string) (*url.URL, error) {
	if k != Mail {
		return parseURL(address)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return nil, errors.New("it must be smtps://HOST or smtp://HOST, with :PORT if it is not 465 or 587")
	}
	return u, nil
}

// webhookKey decodes a secret of Standard Webhooks.
func webhookKey(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) < 24 || len(key) > 64 {
		return nil, errors.New("a webhook's secret is whsec_ and 24 to 64 bytes in base64: make one with `echo whsec_$(openssl rand -base64 32)`")
	}
	return key, nil
}

// hostPort returns the address of the target's server.
func (t *target) hostPort() string {
	if t.url.Port() != "" {
		return t.url.Host
	}
	return t.url.Host + map[string]string{"http": ":80", "https": ":443", "smtp": ":587", "smtps": ":465"}[t.url.Scheme]
}

// wait returns how long p must still wait until the target is notified. The result is 0 or
// negative if the notification is due.
func (t *target) wait(p *schemas.Prompt, now time.Time) time.Duration {
	waited := now.Sub(p.Request.CreatedAt)
	if waited < -maxSkew {
		return 0
	}
	return time.Duration(t.AfterSeconds)*time.Second - waited
}

// request returns the HTTP request that sends m.
func (t *target) request(ctx context.Context, m *message) (*http.Request, error) {
	var body []byte
	header := http.Header{}
	var err error
	switch t.Kind {
	case Webhook:
		body, err = t.webhook(m, header)
	case Ntfy:
		body, err = t.ntfy(m, header)
	default:
		body, err = t.template(m, header)
	}
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address is not valid")
	}
	header.Set("User-Agent", "nod")
	req.Header = header
	return req, nil
}

// result converts an HTTP response to nil or to an error that tells the worker whether and when
// to retry.
func (t *target) result(resp *http.Response, now time.Time) error {
	code := resp.StatusCode
	if code/100 == 2 {
		return nil
	}
	e := &people.Error{Err: fmt.Errorf("wake %s: its server replied %d %s", t.Name, code, http.StatusText(code))}
	after, asked := webapi.RetryAfter(resp.Header.Get("Retry-After"), now)
	switch {
	case code == http.StatusGone:
		e.Unreachable = true
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable && asked:
		e.After = max(after, time.Second)
	case code == http.StatusRequestTimeout, code >= 500: // the fault is temporary
	case code/100 == 3:
		e.Permanent = true
		e.Err = fmt.Errorf("wake %s: its server redirects, which nod does not follow: put the new address into connectors.wake.targets", t.Name)
	default:
		e.Permanent = true
		e.Err = fmt.Errorf("%w: check its address, fields and secret under connectors.wake.targets", e.Err)
	}
	return e
}
