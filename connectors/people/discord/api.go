package discord

import (
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
	// callTimeout is the time limit of one call of Discord's server.
	callTimeout = 15 * time.Second
	// rateWait is the pause if Discord limits the rate without saying for how long.
	rateWait = 30 * time.Second
	// maxReply is the largest reply in bytes.
	maxReply = 4 << 20
	// userAgent has the form that Discord demands.
	userAgent = "DiscordBot (https://github.com/nodbus/nod, 1)"
)

// api calls Discord's HTTP API. The token is in a header, and in no URL or error.
type api struct {
	*webapi.Client
	base  string // the server's address, without a trailing slash
	token string
}

func newAPI(base, token string) (*api, error) {
	base, err := webapi.Base("connectors.discord.base_url", base, defaultBase, "the bot's token")
	switch {
	case err != nil:
		return nil, err
	case token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("connectors.discord: the bot's token has the wrong form: copy it from the page Bot of the app at https://discord.com/developers/applications")
	}
	return &api{Client: webapi.New(Name, token), base: base, token: token}, nil
}

// The codes of Discord's errors to which nod reacts in a special way.
const (
	unknownMessage      = 10008
	alreadyAcknowledged = 40060 // the error that an interaction was already acknowledged
)

// The codes of Discord's errors, grouped by how nod reacts to them:
// https://docs.discord.com/developers/topics/opcodes-and-status-codes.
var (
	unreachableErrors = map[int]bool{
		10003: true, // the channel is unknown
		10013: true, // the user is unknown
		50001: true, // the bot has no access
		50007: true, // the bot cannot send messages to this user
		50033: true, // the recipient is invalid
		50278: true, // the bot cannot send messages to this user, because they share no server
	}
	limitErrors = map[int]bool{
		20028: true, // the write rate of the channel is exceeded
		30046: true, // a message older than one hour was edited too often
		40003: true, // private conversations are opened too fast
		40062: true, // the resource is rate limited
	}
)

type apiError struct {
	method string
	status int
	code   int // 0 if Discord sent no code
	detail string
	after  time.Duration // the time that Discord asks nod to wait; 0 if Discord named no time
}

func (f *apiError) Error() string {
	text := fmt.Sprintf("discord %s: %d", f.method, f.status)
	if f.code != 0 {
		text = fmt.Sprintf("discord %s: error %d", f.method, f.code)
	}
	if f.detail != "" && f.status != http.StatusUnauthorized { // for the status 401, the detail only repeats the status
		text += ", " + f.detail
	}
	switch {
	case f.status == http.StatusUnauthorized:
		text += ": Discord refuses the token; copy a new one from the page Bot of the app, and put it into the file or variable that connectors.discord names"
	case unreachableErrors[f.code]:
		text += ": the person must share a server with the bot, and allow messages from that server's members"
	}
	return text
}

// carrierError converts f to an error that tells the worker whether and when to retry.
func (f *apiError) carrierError() *people.Error {
	e := &people.Error{Err: f}
	switch {
	case f.status == http.StatusTooManyRequests, limitErrors[f.code]:
		e.After = rateWait
		if f.after > 0 {
			e.After = f.after
		}
	case unreachableErrors[f.code]:
		e.Unreachable = true
	case f.status == http.StatusRequestTimeout, f.status >= 500, f.status < 400:
	default:
		e.Permanent = true
	}
	return e
}

// isCode reports whether err is this error of Discord.
func isCode(err error, code int) bool {
	var f *apiError
	return errors.As(err, &f) && f.code == code
}

// call makes a call and decodes the reply into out, which may be nil. Its errors are *people.Error or,
// after ctx has ended, ctx's own. An *people.Error contains the parameter what, a name of the call. If a
// call timed out, Discord may have executed it.
func (a *api) call(ctx context.Context, what, method, path string, body, out any) error {
	hop, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := a.do(hop, what, method, path, body, out)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (a *api) do(ctx context.Context, what, method, path string, body, out any) error {
	header := http.Header{"Authorization": {"Bot " + a.token}, "User-Agent": {userAgent}}
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return &people.Error{Permanent: true, Err: fmt.Errorf("discord %s: encode: %w", what, err)}
		}
		header.Set("Content-Type", "application/json")
	}
	resp, err := a.Named(what).Do(ctx, method, a.base+path, header, data, maxReply)
	if err != nil {
		return err
	}
	if resp.Status >= 200 && resp.Status < 300 {
		if out != nil && json.Unmarshal(resp.Body, out) != nil {
			return &people.Error{Err: fmt.Errorf("discord %s: the reply has an unexpected form", what)}
		}
		return nil
	}
	return a.refusal(what, &resp).carrierError()
}

func (a *api) refusal(what string, resp *webapi.Reply) *apiError {
	var r struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Errors  json.RawMessage `json:"errors"`
		After   float64         `json:"retry_after"` // in seconds
	}
	f := &apiError{method: what, status: resp.Status, after: resp.After(time.Now())}
	if json.Unmarshal(resp.Body, &r) != nil {
		return f
	}
	f.code, f.detail = r.Code, a.Clean(r.Message)
	if len(r.Errors) > 0 {
		f.detail = a.Clean(r.Message + " " + string(r.Errors))
	}
	if r.After > 0 && r.After < webapi.MaxWait.Seconds() {
		f.after = time.Duration(r.After * float64(time.Second))
	}
	return f
}
