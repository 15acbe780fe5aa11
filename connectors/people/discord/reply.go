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
	ackRefused              // Discord has told the person that the interaction failed, or may have
)

func (h *handler) state() ack {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ack
}

// accepted reports whether the interaction counts. It counts if Discord has accepted a response, so that
// the person does not read that the interaction failed. If nod has not responded yet, accepted
// acknowledges the interaction. If the interaction does not count, for example because it came late after
// an interruption, accepted tells the person.
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

// reply shows a message only to this person, as the response to the interaction or after it. If the
// person pressed in the menu, the message replaces the menu.
func (h *handler) reply(ctx context.Context, m outgoing) {
	h.telling.Lock()
	defer h.telling.Unlock()
	h.replied = true
	first := response{respondMessage, m}
	if h.onMenu() {
		first = response{respondUpdate, visible(m)} // an edit cannot set flagEphemeral, but the menu already has this flag
	}
	if h.respond(ctx, first) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout)
	defer cancel()
	err := h.follow(ctx, m)
	if err != nil { // the interaction's token is invalid: it is valid for 15 minutes, and only after a response
		_, err = h.send(ctx, h.person, visible(m))
	}
	if err != nil {
		h.log.Info("discord: a reply was not sent", "error", err)
	}
}

// visible returns a message without flagEphemeral, the flag that only one person sees the message.
func visible(m outgoing) outgoing {
	m.Flags &^= flagEphemeral
	return m
}

// follow shows a message after the response. After a command or a press in the menu, it edits the message
// that the acknowledgement promised to change.
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

// tellRecording tells the person that their answer is being recorded. It does nothing if the person has
// already got a reply, or if another worker may tell the person.
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
