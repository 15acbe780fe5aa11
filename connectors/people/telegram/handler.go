package telegram

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// sayTimeout is the time limit of calls to Telegram that only inform a person.
	sayTimeout = 5 * time.Second
	// recordingAfter is the time after which nod tells a person that their answer is being recorded.
	// updateTimeout is the time limit for handling an update. If nod takes longer, Telegram sends the
	// update again.
	recordingAfter = 2 * time.Second
	updateTimeout  = 30 * time.Second
	// maxToast is the largest length, in UTF-16 units, of a text that Telegram shows over the chat.
	maxToast = 200
)

// reasonHead is the first line of the message that asks a person to reply with the reason of a denial.
const reasonHead = "Reply to this message and say why: your reply denies it."

// answerHead is the first line of the message that asks a person to reply with the answer to an agent's
// question.
const answerHead = "Reply to this message with your answer."

// handler handles a single update.
type handler struct {
	*Carrier
	desk people.Desk
	now  time.Time // the broker's time or, before the first query, this machine's time
}

// unknown is the error for a request that does not exist, or that is hidden from the person who acts.
var unknown = &schemas.Error{Code: schemas.CodeNotFound}

func (h *handler) handlePress(ctx context.Context, t *callbackQuery) error {
	tell, stop := withRecordingNotice(func(text string, alert bool) { h.toast(ctx, t, text, alert) })
	defer stop()
	if !t.From.IsBot {
		if ours, err := h.handleGrantPress(ctx, t, tell); ours {
			return err
		}
	}
	shown, ok := readCallback(t.Data)
	action := shown.action
	if !ok || t.From.IsBot {
		tell.alert(people.Refusal(unknown, h.now))
		return nil
	}
	p, err := h.findRequest(ctx, t.Message, t.From.ID, shown)
	if err != nil {
		if errors.Is(err, unknown) && err != error(unknown) && t.inOwnChat() { // If nod no longer stores the request, the buttons are removed. For invented data, find returns exactly unknown, and the buttons stay.
			h.edit(ctx, t.Message, &keyboard{Rows: [][]button{}})
		}
		return h.refuse(err, tell)
	}
	_, _, reach := reachChosen(&p, action)
	switch {
	case reach, action == actMore, action == actBack, action == actWhy, action == actSay:
		return h.showStep(ctx, t, &p, action, tell)
	}
	a, ok := answerFor(&p, action, t.from())
	if !ok {
		tell.alert(people.Refusal(unknown, h.now))
		return nil
	}
	if (people.Offer{Prompt: &p}).NeedsCodeWord(&a) {
		return h.showStep(ctx, t, &p, action, tell)
	}
	if err := h.answer(ctx, &p, a, tell); err != nil {
		return err
	}
	h.showOutcome(ctx, t.From.ID, t.Message, p)
	return nil
}

// inOwnChat reports whether the pressed message is in the chat of the person who pressed.
func (t *callbackQuery) inOwnChat() bool { return t.Message != nil && t.Message.Chat.ID == t.From.ID }

// showOutcome edits the message of a decided request to show the outcome, if the message is in this
// person's own chat. The worker later calls Settle for the same purpose, but possibly much later.
func (h *handler) showOutcome(ctx context.Context, person int64, m *message, now schemas.Prompt) {
	if now.Decision == nil || m == nil || m.Chat.ID != person {
		return
	}
	// Keep the sentence that another message about the request may be in the chat.
	now.Repeat = now.Repeat || strings.HasPrefix(m.Text, repeated) || strings.HasPrefix(m.Text, repeatEnded)
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	if err := h.editToOutcome(ctx, refOf(m.Chat.ID, m.ID), now); err != nil {
		h.log.Info("telegram: the buttons of a decided request were not removed", "key", now.Key(), "error", err)
	}
}

// A teller shows a person the result of a press or a message. An alert is a text that the person must not
// miss, such as a refusal, or the rule that the next press stores.
type teller func(text string, alert bool)

func (t teller) say(text string)   { t(text, false) }
func (t teller) alert(text string) { t(text, true) }

// withRecordingNotice returns a teller that passes each text to the function show. If the handler has
// told the person nothing within recordingAfter, the teller says that the answer is being recorded. From
// then on it passes on only alerts, because the message of the prompt shows the outcome. The function
// stop prevents the text that the answer is being recorded.
func withRecordingNotice(show teller) (tell teller, stop func()) {
	var mu sync.Mutex
	over, recording := false, false
	timer := time.AfterFunc(recordingAfter, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			recording = true
			show.say(people.Recording)
		}
	})
	stop = func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
	return func(text string, alert bool) {
		stop()
		if !recording || alert {
			show(text, alert)
		}
	}, stop
}

// from returns the person who pressed the button. This person need not own the chat.
func (t *callbackQuery) from() schemas.From {
	f := schemas.From{UserID: strconv.FormatInt(t.From.ID, 10)}
	if t.Message != nil {
		f.Chat, f.MessageID = strconv.FormatInt(t.Message.Chat.ID, 10), strconv.FormatInt(t.Message.ID, 10)
	}
	return f
}

// findRequest returns the request that a message shows, with the number of calls in b, the data of its
// button. If the request does not have the digest in b, the error is that for an unknown request. If the
// message's text is no longer available, findRequest looks for the digest among the pending requests that
// this person may see.
func (h *handler) findRequest(ctx context.Context, m *message, person int64, b buttonData) (schemas.Prompt, error) {
	if m != nil && m.Text != "" {
		session, id, ok := requestNamedIn(m.Text)
		if !ok {
			return schemas.Prompt{}, unknown
		}
		p, page, err := h.desk.Show(ctx, session, id)
		if err != nil {
			return p, err
		}
		h.now = page.Now
		if p.Digest != b.digest {
			return schemas.Prompt{}, unknown
		}
		return people.AsShown(p, b.waiters), nil
	}
	q := schemas.Query{Recipient: strconv.FormatInt(person, 10)}
	p, found, err := people.FindPending(ctx, h.desk, q, func(p *schemas.Prompt) bool { return p.Digest == b.digest })
	if err == nil && !found {
		err = unknown
	}
	return people.AsShown(p, b.waiters), err
}

// answer submits an answer, tells the person the result, and stores the decision in p. It reports
// success only after nod has stored the answer.
func (h *handler) answer(ctx context.Context, p *schemas.Prompt, a schemas.Answer, tell teller) error {
	d, err := h.desk.Answer(ctx, a)
	var e *schemas.Error
	switch {
	case errors.As(err, &e) && e.Decision() != nil:
		p.Decision = e.Decision()
		return h.refuse(err, tell)
	case err != nil:
		return h.refuse(err, tell)
	case p.Decision != nil:
		tell.say(people.AlreadyDecided(&d, h.now))
	default:
		tell.say(people.Recorded(&d, p))
	}
	p.Decision = &d
	return nil
}

// refuse tells the person why an answer did not count. If it is unknown whether the answer counted,
// refuse returns an error, so that Telegram sends the update again.
func (h *handler) refuse(err error, tell teller) error {
	if people.IsUncertain(err) {
		return fmt.Errorf("submit an answer from Telegram: %w", err)
	}
	var e *schemas.Error
	errors.As(err, &e)
	tell.alert(people.Refusal(e, h.now))
	return nil
}

// showStep shows the next step after a press. It refuses a press in the chat of another person.
func (h *handler) showStep(ctx context.Context, t *callbackQuery, p *schemas.Prompt, action string, tell teller) error {
	switch {
	case !t.inOwnChat():
		tell.alert(people.Refusal(&schemas.Error{Code: schemas.CodeForbidden}, h.now))
		return nil
	case p.Decision != nil:
		tell.alert(people.Refusal((&schemas.Error{Code: schemas.CodeConflict}).WithDecision(p.Decision), h.now))
		h.showOutcome(ctx, t.From.ID, t.Message, *p)
		return nil
	case action == actWhy:
		h.send(ctx, replyMessage(t.Message, p, reasonHead, "use make clean instead"))
		tell.say("")
		return nil
	case action == actSay:
		h.send(ctx, replyMessage(t.Message, p, answerHead, "your answer"))
		tell.say("")
		return nil
	}
	rows, word := moreButtons(p), ""
	if i, rule, ok := reachChosen(p, action); ok {
		rows, word = extentButtons(p, i), h.showRule(ctx, t.Message, rule)
	} else if action == actBack {
		rows = buttons(p)
	} else if action != actMore { // an action that allows the request needs the code word
		h.send(ctx, codeWordMessage(t.Message, p, action))
		tell.say("")
		return nil
	}
	tell(word, word != "")
	h.edit(ctx, t.Message, rows)
	// The request may have ended just before the edit. The edit has then put buttons below the
	// outcome.
	now, _, err := h.desk.Show(ctx, p.SessionID, p.PendingID)
	if err != nil {
		return h.refuse(err, func(string, bool) {})
	}
	if now.Decision != nil {
		h.showOutcome(ctx, t.From.ID, t.Message, now)
	}
	return nil
}

// replyMessage makes a message that asks a person to reply with a text: the reason of a denial, the
// answer to an agent's question, or the code word. Its text contains the id of the request, so that any
// worker can handle the reply. It contains the digest, because another request may have the same id
// later. It also contains the number of calls from the pressed button.
func replyMessage(about *message, p *schemas.Prompt, head, example string) outgoing {
	var c content
	c.add("bold", head)
	c.newline()
	c.add("", requestLine)
	c.add("code", p.PendingID)
	c.newline()
	c.add("", sessionLine)
	c.add("code", p.SessionID)
	c.newline()
	c.add("", "Of: ")
	c.add("code", p.Digest)
	if p.Waiters > 1 {
		c.newline()
		c.add("", callsLine)
		c.add("code", strconv.Itoa(p.Waiters))
	}
	return outgoing{
		ChatID: about.Chat.ID, Text: c.text.String(), Entities: c.entities, Preview: preview{IsDisabled: true},
		ReplyTo: &replyTo{MessageID: about.ID, Without: true}, Markup: forceReply{ForceReply: true, Placeholder: example},
	}
}

// toast answers a press with a short text that Telegram shows over the chat. If the text is too long
// for a toast, or the press too old, toast sends the text as a message. An alert stays until the
// person closes it.
func (h *handler) toast(ctx context.Context, t *callbackQuery, text string, alert bool) {
	fits := people.UTF16(text) <= maxToast
	params := map[string]any{"callback_query_id": t.ID}
	if fits && text != "" {
		params["text"] = text
		params["show_alert"] = alert
	}
	hop, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	err := h.api.call(hop, "answerCallbackQuery", params, nil)
	if err != nil && !isRefusal(err, "query is too old", "query ID is invalid") {
		h.log.Info("telegram: a press was not answered", "error", err)
	}
	if text != "" && text != people.Recording && t.Message != nil && (err != nil || !fits) {
		h.send(ctx, outgoing{ChatID: t.Message.Chat.ID, Text: text, ReplyTo: &replyTo{MessageID: t.Message.ID, Without: true}})
	}
}

// send sends a message that only informs. It logs an error and does not retry, because the person can
// repeat the command.
func (h *handler) send(ctx context.Context, m outgoing) {
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	m.Preview.IsDisabled = true
	if err := h.api.call(ctx, "sendMessage", m, nil); err != nil {
		h.log.Info("telegram: a reply was not sent", "error", err)
	}
}

func (h *handler) edit(ctx context.Context, m *message, k *keyboard) {
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	err := h.api.call(ctx, "editMessageReplyMarkup", map[string]any{"chat_id": m.Chat.ID, "message_id": m.ID, "reply_markup": k}, nil)
	if err != nil && !isRefusal(err, "message is not modified") {
		h.log.Info("telegram: the options were not shown", "error", err)
	}
}
