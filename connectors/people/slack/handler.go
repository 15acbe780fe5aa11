package slack

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// sayTimeout is the time limit of calls to Slack that only inform a person.
	sayTimeout = 5 * time.Second
	// handledFor is how long nod remembers the id of a handled envelope (a message of Socket
	// Mode). Slack may send the envelope again over another connection.
	handledFor = time.Hour
)

// unknown is the error for a request that does not exist, or that is hidden from the person who acts.
var unknown = &schemas.Error{Code: schemas.CodeNotFound}

// handler handles one press of a button, one sent dialog or one command.
type handler struct {
	*Carrier
	desk    people.Desk
	id      string // the id of the envelope that is handled
	person  string
	channel string // the conversation to which nod replies
	ts      string // the message of the prompt; empty for a command
	repeat  bool   // the prompt may be in the chat twice
	view    string // the dialog in which the person pressed; empty for a press under a message
	trigger string // the id with which nod may open a dialog once, within 3 s
	ack     func(payload any) bool
	came    time.Time // the time at which the envelope came
	now     time.Time // the broker's time or, before the first query, this machine's time

	mu      sync.Mutex
	replied bool // the person has already got a reply
}

// handle handles an envelope and then acknowledges it. If handle panics, nod does not acknowledge the
// envelope, and Slack tells the person that the app did not respond.
func (c *Carrier) handle(ctx context.Context, desk people.Desk, e *envelope, came time.Time, ack func(any) bool) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("slack: dropped a press, because handling it panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	h := &handler{Carrier: c, desk: desk, id: e.ID, person: e.Payload.person(), trigger: e.Payload.TriggerID, ack: ack, came: came, now: time.Now()}
	p := &e.Payload
	switch {
	case e.Type == "slash_commands":
		h.channel = p.ChannelID
		h.once(ctx, func(ctx context.Context) error { return h.handleCommand(ctx, p.Text) })
	case p.Type == "block_actions" && len(p.Actions) == 1:
		h.untilKnown(ctx, func(ctx context.Context) error { return h.handlePress(ctx, p) })
	case p.Type == "view_submission" && p.View != nil:
		h.untilKnown(ctx, func(ctx context.Context) error { return h.handleDialog(ctx, p.View) })
	}
	ack(nil)
}

// untilKnown calls the function handle until the result of the person's answer is known.
func (h *handler) untilKnown(ctx context.Context, handle func(context.Context) error) {
	err := people.UntilKnown(ctx, h.came,
		func(ctx context.Context) error { return h.unlessHandled(ctx, handle) },
		func() { h.tellRecording(ctx) },
		func(err error) { h.log.Warn("slack: an answer could not be submitted", "error", err) })
	if err != nil {
		h.tell(ctx, people.NotConfirmed)
	}
}

// unlessHandled calls the function handle and marks the envelope as handled. If a worker has marked it
// before, unlessHandled does nothing.
func (h *handler) unlessHandled(ctx context.Context, handle func(context.Context) error) error {
	dedupe, durable := h.desk.(people.Deduper)
	if !durable {
		return handle(ctx)
	}
	handled, err := dedupe.Handled(ctx, h.id)
	if err := h.uncertain(err); err != nil || handled {
		return err
	}
	if err := handle(ctx); err != nil {
		return err
	}
	if _, err = dedupe.MarkHandled(ctx, h.id, time.Now().Add(handledFor)); err != nil {
		h.log.Warn("slack: nod does not remember a handled press; if it comes again, the person gets a second reply", "error", err)
	}
	return nil
}

// uncertain returns err, an error about the mark of a handled envelope, if nod must try again. It logs
// any other error and returns nil, because an older engine cannot store marks and must not prevent
// answers.
func (h *handler) uncertain(err error) error {
	if err != nil && !people.IsUncertain(err) {
		h.log.Warn("slack: nod does not remember the handled presses", "error", err)
		return nil
	}
	return err
}

// once carries out a command at most once, because it marks the envelope as handled before it calls the
// function handle.
func (h *handler) once(ctx context.Context, handle func(context.Context) error) {
	err := people.Within(ctx, h.came, func(ctx context.Context) error {
		if dedupe, durable := h.desk.(people.Deduper); durable {
			first, err := dedupe.MarkHandled(ctx, h.id, time.Now().Add(handledFor))
			if err == nil && !first {
				return nil
			}
			if err := h.uncertain(err); err != nil {
				return err
			}
		}
		return handle(ctx)
	})
	if err != nil {
		h.log.Warn("slack: a command could not be carried out", "error", err)
		h.tell(ctx, people.NotConfirmed)
	}
}

func (h *handler) from() schemas.From {
	return schemas.From{UserID: h.person, Chat: h.channel, MessageID: h.ts}
}

// handlePress handles the press of a button under a message or in a dialog.
func (h *handler) handlePress(ctx context.Context, p *payload) error {
	value := p.Actions[0].Value
	blocks := []incomingBlock(nil)
	switch {
	case p.View != nil:
		o, _, ok := readOrigin(p.View.Metadata)
		if !ok {
			return h.refuse(ctx, unknown)
		}
		h.channel, h.ts, h.repeat, h.view, blocks = o.Channel, o.TS, o.Repeat, p.View.ID, p.View.Blocks
	case p.Message != nil:
		h.channel, h.ts, blocks = p.Channel.ID, p.Message.TS, p.Message.Blocks
		h.repeat = slices.ContainsFunc(blocks, func(b incomingBlock) bool { return b.BlockID == repeatBlock })
	}
	b, ok := people.ReadButton(value, maxValue)
	if !ok {
		return h.refuse(ctx, unknown)
	}
	q, err := h.find(ctx, b)
	if err != nil {
		return h.refuse(ctx, err)
	}
	if !offers(blocks, value) { // the data is invented, or the person pressed just before the outcome replaced the buttons
		if q.Decision == nil {
			return h.refuse(ctx, unknown)
		}
		h.ts = ""
	}
	switch b.Action {
	case people.ActMore, people.ActWhy, people.ActSay, people.ActEdit:
		return h.showStep(ctx, &q, b)
	}
	a, ok := offer(&q).Answer(b.Action, h.from())
	if !ok {
		return h.refuse(ctx, unknown)
	}
	if offer(&q).NeedsCodeWord(&a) {
		return h.showStep(ctx, &q, b)
	}
	return h.answer(ctx, &q, a)
}

// find returns the request that a button names, with the number of calls that the button's message
// shows.
func (h *handler) find(ctx context.Context, b people.ButtonData) (schemas.Prompt, error) {
	if b.Session == "" {
		return schemas.Prompt{}, unknown
	}
	p, now, err := people.FindShown(ctx, h.desk, b.Session, b.ID, b)
	if err == nil {
		h.now = now
	}
	return p, err
}

// showStep opens the dialog for an action. If the request is not routed to the person who pressed, it
// refuses the press.
func (h *handler) showStep(ctx context.Context, p *schemas.Prompt, b people.ButtonData) error {
	if err := people.CheckRouted(ctx, h.desk, p, h.person); err != nil {
		h.showOutcome(ctx, p)
		return h.refuse(ctx, err)
	}
	v := step(p, b.Action, origin{h.channel, h.ts, h.repeat, b.Text(maxValue)})
	if v == nil {
		return h.refuse(ctx, unknown)
	}
	if err := h.show(ctx, v); err != nil {
		h.log.Info("slack: a dialog was not opened", "error", err)
		h.tell(ctx, "Nothing changed: Slack did not open the dialog. Press the button again.")
	}
	return nil
}

// handleDialog submits the answer of a dialog that a person has sent.
func (h *handler) handleDialog(ctx context.Context, v *incomingView) error {
	o, b, ok := readOrigin(v.Metadata)
	if !ok {
		return h.refuse(ctx, unknown)
	}
	h.channel, h.ts, h.repeat = o.Channel, o.TS, o.Repeat
	words := strings.TrimSpace(v.State.Values[wordsField][wordsField].Value)
	if fault := people.DialogFault(v.CallbackID, words); fault != "" {
		if !h.ack(map[string]any{"response_action": "errors", "errors": map[string]string{wordsField: fault}}) {
			h.tell(ctx, "Nothing changed. "+fault+" Press the button again.") // the dialog is already closed and cannot show the fault
		}
		return nil
	}
	p, err := h.find(ctx, b)
	if err != nil {
		return h.refuse(ctx, err)
	}
	a, ok := offer(&p).DialogAnswer(v.CallbackID, b.Action, words, h.from())
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

// showOutcome edits the pressed message of a decided request to show the outcome. The worker later calls
// Settle for the same purpose, but possibly much later.
func (h *handler) showOutcome(ctx context.Context, p *schemas.Prompt) {
	if p.Decision == nil || h.ts == "" {
		return
	}
	now := *p
	now.Repeat = now.Repeat || h.repeat
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	if err := h.edit(ctx, h.channel, h.ts, &now, nil); err != nil {
		h.log.Info("slack: the buttons of a decided request were not removed", "key", p.Key(), "error", err)
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

// tell shows a text only to this person. If the person pressed a button in a dialog, the dialog shows the
// text. Otherwise the text is a message that nobody else sees.
func (h *handler) tell(ctx context.Context, text string) { h.tellBlocks(ctx, text, said(text)) }

func (h *handler) tellBlocks(ctx context.Context, text string, blocks []block) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.replied = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout)
	defer cancel()
	if h.view != "" {
		_, err := h.api.call(ctx, "views.update", map[string]any{"view_id": h.view, "view": dialog("nod", origin{h.channel, h.ts, h.repeat, ""}, blocks)})
		if err == nil {
			return
		}
		h.log.Info("slack: a dialog did not show its result", "error", err) // the person has already closed the dialog
	}
	h.whisper(ctx, text, blocks)
}

// tellRecording tells the person that their answer is being recorded, unless they have already
// got a reply.
func (h *handler) tellRecording(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.replied {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout)
	defer cancel()
	h.whisper(ctx, people.Recording, said(people.Recording))
}

// whisper sends a message that only this person sees. If the app is not in the conversation, it
// sends the message to the person's own conversation with the app.
func (h *handler) whisper(ctx context.Context, text string, blocks []block) {
	m := outgoing{Channel: h.channel, User: h.person, Text: escape.Replace(firstLine(text)), Blocks: blocks, Parse: "none"}
	_, err := h.api.call(ctx, "chat.postEphemeral", m)
	if isRefusal(err, "user_not_in_channel", "channel_not_found", "not_in_channel") {
		m.Channel, m.User = h.person, ""
		_, err = h.send(ctx, m)
	}
	if err != nil {
		h.log.Info("slack: a reply was not sent", "error", err)
	}
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	if runes := []rune(first); len(runes) > maxAlert {
		return string(runes[:maxAlert]) + "…"
	}
	return first
}
