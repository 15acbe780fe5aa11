package telegram

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// codeWordHead is the first line of the message that asks a person to reply with the code word.
const codeWordHead = "Reply to this message with the code word: your reply allows it."

// codeWordMessage makes the message that asks an approver for the code word. Its text names the
// button that the approver has pressed. codeWordAnswer reads the button from this text when the
// approver replies with the code word.
func codeWordMessage(about *message, p *schemas.Prompt, action string) outgoing {
	m := replyMessage(about, p, codeWordHead, "the code word")
	c := content{units: people.UTF16(m.Text), entities: m.Entities}
	c.text.WriteString(m.Text)
	c.newline()
	c.add("", "Allows: ")
	c.add("code", describeAction(p, action))
	m.Text, m.Entities = c.text.String(), c.entities
	return m
}

// describeAction describes the effect of an action that allows.
func describeAction(p *schemas.Prompt, action string) string {
	for i, r := range offeredReaches(p) {
		for _, e := range people.ExtentsOf(&r) {
			if e.Action(i) == action {
				return people.RuleText(i, &r) + ", " + e.String()
			}
		}
	}
	for _, i := range otherOptions(p) {
		if strconv.Itoa(i) == action {
			return people.OptionText(p, i)
		}
	}
	return "once"
}

// allowActions returns every action that can allow p, and possibly some that cannot.
func allowActions(p *schemas.Prompt) []string {
	all := []string{actAllow}
	for i, r := range offeredReaches(p) {
		for _, e := range people.ExtentsOf(&r) {
			all = append(all, e.Action(i))
		}
	}
	for _, i := range otherOptions(p) {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

// handleCodeWord submits the answer with the code word from a reply. It first deletes the reply, so
// that later readers of the chat do not find the code word. If Telegram does not delete it,
// handleCodeWord asks the person to delete it.
func (h *handler) handleCodeWord(ctx context.Context, m *message, reply teller) error {
	kept := ""
	if !h.erase(ctx, m) {
		kept = "\nTelegram kept your message with the code word: delete it yourself."
	}
	var tell teller = func(text string, alert bool) { reply(text+kept, alert) }
	p, a, err := h.codeWordAnswer(ctx, m)
	if err != nil {
		return h.refuse(err, tell)
	}
	_, err = h.desk.Answer(ctx, a)
	var e *schemas.Error
	switch {
	case err == nil:
		h.erase(ctx, m.ReplyTo)
		if kept != "" {
			tell.say("It is allowed.")
		}
		return nil // the person gets no reply, because the message of the prompt shows the outcome
	case errors.As(err, &e) && e.Code == schemas.CodeForbidden && p.Decision == nil:
		tell.alert("Nothing changed: that was not the code word, or you may not allow this here.")
		return nil
	}
	return h.refuse(err, tell)
}

// codeWordAnswer returns the request for which nod asked for the code word. It also returns the answer
// of the pressed button, with the code word from the reply.
func (h *handler) codeWordAnswer(ctx context.Context, m *message) (p schemas.Prompt, a schemas.Answer, err error) {
	session, id, ok := requestNamedIn(m.ReplyTo.Text)
	if !ok {
		return p, a, unknown
	}
	p, page, err := h.desk.Show(ctx, session, id)
	if err != nil {
		return p, a, err
	}
	h.now = page.Now
	p = people.AsShown(p, callsCountedIn(m.ReplyTo.Text))
	for _, action := range allowActions(&p) {
		a, ok := answerFor(&p, action, m.from())
		if ok && codeWordMessage(m.ReplyTo, &p, action).Text == m.ReplyTo.Text {
			a.CodeWord = strings.TrimSpace(m.Text)
			return p, a, nil
		}
	}
	return p, a, unknown
}

func (h *handler) erase(ctx context.Context, m *message) bool {
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	err := h.api.call(ctx, "deleteMessage", map[string]any{"chat_id": m.Chat.ID, "message_id": m.ID}, nil)
	if err != nil && !isRefusal(err, "message to delete not found") {
		h.log.Info("telegram: a message was not deleted", "error", err)
		return false
	}
	return true
}
