package whatsapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// sayTimeout is the time limit of a reply to a person.
	sayTimeout = 5 * time.Second
	// recordingAfter is the time after which nod tells a person that their answer is being recorded.
	recordingAfter = 2 * time.Second
	// handledFor is how long nod remembers the id of a handled message. Meta repeats a call for
	// at most 7 days, so nod ignores an older message.
	handledFor = 8 * 24 * time.Hour
	// mostShown is the largest number of waiting prompts that nod sends in reply to one message.
	mostShown = 10
)

// unknown is the error for a request that does not exist, or that is hidden from the person who acts.
var unknown = &schemas.Error{Code: schemas.CodeNotFound}

// handler handles a single message of a person.
type handler struct {
	*Carrier
	desk people.Desk
	m    *incoming
	now  time.Time // the broker's time or, before the first query, this machine's time
}

// handleOnce handles a message unless a worker has already handled it. It marks the message afterwards.
// If the worker dies before that, Meta sends the message again, and the same answer is submitted twice
// without harm. A repeated thaw could end a later freeze, so handleOnce marks a thaw before it handles
// it.
func (c *Carrier) handleOnce(ctx context.Context, desk people.Desk, m *incoming) error {
	seconds, err := strconv.ParseInt(m.Timestamp, 10, 64)
	sentAt := time.Unix(seconds, 0)
	switch {
	case m.From == "" || m.ID == "" || m.GroupID != "" || err != nil:
		return nil // ignore a message that names no sender or was written in a group
	case time.Since(sentAt) > handledFor:
		return nil
	}
	if now := time.Now(); sentAt.After(now) {
		sentAt = now // Meta's clock is ahead of this machine's
	}
	c.openWindowAt(m.From, sentAt)
	h := &handler{c, desk, m, time.Now()}
	defer h.noticeIfSlow(ctx)()
	dedupe, durable := desk.(people.Deduper)
	if !durable {
		return h.handle(ctx)
	}
	until := sentAt.Add(handledFor)
	if command, _ := people.Command(m.Text.Body); command == "/thaw" {
		first, err := dedupe.MarkHandled(ctx, m.ID, until)
		if err != nil || !first {
			return h.uncertain(err)
		}
		return h.handle(ctx)
	}
	handled, err := dedupe.Handled(ctx, m.ID)
	if err := h.uncertain(err); err != nil || handled {
		return err
	}
	if err := h.handle(ctx); err != nil {
		return err
	}
	_, err = dedupe.MarkHandled(ctx, m.ID, until)
	return h.uncertain(err)
}

// uncertain returns err, an error about the mark of a handled message, if Meta must send the message
// again. It logs any other error and returns nil, because an older engine cannot store marks and must not
// prevent answers.
func (h *handler) uncertain(err error) error {
	if err != nil && !people.IsUncertain(err) {
		h.Log.Warn("whatsapp: nod does not remember the handled messages; a repeated message may get a second reply", "error", err)
		return nil
	}
	return err
}

// noticeIfSlow tells the person that their answer is being recorded, unless the returned function stop is
// called within recordingAfter. If Meta delivers the same message again, the person is not told again.
func (h *handler) noticeIfSlow(ctx context.Context) (stop func()) {
	if h.m.Type != "interactive" && people.ReadText(h.m.Text.Body).Code == "" && !isWords(h.m.Text.Body) {
		return func() {}
	}
	waiting := time.AfterFunc(recordingAfter, func() {
		if h.told.Get(h.m.ID) == "" {
			h.told.Put(h.m.ID, "recording")
			h.say(ctx, said(people.Recording))
		}
	})
	return func() { waiting.Stop() }
}

func isWords(text string) bool {
	_, _, ok := people.ReadWords(text)
	return ok
}

// openWindowAt records that a person wrote at the time at. For the next 24 hours the person's window is
// open, which means that Meta lets nod send messages to the person.
func (c *Carrier) openWindowAt(person string, at time.Time) {
	if time.Since(at) < 24*time.Hour {
		c.openWindow(person)
	}
}

func (h *handler) handle(ctx context.Context) error {
	switch {
	case h.m.Type == "interactive" && h.m.Interactive.Type == "button_reply":
		return h.handleTap(ctx, h.m.Interactive.ButtonReply.ID)
	case h.m.Type == "button" && h.m.Button.Payload == showButton:
		return h.showPending(ctx)
	case h.m.Type == "text":
		return h.handleText(ctx)
	case h.m.Type == "reaction", h.m.Type == "system":
		return nil
	}
	h.say(ctx, said("Nothing changed: nod reads texts and taps on buttons only."))
	return nil
}

func (h *handler) from() schemas.From {
	return schemas.From{UserID: h.m.From, Chat: h.m.From, MessageID: h.m.ID}
}

// handleTap submits the answer of a button.
func (h *handler) handleTap(ctx context.Context, id string) error {
	b, ok := people.ReadButton(id, maxID)
	shown := h.sent.Get(h.m.Context.ID)
	if !ok || shown != "" && shown != b.Digest { // the tapped message is about another request than the button
		return h.refuse(ctx, unknown)
	}
	p, err := h.find(ctx, b)
	if err != nil {
		return h.refuse(ctx, err)
	}
	a, ok := answerFor(&p, b.Action, h.from())
	if !ok {
		return h.refuse(ctx, unknown)
	}
	return h.answer(ctx, &p, a)
}

// find returns the request that a button names, with the number of calls that the button's message shows.
// If the request does not have the digest in the button, the error is that for an unknown request.
func (h *handler) find(ctx context.Context, b people.ButtonData) (schemas.Prompt, error) {
	if b.Session != "" {
		p, page, err := h.desk.Show(ctx, b.Session, b.ID)
		if err != nil {
			return p, err
		}
		h.now = page.Now
		if p.Digest != b.Digest {
			return p, unknown
		}
		return people.AsShown(p, b.Waiters), nil
	}
	p, found, err := people.FindPending(ctx, h.desk, schemas.Query{Recipient: h.m.From}, func(p *schemas.Prompt) bool { return p.Digest == b.Digest })
	if err == nil && !found {
		err = unknown
	}
	return people.AsShown(p, b.Waiters), err
}

// oldest returns the oldest requests that wait for this person, at most mostShown, and reports whether
// there are more.
func (h *handler) oldest(ctx context.Context) (open []schemas.Prompt, more bool, err error) {
	return people.Oldest(ctx, h.desk, schemas.Query{Recipient: h.m.From}, mostShown, nil)
}

// handleText handles a text, which is a command or an answer with the code of a prompt. A yes or no
// without a code decides nothing, even in reply to a prompt, because Meta may deliver the text late or
// twice.
func (h *handler) handleText(ctx context.Context) error {
	words := h.m.Text.Body
	commands := people.Commands{Desk: h.desk, Channel: Name, Now: h.now}
	if reply, known, err := commands.Run(ctx, h.from(), words); known {
		if command, _ := people.Command(words); command != "/web" {
			reply = said(reply) // said would format the link as code, in which WhatsApp opens no links
		}
		if err == nil {
			h.say(ctx, reply)
		}
		return err
	}
	if command, _ := people.Command(words); command == "/pending" {
		return h.showPending(ctx)
	}
	if answerCode, own, ok := people.ReadWords(words); ok {
		return h.handleWords(ctx, answerCode, own)
	}
	utterance := people.ReadText(words)
	if utterance.Word == people.Unclear || utterance.Code == "" {
		return h.notUnderstood(ctx)
	}
	p, ok, err := h.findByCode(ctx, utterance.Code)
	if err != nil || !ok {
		return err
	}
	a, ok := utterance.Answer(&p, h.from())
	if !ok || utterance.Word == people.Yes && !mayAllow(&p) {
		h.say(ctx, said("Nothing changed: "+utterance.Code+" cannot be allowed on WhatsApp. Read it with: nod show "+p.PendingID))
		return nil
	}
	return h.answer(ctx, &p, a)
}

// findByCode returns the request that waits for this person and has the given code. If there is no such
// request, it tells the person, and ok is false.
func (h *handler) findByCode(ctx context.Context, answerCode string) (p schemas.Prompt, ok bool, err error) {
	p, ok, err = h.codes.Find(ctx, h.desk, answerCode, h.m.From)
	if err != nil {
		return p, false, h.refuse(ctx, err)
	}
	if !ok {
		h.say(ctx, said("Nothing changed: no request that waits for you has the code "+answerCode+". It may have ended. /pending shows the requests that wait."))
	}
	return p, ok, nil
}

// handleWords handles an answer in the person's own words.
func (h *handler) handleWords(ctx context.Context, answerCode, own string) error {
	p, ok, err := h.findByCode(ctx, answerCode)
	if err != nil || !ok {
		return err
	}
	a, ok := people.TextAnswer(&p, fitsWhole(&p), own, h.from())
	if !ok || p.Request.Kind != schemas.KindQuestion {
		h.say(ctx, said("Nothing changed: "+answerCode+" takes no words on WhatsApp. Read it with: nod show "+p.PendingID))
		return nil
	}
	return h.answer(ctx, &p, a)
}

// notUnderstood replies to a text that is no answer.
func (h *handler) notUnderstood(ctx context.Context) error {
	open, more, err := h.oldest(ctx)
	if err != nil {
		return h.refuse(ctx, err)
	}
	codes := make([]string, len(open))
	for i := range open {
		codes[i] = h.codes.Of(&open[i], h.m.From)
	}
	text := people.NotUnderstood(codes)
	if more {
		text = fmt.Sprintf("I did not understand that, and nothing changed. More than %d requests are waiting: answer with the buttons under each question.", len(open))
	}
	h.say(ctx, said(text+"\n/pending shows the requests that wait, /leave lets a session go on without you until /back, /freeze denies every request until /thaw, /web sends a link to the web inbox. Your WhatsApp id is "+h.m.From+"."))
	return nil
}

// showPending sends the prompts that wait for this person, oldest first.
func (h *handler) showPending(ctx context.Context) error {
	open, more, err := h.oldest(ctx)
	if err != nil {
		return h.refuse(ctx, err)
	}
	if len(open) == 0 {
		h.say(ctx, said(people.NotUnderstood(nil)))
		return nil
	}
	for i := range open {
		p := open[i]
		p.Recipient, p.Repeat = h.m.From, true
		if _, err := h.sendPrompt(ctx, &p, again); err != nil {
			h.Log.Info("whatsapp: a question was not sent again", "key", p.Key(), "error", err)
			break // stop here: the person can ask for the prompts again
		}
	}
	if more {
		h.say(ctx, said("and more: answer these first, then write /pending again."))
	}
	return nil
}

// answer submits an answer and tells the person the result. It reports success only after nod has stored
// the answer.
func (h *handler) answer(ctx context.Context, p *schemas.Prompt, a schemas.Answer) error {
	key := tellKey(h.m.From, p)
	h.told.Put(key, "answering") // otherwise Settle would tell this person the outcome too
	d, err := h.desk.Answer(ctx, a)
	var e *schemas.Error
	switch {
	case errors.As(err, &e) && e.Decision() != nil:
		h.told.Remove(key)
		return h.refuse(ctx, err)
	case err != nil:
		h.told.Remove(key)
		return h.refuse(ctx, err)
	case p.Decision != nil:
		h.say(ctx, said(people.AlreadyDecided(&d, h.now)))
	case !h.sayAbout(ctx, cmp.Or(h.m.Context.ID, h.m.ID), said(people.Recorded(&d, p))+"\n"+code("Request "+p.PendingID)):
		h.told.Remove(key)
	}
	return nil
}

// refuse tells the person why an answer did not count. If it is unknown whether the answer counted,
// refuse returns an error, so that Meta sends the message again.
func (h *handler) refuse(ctx context.Context, err error) error {
	if people.IsUncertain(err) {
		return fmt.Errorf("submit an answer from WhatsApp: %w", err)
	}
	var e *schemas.Error
	errors.As(err, &e)
	h.say(ctx, said(people.Refusal(e, h.now)))
	return nil
}

// say replies to the person's message. It logs an error and does not retry, because the person can repeat
// their message.
func (h *handler) say(ctx context.Context, body string) (sent bool) {
	return h.sayAbout(ctx, h.m.ID, body)
}

// sayAbout sends a message that quotes another message. The parameter quotes is the id of the other
// message.
func (h *handler) sayAbout(ctx context.Context, quotes, body string) (sent bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sayTimeout)
	defer cancel()
	if _, err := h.sendText(ctx, h.m.From, quotes, body, ""); err != nil {
		h.Log.Info("whatsapp: a reply was not sent", "error", err)
		return false
	}
	return true
}
