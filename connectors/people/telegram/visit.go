package telegram

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const (
	// sayTimeout bounds a word to somebody that changes nothing.
	sayTimeout = 5 * time.Second
	// soon is how long an answer may take before its person reads that it is
	// being recorded, and patience how long until its update must come again.
	soon     = 2 * time.Second
	patience = 30 * time.Second
	// maxToast is how long the text may be that Telegram shows over the chat.
	maxToast = 200
)

// whyHead heads the message whose replies deny with a reason.
const whyHead = "Reply to this message and say why: your reply denies it."

// sayHead heads the message whose replies answer a question.
const sayHead = "Reply to this message with your answer."

// A visit is one update on its way to the desk.
type visit struct {
	*Carrier
	desk people.Desk
	now  time.Time // the broker's, as soon as nod has told it
}

// unknown is what nod says of ids that are unknown, foreign or made up.
var unknown = &schemas.Error{Code: schemas.CodeNotFound}

// tapped handles a press of a button.
func (v *visit) tapped(ctx context.Context, t *tap) error {
	say, stop := patiently(func(text string) { v.toast(ctx, t, text) })
	defer stop()
	if !t.From.IsBot {
		if ours, err := v.tappedGrant(ctx, t, say); ours {
			return err
		}
	}
	shown, ok := readCallback(t.Data)
	action := shown.action
	if !ok || t.From.IsBot {
		say(people.Refusal(unknown, v.now))
		return nil
	}
	p, err := v.find(ctx, t.Message, t.From.ID, shown)
	if err != nil {
		if errors.Is(err, unknown) && err != error(unknown) && t.own() { // nod keeps it no more; a press that was made up is another thing
			v.edit(ctx, t.Message, &keyboard{Rows: [][]button{}})
		}
		return v.refuse(err, say)
	}
	_, _, reach := reachChosen(&p, action)
	switch {
	case reach, action == actMore, action == actBack, action == actWhy, action == actSay:
		return v.step(ctx, t, &p, action, say)
	}
	a, ok := chosen(&p, action, t.from())
	if !ok {
		say(people.Refusal(unknown, v.now))
		return nil
	}
	if wantsWord(&p, &a) {
		return v.step(ctx, t, &p, action, say)
	}
	if err := v.answer(ctx, &p, a, say); err != nil {
		return err
	}
	v.settleHere(ctx, t.From.ID, t.Message, p)
	return nil
}

// own reports whether a press is that of a message in its person's own chat.
func (t *tap) own() bool { return t.Message != nil && t.Message.Chat.ID == t.From.ID }

// settleHere has the message that was answered show the outcome, in its own person's
// chat: they have just been told it. Nod's worker may not know this message, if the
// one that sent it was killed.
func (v *visit) settleHere(ctx context.Context, person int64, m *message, now schemas.Prompt) {
	if now.Decision == nil || m == nil || m.Chat.ID != person {
		return
	}
	// The message itself tells that it may be here twice, which its outcome says as well.
	now.Repeat = now.Repeat || strings.HasPrefix(m.Text, repeated) || strings.HasPrefix(m.Text, repeatEnded)
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	if err := v.settle(ctx, refOf(m.Chat.ID, m.ID), now); err != nil {
		v.log.Info("telegram: the buttons of a decided request stayed", "key", now.Key(), "error", err)
	}
}

// patiently is say, and says by itself that the answer is being recorded where
// nothing else was said soon. After that only a refusal is still worth a word:
// the question itself shows that the answer counts. stop ends it.
func patiently(say func(string)) (tell func(string), stop func()) {
	var mu sync.Mutex
	over, recording := false, false
	timer := time.AfterFunc(soon, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			recording = true
			say(people.Recording)
		}
	})
	stop = func() {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
	return func(text string) {
		stop()
		if !recording || strings.HasPrefix(text, "Not") {
			say(text)
		}
	}, stop
}

// from is who pressed: the person, never the chat.
func (t *tap) from() schemas.From {
	f := schemas.From{UserID: strconv.FormatInt(t.From.ID, 10)}
	if t.Message != nil {
		f.Chat, f.MessageID = strconv.FormatInt(t.Message.Chat.ID, 10), strconv.FormatInt(t.Message.ID, 10)
	}
	return f
}

// find is the request that a message of nod's shows, with the calls that its button
// counted. The digest must be that of the button; where the message can no longer be
// read, it is looked for among all that this person may be shown.
func (v *visit) find(ctx context.Context, m *message, person int64, b pressed) (schemas.Prompt, error) {
	if m != nil && m.Text != "" {
		session, id, ok := named(m.Text)
		if !ok {
			return schemas.Prompt{}, unknown
		}
		p, page, err := v.desk.Show(ctx, session, id)
		if err != nil {
			return p, err
		}
		v.now = page.Now
		if p.Digest != b.digest {
			return schemas.Prompt{}, unknown
		}
		return people.AsShown(p, b.waiters), nil
	}
	open, err := v.desk.Pending(ctx, schemas.Query{Recipient: strconv.FormatInt(person, 10)})
	if err != nil {
		return schemas.Prompt{}, err
	}
	i := slices.IndexFunc(open, func(p schemas.Prompt) bool { return p.Digest == b.digest })
	if i < 0 {
		return schemas.Prompt{}, unknown
	}
	return people.AsShown(open[i], b.waiters), nil
}

// answer brings an answer to the desk, says how it ended and notes the decision in p.
// Success is said only when it is recorded.
func (v *visit) answer(ctx context.Context, p *schemas.Prompt, a schemas.Answer, say func(string)) error {
	d, err := v.desk.Answer(ctx, a)
	var e *schemas.Error
	switch {
	case errors.As(err, &e) && e.Decision() != nil:
		p.Decision = e.Decision()
		return v.refuse(err, say)
	case err != nil:
		return v.refuse(err, say)
	case p.Decision != nil:
		say(people.Already(&d, v.now))
	default:
		say(people.Recorded(&d, p))
	}
	p.Decision = &d
	return nil
}

// refuse says why an answer did not count, or returns the error when that is
// not known yet.
func (v *visit) refuse(err error, say func(string)) error {
	if again(err) {
		return fmt.Errorf("bring an answer from Telegram: %w", err)
	}
	var e *schemas.Error
	errors.As(err, &e)
	say(people.Refusal(e, v.now))
	return nil
}

// step shows what a button leads to, to the person whose chat it is.
func (v *visit) step(ctx context.Context, t *tap, p *schemas.Prompt, action string, say func(string)) error {
	switch {
	case !t.own():
		say(people.Refusal(&schemas.Error{Code: schemas.CodeForbidden}, v.now))
		return nil
	case p.Decision != nil:
		say(people.Refusal((&schemas.Error{Code: schemas.CodeConflict}).WithDecision(p.Decision), v.now))
		v.settleHere(ctx, t.From.ID, t.Message, *p)
		return nil
	case action == actWhy:
		v.send(ctx, replyMessage(t.Message, p, whyHead, "use make clean instead"))
		say("")
		return nil
	case action == actSay:
		v.send(ctx, replyMessage(t.Message, p, sayHead, "your answer"))
		say("")
		return nil
	}
	rows, word := moreButtons(p), ""
	if i, rule, ok := reachChosen(p, action); ok {
		rows, word = endButtons(p, i), v.rule(ctx, t.Message, rule)
	} else if action == actBack {
		rows = buttons(p)
	} else if action != actMore { // it would allow, with the code word
		v.send(ctx, wordMessage(t.Message, p, action))
		say("")
		return nil
	}
	say(word)
	v.edit(ctx, t.Message, rows)
	// The request may have ended, and lost its buttons, in between.
	now, _, err := v.desk.Show(ctx, p.SessionID, p.PendingID)
	if err != nil {
		return v.refuse(err, func(string) {})
	}
	if now.Decision != nil {
		v.settleHere(ctx, t.From.ID, t.Message, now)
	}
	return nil
}

// replyMessage asks for words: the reason of a denial, the answer to a question
// or the code word. It names the request as a prompt does, so that any worker can
// read a reply to it, and with its digest: an id may stand for another request by
// then. It counts the calls that the button counted.
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

// toast answers a press with a text over the chat. One that came too long ago
// is answered with a message, as is a text that is too long.
func (v *visit) toast(ctx context.Context, t *tap, text string) {
	fits := people.UTF16(text) <= maxToast
	params := map[string]any{"callback_query_id": t.ID}
	if fits && text != "" {
		params["text"] = text
		params["show_alert"] = strings.HasPrefix(text, "Not") || strings.HasPrefix(text, ruleHead)
	}
	hop, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	err := v.api.call(hop, "answerCallbackQuery", params, nil)
	if err != nil && !refused(err, "query is too old", "query ID is invalid") {
		v.log.Info("telegram: a press was not answered", "error", err)
	}
	if text != "" && text != people.Recording && t.Message != nil && (err != nil || !fits) {
		v.send(ctx, outgoing{ChatID: t.Message.Chat.ID, Text: text, ReplyTo: &replyTo{MessageID: t.Message.ID, Without: true}})
	}
}

// send sends a word that changes nothing: what is lost of it is said again when
// the person asks again.
func (v *visit) send(ctx context.Context, m outgoing) {
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	m.Preview.IsDisabled = true
	if err := v.api.call(ctx, "sendMessage", m, nil); err != nil {
		v.log.Info("telegram: a reply was not sent", "error", err)
	}
}

func (v *visit) edit(ctx context.Context, m *message, k *keyboard) {
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	err := v.api.call(ctx, "editMessageReplyMarkup", map[string]any{"chat_id": m.Chat.ID, "message_id": m.ID, "reply_markup": k}, nil)
	if err != nil && !refused(err, "message is not modified") {
		v.log.Info("telegram: the options were not shown", "error", err)
	}
}
