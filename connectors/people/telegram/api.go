package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/webapi"
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
	*webapi.Client
	base  string // the server's address, without a trailing slash
	token string
}

// newAPI returns the api of one bot. It refuses an address that would send the token unencrypted over
// the network.
func newAPI(base, token string) (*api, error) {
	base, err := webapi.Base("connectors.telegram.base_url", base, "https://api.telegram.org", "the bot's token")
	if err != nil {
		return nil, err
	}
	if token == "" || strings.Trim(token, tokenLetters) != "" {
		return nil, errors.New("the Telegram bot's token is malformed: copy the one from @BotFather, such as 123456:ABC-DEF")
	}
	return &api{Client: webapi.New(Name, token), base: base, token: token}, nil
}

const tokenLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-:"

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

// says reports whether the server's description of the error contains one of these texts.
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
	case f.code == http.StatusRequestTimeout, f.code >= 500, f.code < 400: // the fault is temporary
	default:
		e.Permanent = true
	}
	return e
}

// isRefusal reports whether err is a reply 400 Bad Request whose description contains one of these texts.
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
	resp, err := a.Named(method).Post(ctx, a.base+"/bot"+a.token+"/"+method, http.Header{"Content-Type": {"application/json"}}, body, maxReply)
	if err != nil {
		return err
	}
	return a.read(method, &resp, result)
}

func (a *api) read(method string, resp *webapi.Reply, result any) error {
	var r reply
	if json.Unmarshal(resp.Body, &r) != nil || resp.Status >= 300 && r.Description == "" {
		r = reply{Code: resp.Status, Description: http.StatusText(resp.Status)}
	}
	if resp.Status == http.StatusOK && r.OK {
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(r.Result, result); err != nil {
			return &people.Error{Err: fmt.Errorf("telegram %s: the reply has an unexpected form: %s", method, a.Clean(err.Error()))}
		}
		return nil
	}
	f := &apiError{method: method, code: cmp.Or(r.Code, resp.Status), description: a.Clean(r.Description), after: resp.After(time.Now())}
	if r.Parameters.RetryAfter != 0 {
		f.after = min(time.Duration(r.Parameters.RetryAfter)*time.Second, webapi.MaxWait)
	}
	return f.carrierError()
}
