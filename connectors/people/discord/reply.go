package discord

import (
	"context"
	"net/http"

	"github.com/nodbus/nod/connectors/people"
)

// ack is the state of the one response that an interaction takes, within 3 s.
type ack int

const (
	ackOpen      ack = iota // nod has not responded
	ackAccepted             // Discord has accepted nod's response
	ackElsewhere            // another worker has responded
	ackRefused              // Discord has told the person that the interaction failed, or nod does not know whether it has
)

func (h *handler) state() ack {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ack
}

// accepted reports whether the interaction counts: Discord has accepted a response to it, so that the
// person does not read that it failed. nod gets interactions also after that, for example if its
// connection was interrupted. accepted acknowledges the interaction if nod has not responded yet, and
// tells the person if it does not count.
func (h *handler) accepted(ctx context.Context) bool {
	h.acknowledge(ctx)
	if h.state() != ackRefused {
		return true
	}
	h.tell(ctx, "Nothing changed: nod could not take this in time. Press the button again, or write the command again.")
	return false
}

// acknowledge tells Discord that the reply to the interaction comes later.
func (h *handler) acknowledge(ctx context.Context) {
	if h.i.Type == isCommand {
		h.respond(ctx, response{respondThinking, map[string]int{"flags": flagEphemeral}})
	} else {
		h.respond(ctx, response{Type: respondNothing})
	}
}

// respond sends the one response to the interaction. It returns false if nod has already responded, or
// if Discord did not accept the response.
func (h *handler) respond(ctx context.Context, r response) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ack != ackOpen {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout)
	defer cancel()
	err := h.api.call(ctx, "respond", http.MethodPost, "/interactions/"+h.i.ID+"/"+h.i.Token+"/callback", r, nil)
	switch {
	case err == nil:
		h.ack = ackAccepted
	case isCode(err, alreadyAcknowledged):
		h.ack = ackElsewhere
	default:
		h.ack = ackRefused
		h.log.Info("discord: the response to a press was not accepted", "error", err)
	}
	return err == nil
}

// tell shows a text only to this person.
func (h *handler) tell(ctx context.Context, text string) { h.reply(ctx, whisper(said(text))) }

// onMenu reports whether the message of the interaction is the menu.
func (h *handler) onMenu() bool { return h.i.Message != nil && h.i.Message.Flags&flagEphemeral != 0 }

// reply shows a message only to this person: as the response to the interaction, or after it. In the
// menu, it replaces the menu.
func (h *handler) reply(ctx context.Context, m outgoing) {
	h.telling.Lock()
	defer h.telling.Unlock()
	h.replied = true
	first := response{respondMessage, m}
	if h.onMenu() {
		first = response{respondUpdate, visible(m)} // the menu has the flag already, and an edit cannot set it
	}
	if h.respond(ctx, first) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout)
	defer cancel()
	err := h.follow(ctx, m)
	if err != nil { // an interaction's token is valid for 15 minutes, and only after a response
		_, err = h.send(ctx, h.person, visible(m))
	}
	if err != nil {
		h.log.Info("discord: a reply was not sent", "error", err)
	}
}

// visible returns a message without the flag that only one person sees it.
func visible(m outgoing) outgoing {
	m.Flags &^= flagEphemeral
	return m
}

// follow shows a message after the response. The acknowledgement of a command or of a press in the menu
// promised to change a message.
func (h *handler) follow(ctx context.Context, m outgoing) error {
	if h.onMenu() || h.i.Type == isCommand {
		return h.api.call(ctx, "edit response", http.MethodPatch, h.hook()+"/messages/@original", visible(m), nil)
	}
	return h.add(ctx, m)
}

// add shows a further message after the response.
func (h *handler) add(ctx context.Context, m outgoing) error {
	return h.api.call(ctx, "create follow-up", http.MethodPost, h.hook(), m, nil)
}

// hook returns the path of the calls that follow the response.
func (h *handler) hook() string { return "/webhooks/" + h.i.Application + "/" + h.i.Token }

// tellRecording tells the person that their answer is being recorded, unless they have already got a
// reply, or another worker may tell them.
func (h *handler) tellRecording(ctx context.Context) {
	h.telling.Lock()
	defer h.telling.Unlock()
	if h.replied || h.state() != ackAccepted {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout)
	defer cancel()
	if err := h.add(ctx, whisper(said(people.Recording))); err != nil {
		h.log.Info("discord: a reply was not sent", "error", err)
	}
}
