// Package telegram sends prompts to people on Telegram and receives their answers, over Telegram's Bot
// API. It polls, which needs no public address. If the settings name a webhook, it uses the webhook
// instead.
//
// A prompt goes to the private chat between the bot and its recipient. The recipient is a Telegram
// user id, which the settings list as an identity of an approver. Every button contains the digest of
// the request, and the message names the request. Any worker can therefore submit the answer, even
// after a restart, and a made-up button answers nothing.
package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const defaultBase = "https://api.telegram.org"

// Carrier implements people.Carrier for one bot. Only one worker of a bot can poll at a time. When that
// worker ends, another worker takes over.
type Carrier struct {
	api *api
	log *slog.Logger
	me  atomic.Int64 // the user id of the bot; 0 before it is known

	hook    *Webhook // the webhook; nil if the carrier polls
	backlog *backlog
}

var (
	_ people.Carrier = (*Carrier)(nil)
	_ people.Reviser = (*Carrier)(nil)
)

// New creates the carrier of the bot with this token. base is the address of the Bot API's server;
// empty means Telegram's own. New returns an error for a malformed address or token. It does not
// connect to any server.
func New(base, token string, log *slog.Logger) (*Carrier, error) {
	a, err := newAPI(cmp.Or(base, defaultBase), token)
	if err != nil {
		return nil, err
	}
	return &Carrier{api: a, log: log, backlog: newBacklog()}, nil
}

// Check connects to Telegram and returns an error unless Telegram accepts the bot's token.
func (c *Carrier) Check(ctx context.Context) error {
	return c.api.call(ctx, "getMe", struct{}{}, nil)
}

// Prompt sends p to its recipient's chat, without buttons. Revise adds the buttons.
func (c *Carrier) Prompt(ctx context.Context, p schemas.Prompt) (people.Ref, error) {
	person, err := strconv.ParseInt(p.Recipient, 10, 64)
	if err != nil {
		return "", &people.Error{Permanent: true, Err: fmt.Errorf("%q is not a Telegram user id: send /start to the bot for the number to put under approvers", p.Recipient)}
	}
	var sent message
	if err := c.api.call(ctx, "sendMessage", outgoingPrompt(person, &p), &sent); err != nil {
		return "", err
	}
	return refOf(person, sent.ID), nil
}

// outgoingPrompt returns the message that shows p, without buttons.
func outgoingPrompt(chatID int64, p *schemas.Prompt) outgoing {
	text := promptContent(p, time.Now())
	return outgoing{ChatID: chatID, Text: text.text.String(), Entities: text.entities, Preview: preview{IsDisabled: true}}
}

// Settle edits the message: the outcome replaces the buttons. If Telegram does not allow the edit any
// more, Settle shows the outcome in a reply to the message.
//
// While nod was away or the machine asleep, a person may have pressed a button before the deadline. If
// Telegram may have presses that nod has not received, Settle therefore does not show that a request
// expired. It returns an error with the time after which the worker calls Settle again. While Telegram
// can be reached, the total delay is at most holdFor.
func (c *Carrier) Settle(ctx context.Context, ref people.Ref, p schemas.Prompt) error {
	if p.Decision != nil && p.Decision.Outcome == schemas.TimedOut && c.backlog.holdsExpiry() {
		return &people.Error{After: holdPause, Err: fmt.Errorf("settle %s: presses that Telegram still holds are handled first", p.Key())}
	}
	return c.editToOutcome(ctx, ref, p)
}

func (c *Carrier) editToOutcome(ctx context.Context, ref people.Ref, p schemas.Prompt) error {
	chatID, messageID, ok := parseRef(ref)
	if !ok {
		return &people.Error{Permanent: true, Err: fmt.Errorf("settle %s: %q is not a message on Telegram", p.Key(), ref)}
	}
	m := outgoingPrompt(chatID, &p)
	m.MessageID = messageID
	err := c.api.call(ctx, "editMessageText", m, nil)
	switch {
	case isRefusal(err, "message is not modified", "message to edit not found", "MESSAGE_ID_INVALID"):
		return nil
	case isRefusal(err, "message can't be edited"):
		m.MessageID, m.ReplyTo = 0, &replyTo{MessageID: messageID, Without: true}
		err = c.api.call(ctx, "sendMessage", m, nil)
	}
	if e := (*people.Error)(nil); errors.As(err, &e) && e.Unreachable {
		return nil // the person has blocked the bot or left Telegram
	}
	return err
}

// Revise edits the message of a pending request and adds the buttons.
func (c *Carrier) Revise(ctx context.Context, ref people.Ref, p schemas.Prompt) error {
	chatID, messageID, ok := parseRef(ref)
	if !ok {
		return &people.Error{Permanent: true, Err: fmt.Errorf("change %s: %q is not a message on Telegram", p.Key(), ref)}
	}
	m := outgoingPrompt(chatID, &p)
	m.MessageID, m.Markup = messageID, buttons(&p)
	err := c.api.call(ctx, "editMessageText", m, nil)
	if isRefusal(err, "message is not modified") {
		return nil
	}
	return err
}

func refOf(chatID, messageID int64) people.Ref {
	return people.Ref(fmt.Sprintf("%d/%d", chatID, messageID))
}

func parseRef(ref people.Ref) (chatID, messageID int64, ok bool) {
	a, b, ok := strings.Cut(string(ref), "/")
	chatID, err := strconv.ParseInt(a, 10, 64)
	messageID, err2 := strconv.ParseInt(b, 10, 64)
	return chatID, messageID, ok && err == nil && err2 == nil
}
