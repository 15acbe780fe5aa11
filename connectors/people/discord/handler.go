package discord

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// sayTimeout is the time limit of calls to Discord that only inform a person.
	sayTimeout = 5 * time.Second
	// ackWithin is the time after which nod acknowledges a press even if it has not handled it yet.
	// Without a response within 3 s, Discord tells the person that the interaction failed.
	ackWithin = time.Second
	// handledFor is how long nod remembers the id of a handled interaction.
	handledFor = time.Hour
)

// unknown is the error for a request that does not exist, or that this person may not see.
var unknown = &schemas.Error{Code: schemas.CodeNotFound}

// handler handles one interaction: a press of a button, a sent modal or a command.
type handler struct {
	*Carrier
	desk    people.Desk
	i       *interaction
	person  string
	message string    // the message of the question; empty for a command
	repeat  bool      // the question may be in the chat twice
	mine    bool      // this worker handles the interaction
	claimed bool      // this worker has tried to claim the interaction
	now     time.Time // the broker's time after the first query; before it, this machine's time

	mu      sync.Mutex
	acked   bool // nod has responded
	replied bool // the person has got a reply
}

// handle handles an interaction. If handling it panics, nod does not respond, and Discord tells the
// person that the interaction failed.
func (c *Carrier) handle(ctx context.Context, desk people.Desk, i *interaction) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("discord: dropped a press, because handling it panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	h := &handler{Carrier: c, desk: desk, i: i, person: i.person(), now: time.Now()}
	switch {
	case !isID(i.ID) || !isID(i.Application) || i.Token == "" || !isID(i.Channel):
	case i.Type == isCommand && i.Data.Name == commandName:
		h.once(ctx, h.handleCommand)
	case i.Type == isPress && i.Message != nil:
		h.untilKnown(ctx, h.handlePress)
	case i.Type == isModal && i.Message != nil:
		h.untilKnown(ctx, h.handleModal)
	}
}

// untilKnown calls handle until the result of the person's answer is known, if this worker handles
// the interaction.
func (h *handler) untilKnown(ctx context.Context, handle func(context.Context) error) {
	late := time.AfterFunc(ackWithin, func() { h.acknowledge(ctx) })
	defer late.Stop()
	err := people.UntilKnown(ctx,
		func(ctx context.Context) error {
			if err := h.claim(ctx); err != nil || !h.mine {
				return err
			}
			return handle(ctx)
		},
		func() { h.tellRecording(ctx) },
		func(err error) { h.log.Warn("discord: an answer could not be submitted", "error", err) })
	if err != nil {
		h.tell(ctx, people.NotConfirmed)
	}
}

// claim sets mine if this worker is the first one that marks the interaction as handled. If an earlier
// attempt had an unknown result, the mark may be this worker's own; the worker then handles the
// interaction too, since to submit an answer twice does no harm.
func (h *handler) claim(ctx context.Context) error {
	dedupe, durable := h.desk.(people.Deduper)
	if h.mine || !durable {
		h.mine = true
		return nil
	}
	first, err := dedupe.MarkHandled(ctx, h.i.ID, time.Now().Add(handledFor))
	switch {
	case people.IsUncertain(err):
		h.claimed = true
		return fmt.Errorf("claim a press on Discord: %w", err)
	case err != nil: // an older engine, which cannot store marks, must not prevent answers
		h.log.Warn("discord: nod does not remember the handled presses", "error", err)
	}
	h.mine = first || h.claimed || err != nil
	return nil
}

// once carries out a command at most once.
func (h *handler) once(ctx context.Context, handle func(context.Context) error) {
	late := time.AfterFunc(ackWithin, func() { h.acknowledge(ctx) })
	defer late.Stop()
	err := people.Within(ctx, func(ctx context.Context) error {
		if err := h.claim(ctx); err != nil || !h.mine {
			return err
		}
		return handle(ctx)
	})
	if err != nil {
		h.log.Warn("discord: a command could not be carried out", "error", err)
		h.tell(ctx, people.NotConfirmed)
	}
}

func (h *handler) from() schemas.From {
	return schemas.From{UserID: h.person, Chat: h.i.Channel, MessageID: h.message}
}

// handlePress handles the press of a button under a message or in the menu.
func (h *handler) handlePress(ctx context.Context) error {
	id, ok := h.locate()
	if !ok || id.kind != inMessage && id.kind != inMenu {
		return h.refuse(ctx, unknown)
	}
	p, err := h.find(ctx, id.button)
	if err != nil {
		return h.refuse(ctx, err)
	}
	if !h.i.Message.offers(h.i.Data.CustomID) { // the data is invented, or the person pressed just before the outcome replaced the buttons
		if p.Decision == nil {
			return h.refuse(ctx, unknown)
		}
		h.message = ""
	}
	switch id.button.Action {
	case people.ActMore, people.ActWhy, people.ActSay, people.ActEdit:
		return h.showStep(ctx, &p, id)
	}
	a, ok := offer(&p).Answer(id.button.Action, h.from())
	if !ok {
		return h.refuse(ctx, unknown)
	}
	if offer(&p).NeedsCodeWord(&a) {
		return h.showStep(ctx, &p, id)
	}
	return h.answer(ctx, &p, a)
}

// locate reads the custom_id of the interaction and finds the message of the question.
func (h *handler) locate() (id pressID, ok bool) {
	id, ok = readPressID(h.i.Data.CustomID)
	if id.kind == inMessage {
		id.origin, id.repeat = h.i.Message.ID, isRepeat(h.i.Message.text())
	}
	h.message, h.repeat = id.origin, id.repeat
	return id, ok && isID(h.message)
}

// find returns the request that the message names, with the number of calls that the button's message
// shows. If the request does not have the digest in the button, the error is unknown.
func (h *handler) find(ctx context.Context, b people.ButtonData) (schemas.Prompt, error) {
	session, id, ok := requestNamedIn(h.i.Message.text())
	if !ok {
		return schemas.Prompt{}, unknown
	}
	p, page, err := h.desk.Show(ctx, session, id)
	if err != nil {
		return p, err
	}
	h.now = page.Now
	if p.Digest != b.Digest {
		return p, unknown
	}
	return people.AsShown(p, b.Waiters), nil
}

// showStep opens the modal or the menu for an action. If the request is not routed to the person who
// pressed, it refuses.
func (h *handler) showStep(ctx context.Context, p *schemas.Prompt, id pressID) error {
	if p.Decision != nil {
		h.showOutcome(ctx, p)
		return h.refuse(ctx, (&schemas.Error{Code: schemas.CodeConflict}).WithDecision(p.Decision))
	}
	q := schemas.Query{SessionID: p.SessionID, Recipient: h.person}
	_, found, err := people.FindPending(ctx, h.desk, q, func(o *schemas.Prompt) bool { return o.Key() == p.Key() })
	if err != nil {
		return h.refuse(ctx, err)
	}
	if !found {
		return h.refuse(ctx, &schemas.Error{Code: schemas.CodeForbidden})
	}
	r, ok := step(p, id.button.Action, id)
	if !ok {
		return h.refuse(ctx, unknown)
	}
	if m, isMenu := r.Data.(outgoing); isMenu {
		h.reply(ctx, m)
	} else if !h.respond(ctx, r) {
		h.tell(ctx, "Nothing changed: Discord did not open the dialog. Press the button again.")
	}
	return nil
}

// handleModal submits the answer of a modal that a person has sent.
func (h *handler) handleModal(ctx context.Context) error {
	id, ok := h.locate()
	if !ok {
		return h.refuse(ctx, unknown)
	}
	words := h.i.words()
	if fault := faultIn(id.kind, words); fault != "" {
		h.tell(ctx, fault)
		return nil
	}
	p, err := h.find(ctx, id.button)
	if err != nil {
		return h.refuse(ctx, err)
	}
	var a schemas.Answer
	switch id.kind {
	case askWhy:
		a, ok = people.Utterance{Word: people.No, Reason: words}.Answer(&p, h.from())
	case askSay:
		a, ok = offer(&p).TextAnswer(words, h.from())
	case askEdit:
		a, ok = offer(&p).EditAnswer(words, h.from())
	case askCode:
		a, ok = offer(&p).Answer(id.button.Action, h.from())
		a.CodeWord = words
	default:
		ok = false
	}
	if !ok {
		return h.refuse(ctx, unknown)
	}
	return h.answer(ctx, &p, a)
}

// answer submits an answer, tells the person the result, and shows the outcome in the message.
func (h *handler) answer(ctx context.Context, p *schemas.Prompt, a schemas.Answer) error {
	reply, err := people.Submit(ctx, h.desk, p, a, h.now)
	if err != nil {
		return err
	}
	h.tell(ctx, reply)
	h.showOutcome(ctx, p)
	return nil
}

// showOutcome edits the message of a decided request to show the outcome. The worker later calls
// Settle for the same purpose, but possibly much later.
func (h *handler) showOutcome(ctx context.Context, p *schemas.Prompt) {
	if p.Decision == nil || h.message == "" {
		return
	}
	now := *p
	now.Repeat = now.Repeat || h.repeat
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	if err := h.edit(ctx, h.i.Channel, h.message, &now, nil); err != nil {
		h.log.Info("discord: the buttons of a decided request were not removed", "key", p.Key(), "error", err)
	}
}

// refuse tells the person why an answer did not count. If it is unknown whether the answer counted,
// refuse returns an error, so that nod tries again.
func (h *handler) refuse(ctx context.Context, err error) error {
	reply, again := people.RefusalOrRetry(err, h.now)
	if again == nil {
		h.tell(ctx, reply)
	}
	return again
}

// tell shows a text only to this person.
func (h *handler) tell(ctx context.Context, text string) { h.reply(ctx, whisper(said(text))) }

// inMenu reports whether the message of the interaction is the menu.
func (h *handler) inMenu() bool { return h.i.Message != nil && h.i.Message.Flags&flagEphemeral != 0 }

// reply shows a message only to this person: as the response to the interaction, or after it. In the
// menu, it replaces the menu.
func (h *handler) reply(ctx context.Context, m outgoing) {
	h.mu.Lock()
	h.replied = true
	h.mu.Unlock()
	kind := respondMessage
	if h.inMenu() {
		kind = respondUpdate
	}
	if h.respond(ctx, response{kind, m}) {
		return
	}
	hook := "/webhooks/" + h.i.Application + "/" + h.i.Token
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout)
	defer cancel()
	var err error
	if h.inMenu() || h.i.Type == isCommand { // the acknowledgement promised to change this message
		m.Flags &^= flagEphemeral // the message has this flag already, and an edit cannot set it
		err = h.api.call(ctx, "edit response", http.MethodPatch, hook+"/messages/@original", m, nil)
	} else {
		err = h.api.call(ctx, "create follow-up", http.MethodPost, hook, m, nil)
	}
	if err != nil { // an interaction's token is valid for 15 minutes
		m.Flags &^= flagEphemeral
		_, err = h.send(ctx, h.person, m)
	}
	if err != nil {
		h.log.Info("discord: a reply was not sent", "error", err)
	}
}

// tellRecording tells the person that their answer is being recorded, unless they have already got a
// reply, or another worker handles the interaction.
func (h *handler) tellRecording(ctx context.Context) {
	h.mu.Lock()
	silent := h.replied || !h.acked
	h.mu.Unlock()
	if silent {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout)
	defer cancel()
	hook := "/webhooks/" + h.i.Application + "/" + h.i.Token
	if err := h.api.call(ctx, "create follow-up", http.MethodPost, hook, whisper(said(people.Recording)), nil); err != nil {
		h.log.Info("discord: a reply was not sent", "error", err)
	}
}

// acknowledge tells Discord that the response to the interaction comes later.
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
	defer h.mu.Unlock() // a follow-up must not reach Discord before the response
	if h.acked {
		return false
	}
	h.acked = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout)
	defer cancel()
	err := h.api.call(ctx, "respond", http.MethodPost, "/interactions/"+h.i.ID+"/"+h.i.Token+"/callback", r, nil)
	if err != nil {
		h.log.Info("discord: nod's response to a press was not accepted; the person reads that the interaction failed", "error", err)
	}
	return err == nil
}
