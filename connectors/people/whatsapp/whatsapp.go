// Package whatsapp sends prompts to people on WhatsApp and receives their answers, over Meta's Cloud API.
// Meta calls a webhook of nod with each answer, and signs the call.
//
// A recipient is a WhatsApp id: the digits of a person's phone number, which the settings list as an
// identity of an approver. A prompt has up to three buttons. Each button's id contains the digest of the
// request and the number of identical calls that the message shows. A person can also write "yes" or "no"
// with the code that the prompt shows. Any worker can submit the answer, even after a restart.
//
// nod cannot edit a message on WhatsApp, so it sends the outcome as a new message that quotes the prompt.
// Meta lets nod write to a person only for 24 hours after the person's last message. After that, nod
// sends an approved template without the payload, if the settings name one; a tap on its button makes nod
// send the waiting prompts. Without a template, such a person is unreachable.
package whatsapp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/httpserve"
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const defaultBase = "https://graph.facebook.com/v24.0"

// Options are the settings of a carrier, with its secrets.
type Options struct {
	BaseURL       string // the base URL of another Graph API; empty means Meta's own
	PhoneNumberID string
	Token         string
	AppSecret     string // the key with which Meta signs its calls
	VerifyToken   string // the text that Meta sends when it checks the webhook's address
	Listen        string // the address of the webhook, HOST:PORT; without TLS, only a loopback address is accepted
	TLS           *tls.Certificate
	Template      TemplateSettings // Template.Name is empty if there is no template
	Log           *slog.Logger
}

// Carrier implements people.Carrier for one WhatsApp number. Several workers may share the number
// if their webhooks share one address.
type Carrier struct {
	Options
	api   *api
	hook  *httpserve.Hook
	codes people.Codes

	mu     sync.Mutex
	closed map[string]bool // the people to whom Meta lets nod send only a template, because they have not written for 24 hours
	sent   *people.Memory  // maps the id of each sent message with buttons to the digest of its request
	told   *people.Memory  // the requests whose outcome a person reads in the reply to their answer (see tellKey), and the messages that got the notice "recording"
	read   *people.Memory  // the rank of the last report about each sent message
}

var _ people.Carrier = (*Carrier)(nil)

// minSecret is the smallest length of the app secret and of the verify token, in characters.
const minSecret = 16

// New creates the carrier of one phone number. It returns an error of one line for malformed options. It
// does not connect to any server.
func New(o Options) (*Carrier, error) {
	a, err := newAPI(cmp.Or(o.BaseURL, defaultBase), o.PhoneNumberID, o.Token, o.AppSecret, o.VerifyToken)
	if err != nil {
		return nil, err
	}
	if len(o.AppSecret) < minSecret {
		return nil, fmt.Errorf("connectors.whatsapp: the app secret has less than %d characters: copy it from the page App settings, Basic, of Meta's console", minSecret)
	}
	if len(o.VerifyToken) < minSecret {
		return nil, fmt.Errorf("connectors.whatsapp.webhook: the verify token must have at least %d characters: make one with `openssl rand -hex 32`", minSecret)
	}
	hook := &httpserve.Hook{Setting: "connectors.whatsapp.webhook", Listen: o.Listen, TLS: o.TLS}
	if err := hook.Check(); err != nil {
		return nil, err
	}
	key := sha256.Sum256([]byte("nod codes\x00" + o.AppSecret))
	return &Carrier{Options: o, api: a, hook: hook, codes: key[:], closed: map[string]bool{}, sent: people.NewMemory(), told: people.NewMemory(), read: people.NewMemory()}, nil
}

// Check connects to Meta and returns an error unless the access token may use the phone number.
func (c *Carrier) Check(ctx context.Context) error { return c.api.check(ctx) }

// Prompt sends p to its recipient. If the prompt is too long for the text above buttons, it takes two
// messages. The first contains the whole request, and the second quotes the first and has the buttons.
func (c *Carrier) Prompt(ctx context.Context, p schemas.Prompt) (people.Ref, error) {
	if !isWhatsAppID(p.Recipient) {
		return "", &people.Error{Permanent: true, Err: fmt.Errorf("%q is not a WhatsApp id: put the digits of the phone number with its country code under approvers, or use nod pair whatsapp", p.Recipient)}
	}
	var id string
	var err error
	switch {
	case !c.windowClosed(p.Recipient):
		if id, err = c.sendPrompt(ctx, &p, question); !hasCode(err, codeWindow) {
			return people.Ref(id), err
		}
		c.closeWindow(p.Recipient)
		fallthrough
	default:
		id, err = c.sendTemplate(ctx, &p)
	}
	return people.Ref(id), err
}

// sendPrompt sends a prompt, or its outcome, in one or two messages, and returns the id of the last
// message. Each of Meta's reports about that message contains the parameter kind.
func (c *Carrier) sendPrompt(ctx context.Context, p *schemas.Prompt, kind messageKind) (id string, err error) {
	now := time.Now()
	whole := promptText(p, now)
	if p.Decision != nil {
		return c.sendText(ctx, p.Recipient, "", whole, "")
	}
	hint, choose := hint(p, c.codes.Of(p, p.Recipient)), buttons(p)
	if len(choose) == 0 {
		return c.sendText(ctx, p.Recipient, "", whole+"\n\n"+hint, callbackOf(kind, p))
	}
	m := outgoing{To: p.Recipient, Type: "interactive", Callback: callbackOf(kind, p)}
	body := strings.TrimSpace(whole + "\n\n" + hint)
	if formOf(p) != oneMessage || people.UTF16(body) > maxBody {
		first, err := c.sendText(ctx, p.Recipient, "", whole, "")
		if err != nil {
			return "", err
		}
		m.Context = &messageRef{first}
		body = strings.TrimSpace(wholeBefore + "\n" + code("Request "+p.PendingID) + "\n\n" + hint)
	}
	m.Interactive = &interactive{Type: "button", Body: text{body}, Action: action{choose}}
	if id, err = c.api.send(ctx, m); err != nil {
		return "", err
	}
	c.sent.Put(id, p.Digest)
	return id, nil
}

// sendText sends a text. The parameter quotes is the id of the message to quote, or empty.
func (c *Carrier) sendText(ctx context.Context, to, quotes, body, callback string) (id string, err error) {
	m := outgoing{To: to, Type: "text", Text: &textBody{Body: body}, Callback: callback}
	if quotes != "" {
		m.Context = &messageRef{quotes}
	}
	return c.api.send(ctx, m)
}

var errWindow = errors.New("whatsapp: this person has not written to the number for 24 hours, and connectors.whatsapp names no template")

// sendTemplate tells a person who has not written for 24 hours that a request waits. The template
// contains neither the payload nor answers. A tap on its button makes nod send the waiting prompts.
func (c *Carrier) sendTemplate(ctx context.Context, p *schemas.Prompt) (id string, err error) {
	if c.Template.Name == "" || p.Decision != nil {
		return "", &people.Error{Unreachable: true, Err: errWindow}
	}
	return c.api.send(ctx, outgoing{To: p.Recipient, Type: "template", Callback: callbackOf(notice, p), Template: &template{
		Name: c.Template.Name, Language: language{c.Template.Language}, Components: []component{
			{Type: "body", Parameters: []parameter{{Type: "text", Text: noticeText(p)}}},
			{Type: "button", SubType: "quick_reply", Index: "0", Parameters: []parameter{{Type: "payload", Payload: showButton}}},
		},
	}})
}

// Settle sends the outcome of p in a message that quotes the prompt. It sends nothing if the person has
// read the outcome in the reply to their own answer. If the person has not written for 24 hours, Meta
// accepts no message, and the error is Unreachable.
func (c *Carrier) Settle(ctx context.Context, ref people.Ref, p schemas.Prompt) error {
	plain := len(p.Aftermath) == 0 && p.Run == nil
	if plain && c.told.Get(tellKey(p.Recipient, &p)) != "" {
		return nil
	}
	if c.windowClosed(p.Recipient) {
		return &people.Error{Unreachable: true, Err: errWindow}
	}
	_, err := c.sendText(ctx, p.Recipient, string(ref), outcomeText(&p), "")
	if hasCode(err, codeWindow) {
		c.closeWindow(p.Recipient)
	}
	return err
}

func tellKey(person string, p *schemas.Prompt) string { return person + "/" + p.Key() + "/" + p.Digest }

// windowClosed reports whether Meta is known to accept only templates for a person, because the person
// has not written for 24 hours. The carrier remembers this until the person writes again. A restarted
// carrier learns it when it next tries to send a message.
func (c *Carrier) windowClosed(person string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed[person]
}

func (c *Carrier) closeWindow(person string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed[person] = true
}

func (c *Carrier) openWindow(person string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.closed, person)
}

// isWhatsAppID reports whether a text consists of 4 to 20 digits.
func isWhatsAppID(s string) bool {
	return len(s) >= 4 && len(s) <= 20 && strings.Trim(s, "0123456789") == ""
}
