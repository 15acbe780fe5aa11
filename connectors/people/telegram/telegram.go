// Package telegram brings prompts to people on Telegram and their answers back,
// over the Bot API. It polls, so that nod needs no public address, or is called
// through a webhook where the settings name one.
//
// Prompts go to the private chat with the person whose user id an approver is
// bound to. Every button carries the whole digest of the request that it was
// shown with, and the message names the request: any worker can bring the
// answer home, after any restart, and a button that was made up answers nothing.
package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// Name is the connector's.
const Name = "telegram"

// defaultBase is Telegram's own server.
const defaultBase = "https://api.telegram.org"

// Carrier is people.Carrier for one bot. Only one of a bot's workers can poll
// at a time; the others take over when it is gone.
type Carrier struct {
	api *api
	log *slog.Logger
	me  atomic.Int64 // the bot's own user id, once it is known

	hook *Webhook // nil where it polls
	late *gate
}

var (
	_ people.Carrier = (*Carrier)(nil)
	_ people.Reviser = (*Carrier)(nil)
)

// New makes the carrier of the bot with this token; an empty base is Telegram's
// own server. It refuses an address or a token that cannot be one, and calls
// nobody.
func New(base, token string, log *slog.Logger) (*Carrier, error) {
	a, err := newAPI(cmp.Or(base, defaultBase), token)
	if err != nil {
		return nil, err
	}
	return &Carrier{api: a, log: log, late: newGate()}, nil
}

// Open is New for the bot in the settings, with its token, and its webhook's
// secret, read from where they say.
func Open(s schemas.TelegramSettings, log *slog.Logger) (*Carrier, error) {
	token, err := readSecret("connectors.telegram.token", s.TokenEnv, s.TokenFile, "the bot's token")
	if err != nil {
		return nil, err
	}
	c, err := New(s.BaseURL, token, log)
	if err != nil || s.Webhook == nil {
		return c, err
	}
	hook, err := openHook(s.Webhook)
	if err != nil {
		return nil, err
	}
	if err := c.Receive(hook); err != nil {
		return nil, err
	}
	return c, nil
}

// Check asks Telegram whether it knows the bot: without an error, prompts can be
// sent.
func (c *Carrier) Check(ctx context.Context) error {
	return c.api.call(ctx, "getMe", struct{}{}, nil)
}

// readSecret reads what setting_file or setting_env name.
func readSecret(setting, env, file, what string) (string, error) {
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("%s_file: %w", setting, err)
		}
		return strings.TrimSpace(string(data)), nil
	}
	secret := os.Getenv(env)
	if secret == "" {
		name := setting[strings.LastIndexByte(setting, '.')+1:]
		return "", fmt.Errorf("%s_env: the environment variable %s is not set: put %s there, or name a file in %s_file", setting, env, what, name)
	}
	return secret, nil
}

// Prompt sends p to its recipient's chat.
func (c *Carrier) Prompt(ctx context.Context, p schemas.Prompt) (people.Ref, error) {
	person, err := strconv.ParseInt(p.Recipient, 10, 64)
	if err != nil {
		return "", &people.Error{Permanent: true, Err: fmt.Errorf("%q is no Telegram user id: send /id to the bot and put the number it tells under approvers", p.Recipient)}
	}
	var sent message
	if err := c.api.call(ctx, "sendMessage", outgoingPrompt(person, &p), &sent); err != nil {
		return "", err
	}
	return refOf(person, sent.ID), nil
}

func outgoingPrompt(chatID int64, p *schemas.Prompt) outgoing {
	text := show(p, time.Now())
	m := outgoing{ChatID: chatID, Text: text.text.String(), Entities: text.entities, Preview: preview{IsDisabled: true}}
	if p.Decision == nil {
		m.Markup = buttons(p)
	}
	return m
}

// Settle edits the message: the outcome takes the place of the buttons. Where
// Telegram lets the message no longer be edited, a reply to it says so. What was
// pressed while nod was away or asleep is heard before a deadline is announced
// that passed meanwhile: until then Settle asks to be called again.
func (c *Carrier) Settle(ctx context.Context, ref people.Ref, p schemas.Prompt) error {
	if p.Decision != nil && p.Decision.Outcome == schemas.TimedOut && c.late.holds() {
		return &people.Error{After: holdPause, Err: fmt.Errorf("settle %s: what waits at Telegram is heard before its deadline is announced", p.Key())}
	}
	return c.settle(ctx, ref, p)
}

func (c *Carrier) settle(ctx context.Context, ref people.Ref, p schemas.Prompt) error {
	chatID, messageID, ok := parseRef(ref)
	if !ok {
		return &people.Error{Permanent: true, Err: fmt.Errorf("settle %s: %q is no message of Telegram's", p.Key(), ref)}
	}
	m := outgoingPrompt(chatID, &p)
	m.MessageID = messageID
	err := c.api.call(ctx, "editMessageText", m, nil)
	switch {
	case refused(err, "message is not modified", "message to edit not found", "MESSAGE_ID_INVALID"):
		return nil
	case refused(err, "message can't be edited"):
		m.MessageID, m.ReplyTo = 0, &replyTo{MessageID: messageID, Without: true}
		err = c.api.call(ctx, "sendMessage", m, nil)
	}
	if e := (*people.Error)(nil); errors.As(err, &e) && e.Unreachable {
		return nil // nobody is there to look at it
	}
	return err
}

// Revise edits the message of a question that is open still.
func (c *Carrier) Revise(ctx context.Context, ref people.Ref, p schemas.Prompt) error {
	chatID, messageID, ok := parseRef(ref)
	if !ok {
		return &people.Error{Permanent: true, Err: fmt.Errorf("change %s: %q is no message of Telegram's", p.Key(), ref)}
	}
	m := outgoingPrompt(chatID, &p)
	m.MessageID = messageID
	err := c.api.call(ctx, "editMessageText", m, nil)
	if refused(err, "message is not modified", "message to edit not found", "MESSAGE_ID_INVALID", "message can't be edited") {
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
