package telegram

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// wordHead heads the message whose replies are the code word.
const wordHead = "Reply to this message with the code word: your reply allows it."

// wantsWord reports whether an answer to p still lacks the code word.
func wantsWord(p *schemas.Prompt, a *schemas.Answer) bool {
	option, ok := p.Request.Option(a.OptionID)
	return ok && option.Kind.Allows() && p.TakesMore(schemas.TakesCodeWord)
}

// wordMessage asks for the code word. It says what the reply allows too: whoever
// reads the reply finds the very answer that was pressed.
func wordMessage(about *message, p *schemas.Prompt, action string) outgoing {
	m := replyMessage(about, p, wordHead, "the code word")
	c := content{units: people.UTF16(m.Text), entities: m.Entities}
	c.text.WriteString(m.Text)
	c.newline()
	c.add("", "Allows: ")
	c.add("code", allows(p, action))
	m.Text, m.Entities = c.text.String(), c.entities
	return m
}

// allows is what an action allows, for a person.
func allows(p *schemas.Prompt, action string) string {
	for i, r := range reaches(p) {
		for _, e := range ends {
			if e.action(i) == action {
				return rule(i, &r) + ", " + e.String()
			}
		}
	}
	for _, i := range others(p) {
		if strconv.Itoa(i) == action {
			return exact(p, p.Request.Options[i])
		}
	}
	return "once"
}

// actions are all that can be chosen for p from here.
func actions(p *schemas.Prompt) []string {
	all := []string{actAllow}
	for i := range reaches(p) {
		for _, e := range ends {
			all = append(all, e.action(i))
		}
	}
	for _, i := range others(p) {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

// withWord answers with what was replied as the code word. The message goes
// first: whoever looks into the chat later must not find it. Where Telegram keeps
// it, whatever is said asks the person to delete it.
func (v *visit) withWord(ctx context.Context, m *message, say func(string)) error {
	kept := ""
	if !v.erase(ctx, m) {
		kept = "\nTelegram kept your message with the code word: delete it yourself."
	}
	tell := func(text string) { say(text + kept) }
	p, a, err := v.worded(ctx, m)
	if err != nil {
		return v.refuse(err, tell)
	}
	_, err = v.desk.Answer(ctx, a)
	var e *schemas.Error
	switch {
	case err == nil:
		v.erase(ctx, m.ReplyTo)
		if kept != "" {
			tell("It is allowed.")
		}
		return nil // the question shows how
	case errors.As(err, &e) && e.Code == schemas.CodeForbidden && p.Decision == nil:
		tell("Nothing changed: that was not the code word, or you may not allow this here.")
		return nil
	}
	return v.refuse(err, tell)
}

// worded is the request whose code word was asked for, and the very answer that
// was pressed, with what was replied as the word.
func (v *visit) worded(ctx context.Context, m *message) (p schemas.Prompt, a schemas.Answer, err error) {
	session, id, ok := named(m.ReplyTo.Text)
	if !ok {
		return p, a, unknown
	}
	p, page, err := v.desk.Show(ctx, session, id)
	if err != nil {
		return p, a, err
	}
	v.now = page.Now
	p = people.AsShown(p, counted(m.ReplyTo.Text))
	for _, action := range actions(&p) {
		a, ok := chosen(&p, action, m.from())
		if ok && wordMessage(m.ReplyTo, &p, action).Text == m.ReplyTo.Text {
			a.CodeWord = strings.TrimSpace(m.Text)
			return p, a, nil
		}
	}
	return p, a, unknown
}

func (v *visit) erase(ctx context.Context, m *message) bool {
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	err := v.api.call(ctx, "deleteMessage", map[string]any{"chat_id": m.Chat.ID, "message_id": m.ID}, nil)
	if err != nil && !refused(err, "message to delete not found") {
		v.log.Info("telegram: a message was not deleted", "error", err)
		return false
	}
	return true
}
