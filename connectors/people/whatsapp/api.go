package whatsapp

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
	// callTimeout is the time limit of one call of Meta's server.
	callTimeout = 15 * time.Second
	// rateWait is the pause if Meta limits the rate without naming a time. pairWait is the pause if nod
	// sends too many messages to one person.
	rateWait = 30 * time.Second
	pairWait = 6 * time.Second
	// maxReply is the largest reply in bytes.
	maxReply = 1 << 20
)

// api calls Meta's Graph API for one phone number. The access token is in a header, and in no URL or
// error.
type api struct {
	*webapi.Client
	number string // the base URL with the id of the phone number
	token  string
}

func newAPI(base, numberID, token string, secrets ...string) (*api, error) {
	base, err := webapi.Base("connectors.whatsapp.base_url", base, "https://graph.facebook.com/v24.0", "the access token")
	switch {
	case err != nil:
		return nil, err
	case token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("connectors.whatsapp: the access token must be one word of ASCII characters: copy it from the system user's page of Meta's console")
	case numberID == "" || strings.Trim(numberID, "0123456789") != "":
		return nil, errors.New("connectors.whatsapp.phone_number_id: it must be the digits that Meta's console shows under Phone number ID")
	}
	return &api{Client: webapi.New(Name, append(secrets, token)...), number: base + "/" + numberID, token: token}, nil
}

// The codes of Meta's errors to which nod reacts in a special way. The sets below group all codes that
// nod knows.
const (
	codeToken       = 190    // the access token has expired or was revoked
	codeWindow      = 131047 // the person has not written for 24 hours
	codeUndelivered = 131026 // the person has no WhatsApp, has blocked nod's phone number, or cannot get the message
	codePair        = 131056 // nod has sent too many messages to the person
)

var (
	rateCodes        = map[int]bool{4: true, 80007: true, 130429: true, 131048: true, codePair: true}
	unreachableCodes = map[int]bool{codeWindow: true, codeUndelivered: true, 131021: true, 131030: true, 130472: true, 131049: true, 131050: true}
	temporaryCodes   = map[int]bool{1: true, 2: true, 131000: true, 131016: true, 131057: true, 133004: true}
	permissionCodes  = map[int]bool{0: true, 3: true, 10: true, codeToken: true, 200: true, 368: true, 131005: true, 131031: true}
)

// apiError is an error in a reply of Meta's server, or in Meta's later report about a message.
type apiError struct {
	status, code int
	text         string
	after        time.Duration // the time that Meta asks nod to wait; 0 if Meta named no time
}

func (f *apiError) Error() string {
	text := fmt.Sprintf("whatsapp: %d", f.status)
	if f.code != 0 {
		text = fmt.Sprintf("whatsapp: error %d", f.code)
	}
	text += " " + f.text
	switch {
	case f.code == codeWindow:
		text += ": the person has not written to this number for 24 hours; name an approved template in connectors.whatsapp.template, or have them write"
	case f.status == http.StatusUnauthorized, permissionCodes[f.code] && f.code != 0:
		text += ": Meta refuses the access token or the account; put a valid token into the file or variable that connectors.whatsapp names"
	}
	return text
}

// carrierError converts f to an error that tells the worker whether and when to retry.
func (f *apiError) carrierError() *people.Error {
	e := &people.Error{Err: f}
	switch {
	case f.status == http.StatusTooManyRequests, rateCodes[f.code]:
		wait := rateWait
		if f.code == codePair {
			wait = pairWait
		}
		if f.after > 0 {
			wait = f.after
		}
		e.After = wait
	case unreachableCodes[f.code]:
		e.Unreachable = true
	case temporaryCodes[f.code], f.status == http.StatusRequestTimeout, f.status >= 500, f.status < 400:
	default:
		e.Permanent = true
	}
	return e
}

// hasCode reports whether err is an error of Meta with this code.
func hasCode(err error, code int) bool {
	var f *apiError
	return errors.As(err, &f) && f.code == code
}

// send sends a message and returns its id. Its errors are *people.Error or, after ctx has ended, ctx's
// own. If a call timed out, the server may have sent the message.
func (a *api) send(ctx context.Context, m outgoing) (id string, err error) {
	m.Product, m.RecipientType = "whatsapp", "individual"
	body, err := json.Marshal(m)
	if err != nil {
		return "", &people.Error{Permanent: true, Err: fmt.Errorf("whatsapp: encode a message: %w", err)}
	}
	var sent struct {
		Messages []struct {
			ID string `json:"id"`
		} `json:"messages"`
	}
	if err := a.call(ctx, http.MethodPost, "/messages", body, &sent); err != nil {
		return "", err
	}
	if len(sent.Messages) == 0 || sent.Messages[0].ID == "" {
		return "", &people.Error{Err: errors.New("whatsapp: the reply names no message")}
	}
	return sent.Messages[0].ID, nil
}

// check returns an error unless the access token may use the phone number.
func (a *api) check(ctx context.Context) error {
	return a.call(ctx, http.MethodGet, "?fields=id", nil, nil)
}

func (a *api) call(ctx context.Context, method, path string, body []byte, result any) error {
	hop, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := a.try(hop, method, path, body, result)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func (a *api) try(ctx context.Context, method, path string, body []byte, result any) error {
	header := http.Header{"Authorization": {"Bearer " + a.token}}
	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	resp, err := a.Do(ctx, method, a.number+path, header, body, maxReply)
	switch {
	case err != nil:
		return err
	case resp.Status != http.StatusOK:
		return a.refusal(&resp)
	case result == nil:
		return nil
	}
	if err := json.Unmarshal(resp.Body, result); err != nil {
		return &people.Error{Err: fmt.Errorf("whatsapp: the reply has an unexpected form: %s", a.Clean(err.Error()))}
	}
	return nil
}

func (a *api) refusal(resp *webapi.Reply) error {
	var reply struct {
		Error graphError `json:"error"`
	}
	f := &apiError{status: resp.Status, text: http.StatusText(resp.Status), after: resp.After(time.Now())}
	if json.Unmarshal(resp.Body, &reply) == nil && reply.Error.text() != "" {
		f.code, f.text = reply.Error.Code, a.Clean(reply.Error.text())
	}
	return f.carrierError()
}
