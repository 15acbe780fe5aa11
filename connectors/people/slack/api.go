package slack

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
	// callTimeout is the time limit of one call of Slack's server.
	callTimeout = 15 * time.Second
	// rateWait is the pause if Slack limits the rate without saying for how long.
	rateWait = 30 * time.Second
	// maxReply is the largest reply in bytes.
	maxReply = 4 << 20
)

// api calls the methods of Slack's Web API. The tokens are in headers, and in no URL or error.
type api struct {
	*webapi.Client
	base     string // the base URL of the methods, without a trailing slash
	botToken string // the bot token, for acting in the workspace
	appToken string // the app token, for opening connections of Socket Mode
}

func newAPI(base, botToken, appToken string) (*api, error) {
	base, err := webapi.Base("connectors.slack.base_url", base, defaultBase, "the bot token")
	switch {
	case err != nil:
		return nil, err
	case !isToken(botToken, "xoxb-"):
		return nil, errors.New("connectors.slack: the bot token must begin with xoxb-: copy it from the page OAuth & Permissions of the app at https://api.slack.com/apps")
	case !isToken(appToken, "xapp-"):
		return nil, errors.New("connectors.slack: the app token must begin with xapp-: make it on the page Basic Information of the app at https://api.slack.com/apps, under App-Level Tokens")
	}
	return &api{Client: webapi.New(Name, botToken, appToken), base: base, botToken: botToken, appToken: appToken}, nil
}

// isToken reports whether a text has the form of a token of this kind.
func isToken(token, kind string) bool {
	return strings.HasPrefix(token, kind) && len(token) > len(kind) && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// The codes of Slack's errors, grouped by how nod reacts to them.
var (
	unreachableErrors = set("channel_not_found", "user_not_found", "users_not_found", "user_disabled", "is_archived", "cannot_dm_bot", "messages_tab_disabled",
		"not_in_channel", "user_not_visible", "user_not_in_channel", "restricted_action")
	temporaryErrors = set("fatal_error", "internal_error", "service_unavailable", "request_timeout", "team_added_to_org", "accesslimited")
	accountErrors   = set("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope", "no_permission",
		"not_allowed_token_type", "access_denied", "org_login_required", "ekm_access_denied", "app_missing_action_url")
)

func set(names ...string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
}

type apiError struct {
	method string
	status int
	code   string
	detail string
	after  time.Duration // the time that Slack asks nod to wait; 0 if Slack named no time
}

func (f *apiError) Error() string {
	text := fmt.Sprintf("slack %s: %d", f.method, f.status)
	if f.code != "" {
		text = fmt.Sprintf("slack %s: %s", f.method, f.code)
	}
	if f.detail != "" {
		text += ", " + f.detail
	}
	switch {
	case accountErrors[f.code]:
		text += ": Slack refuses the token or its scopes; install the app anew with the scopes of docs/slack.md, and put its tokens into the files or variables that connectors.slack names"
	case unreachableErrors[f.code]:
		text += ": the person must be a member of the workspace, and the app's Messages tab must be on"
	}
	return text
}

// carrierError converts f to an error that tells the worker whether and when to retry.
func (f *apiError) carrierError() *people.Error {
	e := &people.Error{Err: f}
	switch {
	case f.status == http.StatusTooManyRequests, f.code == "ratelimited", f.code == "rate_limited", f.code == "message_limit_exceeded":
		e.After = rateWait
		if f.after > 0 {
			e.After = f.after
		}
	case unreachableErrors[f.code]:
		e.Unreachable = true
	case temporaryErrors[f.code], f.code == "" && (f.status == http.StatusRequestTimeout || f.status >= 500 || f.status < 400):
	default:
		e.Permanent = true
	}
	return e
}

// isRefusal reports whether err is one of these errors of Slack.
func isRefusal(err error, codes ...string) bool {
	var f *apiError
	if !errors.As(err, &f) {
		return false
	}
	for _, code := range codes {
		if f.code == code {
			return true
		}
	}
	return false
}

// call calls a method with the bot token. Its errors are *people.Error or, after ctx has ended, ctx's
// own. If a call timed out, Slack may have executed it.
func (a *api) call(ctx context.Context, method string, params any) (reply, error) {
	return a.callWith(ctx, a.botToken, method, params)
}

func (a *api) callWith(ctx context.Context, token, method string, params any) (r reply, err error) {
	hop, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err = a.post(hop, token, method, params)
	if err != nil && ctx.Err() != nil {
		return r, ctx.Err()
	}
	return r, err
}

func (a *api) post(ctx context.Context, token, method string, params any) (r reply, err error) {
	body, err := json.Marshal(params)
	if err != nil {
		return r, &people.Error{Permanent: true, Err: fmt.Errorf("slack %s: encode: %w", method, err)}
	}
	header := http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json; charset=utf-8"}}
	resp, err := a.Named(method).Post(ctx, a.base+"/"+method, header, body, maxReply)
	if err != nil {
		return r, err
	}
	malformed := json.Unmarshal(resp.Body, &r)
	if resp.Status == http.StatusOK && r.OK {
		return r, nil
	}
	if resp.Status == http.StatusOK && (malformed != nil || r.Error == "") {
		return r, &people.Error{Err: fmt.Errorf("slack %s: the reply has an unexpected form", method)}
	}
	f := &apiError{method: method, status: resp.Status, code: a.Clean(r.Error), after: resp.After(time.Now())}
	if r.Needed != "" {
		f.detail = "it needs the scope " + a.Clean(r.Needed)
	} else if len(r.Metadata.Messages) > 0 {
		f.detail = a.Clean(strings.Join(r.Metadata.Messages, "; "))
	}
	return r, f.carrierError()
}
