package telegram

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// handleMessage handles a message that a person wrote. Two kinds of messages answer a request: a yes or
// no in reply to a prompt, and a reply to a message that asks for a reason, an answer or the code word.
// Other messages have an effect only if they are commands.
func (h *handler) handleMessage(ctx context.Context, m *message) error {
	var tell teller = func(text string, _ bool) {
		h.send(ctx, outgoing{ChatID: m.Chat.ID, Text: text, ReplyTo: &replyTo{MessageID: m.ID, Without: true}})
	}
	if m.ReplyTo != nil && m.ReplyTo.From != nil && m.ReplyTo.From.ID == h.me.Load() {
		if strings.HasPrefix(m.ReplyTo.Text, reasonHead+"\n") {
			return h.handleWords(ctx, m, reasonHead, tell, func(p *schemas.Prompt) (schemas.Answer, bool) {
				return people.Utterance{Word: people.No, Reason: m.Text}.Answer(p, m.from())
			})
		}
		if strings.HasPrefix(m.ReplyTo.Text, answerHead+"\n") {
			return h.handleWords(ctx, m, answerHead, tell, func(p *schemas.Prompt) (schemas.Answer, bool) { return textAnswer(p, m.Text, m.from()) })
		}
		if strings.HasPrefix(m.ReplyTo.Text, codeWordHead+"\n") {
			return h.handleCodeWord(ctx, m, tell)
		}
		if _, _, ok := requestNamedIn(m.ReplyTo.Text); ok {
			return h.handleReply(ctx, m, tell)
		}
	}
	commands := people.Commands{Desk: h.desk, Channel: Name, Now: h.now}
	if reply, known, err := commands.Run(ctx, m.from(), m.Text); known {
		if err == nil {
			tell.say(reply)
		}
		return err
	}
	switch command, _ := people.Command(m.Text); command {
	case "/pending":
		return h.listPending(ctx, m)
	case "/grants":
		return h.listGrants(ctx, m, tell)
	}
	tell.say(fmt.Sprintf("Nothing changed. Answer with the buttons under a question, or reply to it with yes or no.\n"+
		"/pending lists the requests that wait for you, /grants your answers that last, /leave lets a session go on without you until /back, /freeze denies every request until /thaw, /web sends a link to the web inbox.\n\nYour Telegram user id is %d. nod recognises approvers by it.", m.From.ID))
	return nil
}

// handleWords submits an answer with the text that a person wrote: the reason of a denial, or the answer
// to an agent's question. The text counts only if the request has not changed since nod asked for the
// text. The parameter head is the first line of the message in which nod asked for the text.
func (h *handler) handleWords(ctx context.Context, m *message, head string, tell teller, answer func(*schemas.Prompt) (schemas.Answer, bool)) error {
	session, id, ok := requestNamedIn(m.ReplyTo.Text)
	if !ok || strings.TrimSpace(m.Text) == "" {
		tell.alert("Nothing changed: write it as a text.")
		return nil
	}
	p, page, err := h.desk.Show(ctx, session, id)
	if err != nil {
		return h.refuse(err, tell)
	}
	h.now = page.Now
	p = people.AsShown(p, callsCountedIn(m.ReplyTo.Text))
	a, ok := answer(&p)
	if !ok || replyMessage(m.ReplyTo, &p, head, "").Text != m.ReplyTo.Text {
		tell.alert(people.Refusal(unknown, h.now))
		return nil
	}
	return h.answer(ctx, &p, a, tell)
}

// textAnswer returns an answer to p with a text that the person wrote. ok is false if p does not
// accept a text as an answer on Telegram.
func textAnswer(p *schemas.Prompt, text string, from schemas.From) (a schemas.Answer, ok bool) {
	return people.TextAnswer(p, fitsWhole(p), text, from)
}

// handleReply handles a yes or a no in reply to a prompt.
func (h *handler) handleReply(ctx context.Context, m *message, tell teller) error {
	shown, ok := m.ReplyTo.button()
	if !ok {
		return h.refuseReply(ctx, m, tell)
	}
	p, err := h.findRequest(ctx, m.ReplyTo, m.From.ID, shown)
	if err != nil {
		return h.refuse(err, tell)
	}
	action := map[people.Word]string{people.Yes: actAllow, people.No: actDeny}
	said := people.ReadText(m.Text)
	a, ok := answerFor(&p, action[said.Word], m.from())
	if said.Code != "" || !ok {
		tell.alert("I did not understand that, and nothing changed. Press a button, or reply just yes or no. To deny with a reason, press “Deny, say why”.")
		return nil
	}
	if (people.Offer{Prompt: &p}).NeedsCodeWord(&a) {
		h.send(ctx, codeWordMessage(m.ReplyTo, &p, actAllow))
		return nil
	}
	if err := h.answer(ctx, &p, a, tell); err != nil {
		return err
	}
	h.showOutcome(ctx, m.From.ID, m.ReplyTo, p)
	return nil
}

// refuseReply refuses a yes or no in reply to a message without buttons. Either the request is
// decided, or nod has lost the Ref of this message, and a newer message takes the answer.
func (h *handler) refuseReply(ctx context.Context, m *message, tell teller) error {
	session, id, _ := requestNamedIn(m.ReplyTo.Text)
	p, page, err := h.desk.Show(ctx, session, id)
	if err != nil {
		return h.refuse(err, tell)
	}
	h.now = page.Now
	if p.Decision != nil {
		return h.refuse((&schemas.Error{Code: schemas.CodeConflict}).WithDecision(p.Decision), tell)
	}
	tell.alert("Nothing changed: a message without buttons takes no answer. Reply to the message about this request that has buttons.")
	return nil
}

func (m *message) from() schemas.From {
	return schemas.From{
		UserID: strconv.FormatInt(m.From.ID, 10), Chat: strconv.FormatInt(m.Chat.ID, 10), MessageID: strconv.FormatInt(m.ID, 10),
	}
}

// button returns the data of the first button under the message of a prompt.
func (m *message) button() (buttonData, bool) {
	if m.ReplyMarkup == nil || len(m.ReplyMarkup.Rows) == 0 || len(m.ReplyMarkup.Rows[0]) == 0 {
		return buttonData{}, false
	}
	return readCallback(m.ReplyMarkup.Rows[0][0].Data)
}

func (h *handler) listPending(ctx context.Context, m *message) error {
	open, more, err := people.Oldest(ctx, h.desk, schemas.Query{Recipient: strconv.FormatInt(m.From.ID, 10)}, people.MaxListed, nil)
	if err != nil {
		return h.refuse(err, func(text string, _ bool) { h.send(ctx, outgoing{ChatID: m.Chat.ID, Text: text}) })
	}
	list := listing(open, more, h.now)
	h.send(ctx, outgoing{ChatID: m.Chat.ID, Text: list.text.String(), Entities: list.entities})
	return nil
}

// times returns the number of waiting identical calls, such as " · ×3". For one call it returns
// "".
func times(p *schemas.Prompt) string {
	if people.Times(p) == "" {
		return ""
	}
	return " · " + people.Times(p)
}

func listing(open []schemas.Prompt, more bool, now time.Time) *content {
	c := &content{}
	if len(open) == 0 {
		c.add("", people.NotUnderstood(nil))
		return c
	}
	c.add("bold", people.CountWaiting(len(open), more)+" Answer with the buttons under each question.")
	for i := range open {
		p := &open[i]
		c.newline()
		c.add("code", p.PendingID[:min(len(p.PendingID), 16)])
		c.add("", fmt.Sprintf(" · %s%s · until %s\n", p.Risk, times(p), people.DeadlineText(p, now.UTC())))
		c.add("pre", "│ "+people.Summary(p, 100))
	}
	if more {
		c.add("", "\nand more: nod pending")
	}
	return c
}
