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
	// callTimeout is the time limit of every call except a long poll.
	callTimeout = 15 * time.Second
	// pollFor is the longest time for which the server may hold a poll open.
	pollFor = 50 * time.Second
	// pollPause is the time between two polls if the server does not hold polls open.
	pollPause = time.Second
	// rivalPause is the time between two attempts while another program receives the bot's updates.
	rivalPause = 30 * time.Second
	// maxUpdates is the number of updates in a full reply. After a reply with fewer updates, no
	// further update was waiting.
	maxUpdates = 100
	// maxReply is the largest reply in bytes. It is enough for a hundred updates of the largest size.
	maxReply = 16 << 20
)

// api calls the methods of Telegram's Bot API. Every URL contains the bot's token, but no error does.
type api struct {
	client *http.Client
	base   string // the server's address, without a trailing slash
	token  string
	// secrets contains the texts that clean removes from every error.
	secrets []string
}

// newAPI returns the api of one bot. It refuses an address that would send the token unencrypted over
// the network.
func newAPI(base, token string) (*api, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("connectors.telegram.base_url: it must be a plain address such as https://api.telegram.org")
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
		return nil, errors.New("connectors.telegram.base_url: it must begin with https://, as the bot's token travels in it; http:// is for this machine alone")
	}
	if token == "" || strings.Trim(token, tokenLetters) != "" {
		return nil, errors.New("the Telegram bot's token is malformed: copy the one from @BotFather, such as 123456:ABC-DEF")
	}
	return &api{
		client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a redirect would send the token to another host
		}},
		base:  strings.TrimRight(base, "/"),
		token: token, secrets: []string{token},
	}, nil
}

const tokenLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-:"

func loopback(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

type apiError struct {
	method      string
	code        int
	description string
	after       time.Duration
}

func (f *apiError) Error() string {
	text := fmt.Sprintf("telegram %s: %d %s", f.method, f.code, f.description)
	switch {
	case f.code == http.StatusUnauthorized, f.code == http.StatusNotFound:
		text += ": the bot's token is refused; put the one from @BotFather into the file or variable that connectors.telegram names"
	case f.unreachable():
		text += ": the person must open the bot in Telegram and press Start"
	case f.code == http.StatusConflict:
		text += ": one program at a time may poll a bot; stop the other one, or remove the bot's webhook"
	}
	return text
}

func (f *apiError) unreachable() bool {
	return f.code == http.StatusForbidden || f.code == http.StatusBadRequest && f.says("chat not found", "user not found", "PEER_ID_INVALID")
}

// says reports whether the server's description of the error contains one of the parts.
func (f *apiError) says(parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(f.description, part) {
			return true
		}
	}
	return false
}

// carrierError converts f to an error that tells the worker whether and when to retry.
func (f *apiError) carrierError() *people.Error {
	e := &people.Error{Err: f}
	switch {
	case f.code == http.StatusTooManyRequests:
		e.After = max(f.after, time.Second)
	case f.code == http.StatusConflict:
		e.After = rivalPause
	case f.unreachable():
		e.Unreachable = true
	case f.code == http.StatusRequestTimeout, f.code >= 500, f.code < 400: // a temporary fault
	default:
		e.Permanent = true
	}
	return e
}

// isRefusal reports whether err is a reply 400 Bad Request whose description contains one of the
// parts.
func isRefusal(err error, parts ...string) bool {
	var f *apiError
	return errors.As(err, &f) && f.code == http.StatusBadRequest && f.says(parts...)
}

// reply is the JSON object in which the server sends every result and every error.
type reply struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int `json:"retry_after"`
	} `json:"parameters"`
}

// call calls a method. Its errors are *people.Error or, after ctx has ended, ctx's own. If a call
// timed out, the server may have executed it.
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
		return a.networkError(method, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return a.networkError(method, err)
	}
	return a.read(method, resp, data, result)
}

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
			return &people.Error{Err: fmt.Errorf("telegram %s: the reply has an unexpected form: %s", method, a.clean(err.Error()))}
		}
		return nil
	}
	if r.Parameters.RetryAfter == 0 {
		r.Parameters.RetryAfter, _ = strconv.Atoi(resp.Header.Get("Retry-After")) // 0 if there is no such header
	}
	f := &apiError{method: method, code: r.Code, description: a.clean(r.Description), after: time.Duration(r.Parameters.RetryAfter) * time.Second}
	if f.code == 0 {
		f.code = resp.StatusCode
	}
	return f.carrierError()
}

// networkError wraps a network error. It keeps only the cause: the text of the HTTP client's own error
// contains the URL, and therefore the token.
func (a *api) networkError(method string, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return &people.Error{Err: fmt.Errorf("telegram %s: %s", method, a.clean(err.Error()))}
}

// clean prepares a text of the server for an error: it returns one line of limited length, without
// secrets. A server or a proxy may repeat a secret.
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
