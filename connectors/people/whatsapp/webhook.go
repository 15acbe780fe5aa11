package whatsapp

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
)

const (
	// hookPath is the end of the path at which the webhook accepts calls.
	hookPath = "/nod/whatsapp"
	// maxCall is the largest call of the webhook in bytes. Meta sends at most 3 MB.
	maxCall = 4 << 20
	// callWithin is the time limit for handling one call of the webhook. If nod takes longer, Meta calls
	// again.
	callWithin = 30 * time.Second
	// maxChallenge is the largest length of the text that Meta sends to check the address, and
	// that nod repeats.
	maxChallenge = 256
)

// Run receives answers by the webhook until ctx ends. It confirms a call to Meta only after nod
// has stored or refused all answers in the call. Meta repeats an unconfirmed call.
func (c *Carrier) Run(ctx context.Context, desk people.Desk) error {
	serve := func(w http.ResponseWriter, r *http.Request) { c.serve(w, r, desk) }
	return c.hook.Serve(ctx, c.Log, serve, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
}

func (c *Carrier) serve(w http.ResponseWriter, r *http.Request, desk people.Desk) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case !strings.HasSuffix(r.URL.Path, hookPath):
		http.Error(w, "not found", http.StatusNotFound)
	case r.Method == http.MethodGet:
		c.verify(w, r)
	case r.Method == http.MethodPost:
		c.receive(w, r, desk)
	default:
		http.Error(w, "use POST", http.StatusMethodNotAllowed)
	}
}

// verify handles the call by which Meta checks that the address belongs to nod. If the call contains the
// verify token, verify replies with the challenge in the call.
func (c *Carrier) verify(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	challenge := q.Get("hub.challenge")
	right := subtle.ConstantTimeCompare([]byte(q.Get("hub.verify_token")), []byte(c.VerifyToken)) == 1
	if !right || q.Get("hub.mode") != "subscribe" || challenge == "" || len(challenge) > maxChallenge {
		c.Log.Warn("whatsapp: refused a check of the webhook's address: the verify token differs from the one that connectors.whatsapp.webhook names")
		http.Error(w, "the verify token is wrong", http.StatusForbidden)
		return
	}
	_, _ = io.WriteString(w, challenge) // WriteString fails if the caller is gone
}

// receive handles a call with messages and reports. It refuses a call whose exact bytes Meta has
// not signed.
func (c *Carrier) receive(w http.ResponseWriter, r *http.Request, desk people.Desk) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCall))
	if err != nil {
		http.Error(w, "the call is too long, or was cut off", http.StatusRequestEntityTooLarge)
		return
	}
	if !c.signed(body, r.Header.Get("X-Hub-Signature-256")) {
		http.Error(w, "only Meta may call this address", http.StatusForbidden)
		return
	}
	var n notification
	if err := json.Unmarshal(body, &n); err != nil || n.Object != "whatsapp_business_account" {
		http.Error(w, "this is no call about WhatsApp", http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), callWithin)
	defer cancel()
	if err := c.handleAll(ctx, desk, &n); err != nil {
		c.Log.Warn("whatsapp: a call could not be handled; Meta calls again", "error", err)
		http.Error(w, "not taken: send it again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// signed reports whether signature is the signature of body with the app secret.
func (c *Carrier) signed(body []byte, signature string) bool {
	given, err := hex.DecodeString(strings.TrimPrefix(signature, "sha256="))
	mac := hmac.New(sha256.New, []byte(c.AppSecret))
	mac.Write(body)
	return err == nil && strings.HasPrefix(signature, "sha256=") && hmac.Equal(given, mac.Sum(nil))
}

// handleAll handles the messages and reports of a call in order. After an error Meta sends the whole call
// again. A message or report that was handled before has no second effect.
func (c *Carrier) handleAll(ctx context.Context, desk people.Desk, n *notification) error {
	for _, entry := range n.Entry {
		for _, change := range entry.Changes {
			if change.Field != "messages" || change.Value.Metadata.PhoneNumberID != c.PhoneNumberID {
				continue // the change is about another phone number of the same app
			}
			for i := range change.Value.Messages {
				m := &change.Value.Messages[i]
				if err := c.safely(func() error { return c.handleOnce(ctx, desk, m) }); err != nil {
					return err
				}
			}
			for i := range change.Value.Statuses {
				s := &change.Value.Statuses[i]
				if err := c.safely(func() error { return c.handleReport(ctx, desk, s) }); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// safely calls the function handle. If that function panics, safely drops the message, because Meta would
// otherwise repeat it for days.
func (c *Carrier) safely(handle func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.Log.Error("whatsapp: dropped a message, because handling it panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = nil
		}
	}()
	return handle()
}
