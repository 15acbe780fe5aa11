// Package slack sends prompts to people on Slack and receives their answers, by Socket Mode, which needs
// no public address.
//
// A prompt goes to the private conversation between the app and its recipient. The recipient is a Slack
// user id, which the settings list as an identity of an approver. Every button contains the digest of the
// request, the number of identical calls that the message shows, and the request's session and id. Any
// worker can therefore submit the answer, even after a restart, and a made-up button answers nothing. A
// person enters reasons, lasting answers, edited inputs and the code word in dialogs.
//
// Slack sends a press at most once, and only to a connected worker. If no worker takes it, Slack tells
// the person so. nod reads no messages of people.
package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const defaultBase = "https://slack.com/api"

// Carrier implements people.Carrier for one Slack app. Up to ten workers can share the app, because Slack
// allows ten connections and sends each press to only one of them.
type Carrier struct {
	api  *api
	log  *slog.Logger
	told *people.Memory // the decision that this worker has written into the thread of each message
}

var (
	_ people.Carrier = (*Carrier)(nil)
	_ people.Reviser = (*Carrier)(nil)
)

// New creates the carrier of the app with these tokens. base is the address of the Web API's methods;
// empty means Slack's own. New returns an error for a malformed address or token. It does not connect to
// any server.
func New(base, botToken, appToken string, log *slog.Logger) (*Carrier, error) {
	a, err := newAPI(cmp.Or(base, defaultBase), botToken, appToken)
	if err != nil {
		return nil, err
	}
	return &Carrier{api: a, log: log, told: people.NewMemory()}, nil
}

// Check connects to Slack and returns an error unless Slack accepts both tokens.
func (c *Carrier) Check(ctx context.Context) error {
	if _, err := c.api.call(ctx, "auth.test", struct{}{}); err != nil {
		return err
	}
	_, err := c.api.callWith(ctx, c.api.appToken, "apps.connections.open", struct{}{})
	return err
}

// Prompt sends p to its recipient, without buttons. Revise adds the buttons.
func (c *Carrier) Prompt(ctx context.Context, p schemas.Prompt) (people.Ref, error) {
	if !isUserID(p.Recipient) {
		return "", &people.Error{Permanent: true, Err: fmt.Errorf("%q is not a Slack user id: write /nod to the app for the id to put under approvers, or use nod pair slack", p.Recipient)}
	}
	m := outgoingPrompt(p.Recipient, &p)
	sent, err := c.send(ctx, m)
	if err != nil {
		return "", err
	}
	return refOf(sent.Channel, sent.TS), nil
}

// send sends a message. It forbids Slack to turn text into links or mentions and to show
// previews.
func (c *Carrier) send(ctx context.Context, m outgoing) (reply, error) {
	no := false
	m.Parse, m.UnfurlLinks, m.UnfurlMedia = "none", &no, &no
	r, err := c.api.call(ctx, "chat.postMessage", m)
	if err == nil && (r.Channel == "" || r.TS == "") {
		err = &people.Error{Err: errors.New("slack chat.postMessage: the reply names no message")}
	}
	return r, err
}

// outgoingPrompt returns the message that shows p, without buttons.
func outgoingPrompt(channel string, p *schemas.Prompt) outgoing {
	return outgoing{Channel: channel, Text: alert(p), Blocks: promptContent(p, time.Now()).blocks}
}

// Settle edits the message, so that the outcome replaces the buttons. It also writes the decision into
// the message's thread, with the command that ends a standing answer. If Slack no longer allows the edit,
// Settle writes the outcome only into the thread.
func (c *Carrier) Settle(ctx context.Context, ref people.Ref, p schemas.Prompt) error {
	channel, ts, ok := parseRef(ref)
	if !ok {
		return &people.Error{Permanent: true, Err: fmt.Errorf("settle %s: %q is not a message on Slack", p.Key(), ref)}
	}
	err := c.edit(ctx, channel, ts, &p, nil)
	var e *people.Error
	switch {
	case isRefusal(err, "message_not_found"), errors.As(err, &e) && e.Unreachable:
		return nil // nothing to edit: the message was deleted, or the person has left the workspace
	case isRefusal(err, "cant_update_message", "edit_window_closed"):
		_, err = c.send(ctx, outgoing{Channel: channel, ThreadTS: ts, Text: alert(&p), Blocks: said(people.Recorded(p.Decision, &p))})
		return err
	case err == nil:
		c.writeThread(ctx, channel, ts, &p)
	}
	return err
}

// writeThread writes the decision of p into the thread of p's message, unless this worker has
// written it before.
func (c *Carrier) writeThread(ctx context.Context, channel, ts string, p *schemas.Prompt) {
	text := people.Recorded(p.Decision, p)
	if c.told.Get(channel+ts) == text {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	if _, err := c.send(ctx, outgoing{Channel: channel, ThreadTS: ts, Text: alert(p), Blocks: said(text)}); err != nil {
		c.log.Info("slack: a decision was not written into its thread", "key", p.Key(), "error", err)
		return // no retry, because the message itself shows the decision
	}
	c.told.Put(channel+ts, text)
}

// Revise edits the message of a pending request and adds the buttons.
func (c *Carrier) Revise(ctx context.Context, ref people.Ref, p schemas.Prompt) error {
	channel, ts, ok := parseRef(ref)
	if !ok {
		return &people.Error{Permanent: true, Err: fmt.Errorf("change %s: %q is not a message on Slack", p.Key(), ref)}
	}
	return c.edit(ctx, channel, ts, &p, buttons(&p))
}

func (c *Carrier) edit(ctx context.Context, channel, ts string, p *schemas.Prompt, below []block) error {
	m := outgoingPrompt(channel, p)
	m.TS, m.Parse, m.Blocks = ts, "none", append(m.Blocks, below...)
	_, err := c.api.call(ctx, "chat.update", m)
	return err
}

func refOf(channel, ts string) people.Ref { return people.Ref(channel + "/" + ts) }

func parseRef(ref people.Ref) (channel, ts string, ok bool) {
	channel, ts, ok = strings.Cut(string(ref), "/")
	return channel, ts, ok && channel != "" && ts != ""
}

// isUserID reports whether a text consists of 4 to 40 capital letters and digits.
func isUserID(s string) bool {
	return len(s) >= 4 && len(s) <= 40 && strings.Trim(s, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
