// Package discord sends prompts to people on Discord and receives their answers, over Discord's gateway,
// which needs no public address.
//
// A prompt goes to the private conversation between the bot and its recipient. The recipient is a Discord
// user id, which the settings list as an identity of an approver. Every button contains the digest of the
// request and the number of identical calls that the message shows; the message itself names the request.
// Any worker can therefore submit the answer, even after a restart, and a made-up button answers nothing.
// A person enters reasons, edited inputs and the code word in modals.
//
// If no worker responds to a press within 3 s, Discord tells the person that it failed. Such a press does
// not count, even if a worker gets it later. nod reads no messages of people.
//
// The package speaks the gateway's protocol itself. The gateways of the two Go libraries, disgo v0.18.15
// and discordgo v0.29.0, read messages of any size, keep running after their context has ended, and
// either block without a time limit or end the process if a heartbeat precedes the first event.
package discord

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const defaultBase = "https://discord.com/api/v10"

// Carrier implements people.Carrier for one Discord bot. If several workers share the bot, Discord sends
// each press to all of them, and one worker handles the press.
type Carrier struct {
	api   *api
	log   *slog.Logger
	chats *people.Memory // the channel of the private conversation with each person
}

var (
	_ people.Carrier = (*Carrier)(nil)
	_ people.Reviser = (*Carrier)(nil)
)

// New creates the carrier of the bot with this token. base is the address of the HTTP API; empty means
// Discord's own. New returns an error for a malformed address or token. It does not connect to any
// server.
func New(base, token string, log *slog.Logger) (*Carrier, error) {
	a, err := newAPI(cmp.Or(base, defaultBase), token)
	if err != nil {
		return nil, err
	}
	return &Carrier{api: a, log: log, chats: people.NewMemory()}, nil
}

// Check connects to Discord and returns an error unless Discord accepts the token.
func (c *Carrier) Check(ctx context.Context) error {
	_, err := c.gatewayAddress(ctx)
	return err
}

// Prompt sends p to its recipient, without buttons. The message of a pending request contains only the
// beginning of the payload; Revise adds the rest and the buttons. Discord shows no text in the
// notification about a message with flagComponentsV2, so Prompt sends a message without this flag, and
// Revise sets the flag.
func (c *Carrier) Prompt(ctx context.Context, p schemas.Prompt) (people.Ref, error) {
	m := plain(alert(&p))
	if p.Decision != nil {
		m = promptMessage(&p, nil)
	}
	m.Nonce, m.EnforceNonce = nonce(&p), true
	sent, err := c.send(ctx, p.Recipient, m)
	if err != nil {
		return "", err
	}
	return refOf(sent.Channel, sent.ID), nil
}

// nonce returns the nonce of the message that Prompt sends. If a worker does not know whether the
// message about a pending request was sent, and sends it again within minutes, the person gets only
// one message.
func nonce(p *schemas.Prompt) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%t", p.Recipient, p.SessionID, p.PendingID, p.Decision != nil))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:maxNonce]
}

// send sends a message to a person's private conversation with the bot.
func (c *Carrier) send(ctx context.Context, person string, m outgoing) (sent, error) {
	channel, err := c.chat(ctx, person)
	if err != nil {
		return sent{}, err
	}
	var s sent
	err = c.api.call(ctx, "create message", http.MethodPost, "/channels/"+channel+"/messages", m, &s)
	if err == nil && (!isID(s.ID) || s.Channel != channel) {
		err = &people.Error{Err: errors.New("discord create message: the reply names no message")}
	}
	return s, err
}

// chat returns the channel of a person's private conversation with the bot. If there is no conversation,
// it opens a conversation.
func (c *Carrier) chat(ctx context.Context, person string) (string, error) {
	if !isID(person) {
		return "", &people.Error{Permanent: true, Err: fmt.Errorf("%q is not a Discord user id: write /nod to the bot for the id to put under approvers, or use nod pair discord", person)}
	}
	if id := c.chats.Get(person); id != "" {
		return id, nil
	}
	var channel struct {
		ID string `json:"id"`
	}
	err := c.api.call(ctx, "create DM", http.MethodPost, "/users/@me/channels", map[string]string{"recipient_id": person}, &channel)
	switch {
	case err != nil:
		return "", err
	case !isID(channel.ID):
		return "", &people.Error{Err: errors.New("discord create DM: the reply names no channel")}
	}
	c.chats.Put(person, channel.ID)
	return channel.ID, nil
}

// Settle edits the message: the outcome replaces the buttons.
func (c *Carrier) Settle(ctx context.Context, ref people.Ref, p schemas.Prompt) error {
	channel, id, ok := parseRef(ref)
	if !ok {
		return &people.Error{Permanent: true, Err: fmt.Errorf("settle %s: %q is not a message on Discord", p.Key(), ref)}
	}
	err := c.edit(ctx, channel, id, &p, nil)
	var e *people.Error
	if isCode(err, unknownMessage) || errors.As(err, &e) && e.Unreachable {
		return nil // nothing to edit: the message was deleted, or the conversation is gone
	}
	return err
}

// Revise edits the message of a pending request, so that it shows the whole payload and has the
// buttons.
func (c *Carrier) Revise(ctx context.Context, ref people.Ref, p schemas.Prompt) error {
	channel, id, ok := parseRef(ref)
	if !ok {
		return &people.Error{Permanent: true, Err: fmt.Errorf("change %s: %q is not a message on Discord", p.Key(), ref)}
	}
	return c.edit(ctx, channel, id, &p, buttons(&p))
}

func (c *Carrier) edit(ctx context.Context, channel, id string, p *schemas.Prompt, below []component) error {
	return c.api.call(ctx, "edit message", http.MethodPatch, "/channels/"+channel+"/messages/"+id, promptMessage(p, below), nil)
}

// promptMessage returns the message that shows p. The components in below come after the text.
func promptMessage(p *schemas.Prompt, below []component) outgoing {
	return outgoing{Flags: flagComponentsV2, Components: append([]component{textBlock(promptText(p, time.Now()))}, below...)}
}

func refOf(channel, id string) people.Ref { return people.Ref(channel + "/" + id) }

func parseRef(ref people.Ref) (channel, id string, ok bool) {
	channel, id, ok = strings.Cut(string(ref), "/")
	return channel, id, ok && isID(channel) && isID(id)
}

// isID reports whether a text is an id of Discord: a number of 64 bits. Only such a text may become a
// part of a URL.
func isID(s string) bool {
	n, err := strconv.ParseUint(s, 10, 64)
	return err == nil && n > 0 && strconv.FormatUint(n, 10) == s
}
