package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
)

const (
	// callTimeout bounds every call but the long poll.
	callTimeout = 15 * time.Second
	// pollFor is how long the server may hold a poll open.
	pollFor = 50 * time.Second
	// pollPause is between polls that come back at once with nothing.
	pollPause = time.Second
	// rivalPause is how long a poller that was pushed aside leaves the bot to
	// the other one.
	rivalPause = 30 * time.Second
	// maxUpdates is how many come at once: fewer are all there were.
	maxUpdates = 100
	// maxReply bounds what is read of a reply: a hundred updates at their longest.
	maxReply = 16 << 20
)

// api calls the methods of the Bot API. The token is part of every address and
// of no error.
type api struct {
	client *http.Client
	base   string // without a slash at its end
	token  string
	// secrets are what no error may show.
	secrets []string
}

// newAPI refuses an address that would show the token to the network.
func newAPI(base, token string) (*api, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("connectors.telegram.base_url: it must be a plain address such as https://api.telegram.org")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
		return nil, errors.New("connectors.telegram.base_url: it must begin with https://, as the bot's token travels in it; http:// is for this machine alone")
	}
	if token == "" || strings.Trim(token, tokenLetters) != "" {
		return nil, errors.New("the Telegram bot's token is not one: copy what @BotFather gave, such as 123456:ABC-DEF")
	}
	return &api{
		client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // another host would be given the token
		}},
		base:  strings.TrimRight(base, "/"),
		token: token, secrets: []string{token},
	}, nil
}

const tokenLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-:"

func loopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

// fault is a refusal in the server's words.
type fault struct {
	method      string
	code        int
	description string
	after       time.Duration
}

func (f *fault) Error() string {
	text := fmt.Sprintf("telegram %s: %d %s", f.method, f.code, f.description)
	switch {
	case f.code == http.StatusUnauthorized, f.code == http.StatusNotFound:
		text += ": the bot's token is refused; put the one that @BotFather gave where connectors.telegram says"
	case f.unreachable():
		text += ": the person must open the bot in Telegram and press Start"
	case f.code == http.StatusConflict:
		text += ": one program at a time may poll a bot; stop the other one, or remove the bot's webhook"
	}
	return text
}

func (f *fault) unreachable() bool {
	return f.code == http.StatusForbidden || f.code == http.StatusBadRequest && f.says("chat not found", "user not found", "PEER_ID_INVALID")
}

// says reports whether the description has one of these in it.
func (f *fault) says(parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(f.description, part) {
			return true
		}
	}
	return false
}

// verdict tells the retry loop what a fault means.
func (f *fault) verdict() *people.Error {
	e := &people.Error{Err: f}
	switch {
	case f.code == http.StatusTooManyRequests:
		e.After = max(f.after, time.Second)
	case f.code == http.StatusConflict:
		e.After = rivalPause
	case f.unreachable():
		e.Unreachable = true
	case f.code == http.StatusRequestTimeout, f.code >= 500, f.code < 400: // it may pass
	default:
		e.Permanent = true
	}
	return e
}

// refused is the server's refusal in err, if it is one.
func refused(err error, parts ...string) bool {
	var f *fault
	return errors.As(err, &f) && f.code == http.StatusBadRequest && f.says(parts...)
}

// reply is what every method answers.
type reply struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int `json:"retry_after"`
	} `json:"parameters"`
}

// call calls a method. Its errors are *people.Error, or ctx's own once that has
// ended; a call that timed out may have been carried out.
func (a *api) call(ctx context.Context, method string, params, result any) error {
	timeout := callTimeout
	if method == "getUpdates" {
		timeout += pollFor
	}
	hop, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := a.post(hop, method, params, result)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (a *api) post(ctx context.Context, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return &people.Error{Permanent: true, Err: fmt.Errorf("telegram %s: encode: %w", method, err)}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/bot"+a.token+"/"+method, bytes.NewReader(body))
	if err != nil {
		return &people.Error{Permanent: true, Err: fmt.Errorf("telegram %s: the address is not valid", method)}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return a.passing(method, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return a.passing(method, err)
	}
	return a.read(method, resp, data, result)
}

// read takes a reply apart.
func (a *api) read(method string, resp *http.Response, data []byte, result any) error {
	var r reply
	if json.Unmarshal(data, &r) != nil || resp.StatusCode >= 300 && r.Description == "" {
		r = reply{Code: resp.StatusCode, Description: http.StatusText(resp.StatusCode)}
	}
	if resp.StatusCode == http.StatusOK && r.OK {
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(r.Result, result); err != nil {
			return &people.Error{Err: fmt.Errorf("telegram %s: the reply is not as expected: %s", method, a.clean(err.Error()))}
		}
		return nil
	}
	if r.Parameters.RetryAfter == 0 {
		r.Parameters.RetryAfter, _ = strconv.Atoi(resp.Header.Get("Retry-After")) // none is 0
	}
	f := &fault{method: method, code: r.Code, description: a.clean(r.Description), after: time.Duration(r.Parameters.RetryAfter) * time.Second}
	if f.code == 0 {
		f.code = resp.StatusCode
	}
	return f.verdict()
}

// passing is a fault of the network. The library's error names the address,
// and with it the token: only what is inside is told.
func (a *api) passing(method string, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return &people.Error{Err: fmt.Errorf("telegram %s: %s", method, a.clean(err.Error()))}
}

// clean makes a text of others fit for errors: on one line, not endless, and
// without a secret, whatever a server or a proxy echoes.
func (a *api) clean(text string) string {
	for _, secret := range a.secrets {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	text = people.Line(text)
	if runes := []rune(text); len(runes) > 300 {
		text = string(runes[:300]) + "…"
	}
	return text
}
