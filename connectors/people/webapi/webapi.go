// Package webapi makes the HTTP calls of a channel to its service, such as Slack's. It handles
// redirects, replies that are too long, rate limits and secrets in errors in the same way for all
// channels.
package webapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/internal/loopback"
)

// MaxWait is the longest time for which a channel waits if its service asks it to wait.
const MaxWait = 24 * time.Hour

// maxErrorText is the largest number of characters of a service's text in an error.
const maxErrorText = 300

// Client calls one service. It follows no redirects, because a redirect would send a secret to another
// host. It is safe for concurrent use.
type Client struct {
	HTTP    *http.Client
	name    string   // the channel's name, with which each error begins
	secrets []string // the texts that Clean removes
}

// New returns the client of a channel. No error of the client contains one of these secrets.
func New(name string, secrets ...string) *Client {
	return &Client{name: name, secrets: secrets, HTTP: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Hide adds secrets to the texts that Clean removes. The caller must not call Hide while the client is in
// use.
func (c *Client) Hide(secrets ...string) { c.secrets = append(c.secrets, secrets...) }

// Named returns a copy of the client whose errors name this method of the service.
func (c *Client) Named(method string) *Client {
	named := *c
	named.name += " " + method
	return &named
}

// Reply is the whole reply to a call.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// After returns the time in the header Retry-After, for which the service asks the channel to wait. The
// time is at most MaxWait, and 0 if there is no such header.
func (r *Reply) After(now time.Time) time.Duration {
	after, _ := RetryAfter(r.Header.Get("Retry-After"), now)
	return after
}

// Post sends a body to an address. Its errors are *people.Error. After an error the service may have
// executed the call. maxReply is the largest reply in bytes; Post drops the rest of a longer reply.
func (c *Client) Post(ctx context.Context, address string, header http.Header, body []byte, maxReply int64) (Reply, error) {
	return c.Do(ctx, http.MethodPost, address, header, body, maxReply)
}

// Do is Post with any HTTP method.
func (c *Client) Do(ctx context.Context, method, address string, header http.Header, body []byte, maxReply int64) (Reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return Reply{}, &people.Error{Permanent: true, Err: fmt.Errorf("%s: the address is not valid", c.name)}
	}
	if header != nil {
		req.Header = header
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return Reply{}, c.NetworkError(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return Reply{}, c.NetworkError(err)
	}
	return Reply{resp.StatusCode, resp.Header, data}, nil
}

// NetworkError converts an error of the HTTP client. It keeps only the cause, because the text of
// the client's error contains the URL, which can contain a secret.
func (c *Client) NetworkError(err error) *people.Error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return &people.Error{Err: fmt.Errorf("%s: %s", c.name, c.Clean(err.Error()))}
}

// Clean returns a text of the service in a form that is safe in an error: one line of limited
// length, without this client's secrets, which a service or a proxy may repeat.
func (c *Client) Clean(text string) string {
	for _, secret := range c.secrets {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	text = people.Line(text)
	if runes := []rune(text); len(runes) > maxErrorText {
		text = string(runes[:maxErrorText]) + "…"
	}
	return text
}

// Base checks the base URL of a service and returns it without a trailing slash. It refuses a URL
// that would send a secret unencrypted to another machine. The parameter what names the secret
// for the error, such as "the bot's token". The error is one line that begins with the setting.
func Base(setting, base, example, what string) (string, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("%s: it must be a plain address such as %s", setting, example)
	case u.Scheme != "https" && !(u.Scheme == "http" && loopback.Is(u.Hostname())):
		return "", fmt.Errorf("%s: it must begin with https://, as %s travels with each call; http:// is for this machine alone", setting, what)
	}
	return strings.TrimRight(base, "/"), nil
}

// RetryAfter parses a header Retry-After: a number of seconds, or a date. It returns at most MaxWait.
// asked is false if the header is missing or malformed.
func RetryAfter(text string, now time.Time) (after time.Duration, asked bool) {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, MaxWait), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), MaxWait), true
}
