package discord

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// sayTimeout is the time limit of calls to Discord that only inform a person.
	sayTimeout = 5 * time.Second
	// ackWithin is the time after which nod acknowledges a press that it has not handled yet. Without a
	// response within 3 s, Discord tells the person that the interaction failed. After an acknowledgement
	// nod can open no modal.
	ackWithin = 1500 * time.Millisecond
	// handledFor is how long nod remembers the id of a handled interaction.
	handledFor = time.Hour
)

// unknown is the error for a request that does not exist, or that is hidden from the person who acts.
var unknown = &schemas.Error{Code: schemas.CodeNotFound}

// handler handles one interaction: a press of a button, a sent modal or a command.
type handler struct {
	*Carrier
	desk    people.Desk
	i       *interaction
	person  string
	message string    // the message of the prompt; empty for a command
	repeat  bool      // the prompt may be in the chat twice
	mine    bool      // this worker handles the interaction
	unsure  bool      // another worker may handle the interaction too
	came    time.Time // the time at which the interaction came
	now     time.Time // the broker's time or, before the first query, this machine's time

	mu  sync.Mutex // held during the response, because Discord must get the response before a follow-up
	ack ack

	telling sync.Mutex // held during each reply, so that the notice "recording" does not follow the outcome
	replied bool       // the person has already got a reply
}

// receive handles an interaction in the lane of its person. If an earlier interaction of the person takes
// long, nod still acknowledges this interaction after ackWithin.
func (c *Carrier) receive(ctx context.Context, desk people.Desk, work *people.Lanes, i *interaction) {
	now := time.Now()
	h := &handler{Carrier: c, desk: desk, i: i, person: i.person(), came: now, now: now}
	if !isID(i.ID) || !isID(i.Application) || !isID(i.Channel) || i.Token == "" {
		c.log.Warn("discord: dropped a press of an unexpected form")
		return
	}
	stop := people.After(ackWithin, func() { h.acknowledge(ctx) })
	if !work.Do(h.person, func() { defer stop(); h.handle(ctx) }) {
		stop()
		c.log.Warn("discord: dropped a press, because too many of this person wait", "user", h.person)
	}
}

// handle handles the interaction. If the handling panics, the person reads that the answer is not
// confirmed, or Discord tells the person that the interaction failed.
func (h *handler) handle(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("discord: dropped a press, because handling it panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			if h.state() == ackAccepted {
				h.tell(ctx, people.NotConfirmed)
			}
		}
	}()
	i := h.i
	switch {
	case i.Type == isCommand && i.Data.Name == commandName:
		h.once(ctx, h.handleCommand)
	case i.Type == isPress && i.Message != nil:
		h.untilKnown(ctx, h.handlePress)
	case i.Type == isModal && i.Message != nil:
		h.untilKnown(ctx, h.handleModal)
	}
}

// untilKnown calls the function handle until the result of the person's answer is known, if this worker
// handles the interaction.
func (h *handler) untilKnown(ctx context.Context, handle func(context.Context) error) {
	err := people.UntilKnown(ctx, h.came, h.ifMine(handle),
		func() { h.tellRecording(ctx) },
		func(err error) { h.log.Warn("discord: an answer could not be submitted", "error", err) })
	if err != nil {
		h.tell(ctx, people.NotConfirmed)
	}
}

// once carries out a command at most once. It does nothing if Discord has told the person that the
// command failed.
func (h *handler) once(ctx context.Context, handle func(context.Context) error) {
	err := people.Within(ctx, h.came, h.ifMine(func(ctx context.Context) error {
		if !h.accepted(ctx) {
			return nil
		}
		return handle(ctx)
	}))
	if err != nil {
		h.log.Warn("discord: a command could not be carried out", "error", err)
		h.tell(ctx, people.NotConfirmed)
	}
}

// ifMine returns a function that calls the function handle if this worker handles the interaction.
func (h *handler) ifMine(handle func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := h.claim(ctx); err != nil || !h.mine {
			return err
		}
		return handle(ctx)
	}
}

// claim sets the field mine if this worker is the first to mark the interaction as handled. If the result
// of an earlier attempt is unknown, the mark may be this worker's own. The worker then sets the field
// too, because it does no harm to submit an answer twice.
func (h *handler) claim(ctx context.Context) error {
	dedupe, durable := h.desk.(people.Deduper)
	if h.mine || !durable {
		h.mine = true
		return nil
	}
	first, err := dedupe.MarkHandled(ctx, h.i.ID, time.Now().Add(handledFor))
	switch {
	case people.IsUncertain(err):
		h.unsure = true
		return fmt.Errorf("claim a press on Discord: %w", err)
	case err != nil: // an older engine, which cannot store marks, must not prevent answers
		h.log.Warn("discord: nod does not remember the handled presses", "error", err)
	}
	h.mine = first || h.unsure || err != nil
	return nil
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

// locate reads the custom_id of the interaction and finds the message of the prompt.
func (h *handler) locate() (id pressID, ok bool) {
	id, ok = readPressID(h.i.Data.CustomID)
	if id.kind == inMessage {
		id.origin, id.repeat = h.i.Message.ID, isRepeat(h.i.Message.text())
	}
	h.message, h.repeat = id.origin, id.repeat
	return id, ok && isID(h.message)
}

// find returns the request that the message names, with the number of calls that the button's message
// shows.
func (h *handler) find(ctx context.Context, b people.ButtonData) (schemas.Prompt, error) {
	session, id, ok := requestNamedIn(h.i.Message.text())
	if !ok {
		return schemas.Prompt{}, unknown
	}
	p, now, err := people.FindShown(ctx, h.desk, session, id, b)
	if err == nil {
		h.now = now
	}
	return p, err
}

// showStep opens the modal or the menu for an action. If the request is not routed to the person who
// pressed, it refuses the press.
func (h *handler) showStep(ctx context.Context, p *schemas.Prompt, id pressID) error {
	if err := people.CheckRouted(ctx, h.desk, p, h.person); err != nil {
		h.showOutcome(ctx, p)
		return h.refuse(ctx, err)
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
	if fault := people.DialogFault(id.kind, words); fault != "" {
		h.reply(ctx, whisper(faultText(fault, words)))
		return nil
	}
	p, err := h.find(ctx, id.button)
	if err != nil {
		return h.refuse(ctx, err)
	}
	a, ok := offer(&p).DialogAnswer(id.kind, id.button.Action, words, h.from())
	if !ok {
		return h.refuse(ctx, unknown)
	}
	return h.answer(ctx, &p, a)
}

// answer submits an answer, tells the person the result, and shows the outcome in the message. If
// Discord has told the person that the press failed, it submits nothing.
func (h *handler) answer(ctx context.Context, p *schemas.Prompt, a schemas.Answer) error {
	if !h.accepted(ctx) {
		return nil
	}
	before := p.Decision
	reply, err := people.Submit(ctx, h.desk, p, a, h.now)
	if err != nil {
		return err
	}
	decides := before == nil && p.Decision != nil
	if !decides || !h.unsure || h.state() != ackElsewhere { // otherwise another worker may reply too, and the message shows the outcome
		h.tell(ctx, reply)
	}
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
