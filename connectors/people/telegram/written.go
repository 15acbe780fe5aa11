package telegram

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// wrote handles what a person wrote. What decides is a reply to a question of
// nod's that is a whole yes or no, and a reply to its question for a reason, an
// answer or the code word. Everything else changes nothing, in whatever words.
func (v *visit) wrote(ctx context.Context, m *message) error {
	say := func(text string) {
		v.send(ctx, outgoing{ChatID: m.Chat.ID, Text: text, ReplyTo: &replyTo{MessageID: m.ID, Without: true}})
	}
	if m.ReplyTo != nil && m.ReplyTo.From != nil && m.ReplyTo.From.ID == v.me.Load() {
		if strings.HasPrefix(m.ReplyTo.Text, whyHead+"\n") {
			return v.inWords(ctx, m, whyHead, say, func(p *schemas.Prompt) (schemas.Answer, bool) {
				return people.Said{Word: people.No, Reason: m.Text}.Answer(p, m.from())
			})
		}
		if strings.HasPrefix(m.ReplyTo.Text, sayHead+"\n") {
			return v.inWords(ctx, m, sayHead, say, func(p *schemas.Prompt) (schemas.Answer, bool) { return spoken(p, m.Text, m.from()) })
		}
		if strings.HasPrefix(m.ReplyTo.Text, wordHead+"\n") {
			return v.withWord(ctx, m, say)
		}
		if _, _, ok := named(m.ReplyTo.Text); ok {
			return v.replied(ctx, m, say)
		}
	}
	command, rest := word(m.Text)
	command, _, _ = strings.Cut(command, "@")
	switch command {
	case "/pending":
		return v.pending(ctx, m)
	case "/start", "/pair":
		if rest != "" {
			return v.pair(ctx, m, rest, say)
		}
	case "/grants":
		return v.listGrants(ctx, m, say)
	case "/web":
		return v.door(ctx, m, say)
	case "/freeze", "/thaw":
		return v.brake(ctx, m, command, rest, say)
	}
	say(fmt.Sprintf("Nothing changed. Answer with the buttons under a question, or reply to it with yes or no.\n"+
		"/pending lists what waits for you, /grants what is allowed or denied beyond one call, /freeze denies everything until /thaw, /web sends a link to the web inbox.\n\nYour Telegram user id is %d: nod knows an approver by it.", m.From.ID))
	return nil
}

// pair brings the code by which nod pair finds out who somebody is.
func (v *visit) pair(ctx context.Context, m *message, code string, say func(string)) error {
	pairs, ok := v.desk.(people.Pairs)
	if !ok {
		say("Nothing changed: this nod pairs nobody from here.")
		return nil
	}
	if err := pairs.Pair(ctx, code, m.from()); err != nil {
		return v.refuse(err, func(string) {
			say("That code is not awaited. Ask for one with nod pair telegram, and send it as it stands there.")
		})
	}
	say("The code is right. You can answer as soon as nod pair, where you started it, lets you in.")
	return nil
}

// door sends a link that logs this person in to the web inbox, once.
func (v *visit) door(ctx context.Context, m *message, say func(string)) error {
	doors, ok := v.desk.(people.LoginLinker)
	if !ok {
		say("Nothing changed: this nod has no web inbox for you.")
		return nil
	}
	p, err := doors.LoginLink(ctx, m.from())
	var e *schemas.Error
	switch {
	case errors.As(err, &e) && e.Code == schemas.CodeForbidden:
		say("No link: " + e.Message)
		return nil
	case err != nil:
		return v.refuse(err, say)
	}
	say(people.LoginLink(p.URL, p.Code) + "\n\nIt logs one browser in, once, until " + p.Until.UTC().Format("15:04 UTC") + ".")
	return nil
}

// inWords answers with what was written: the reason of a denial, or the answer
// to a question. It counts for the very request that the words were asked for.
func (v *visit) inWords(ctx context.Context, m *message, head string, say func(string), answer func(*schemas.Prompt) (schemas.Answer, bool)) error {
	session, id, ok := named(m.ReplyTo.Text)
	if !ok || strings.TrimSpace(m.Text) == "" {
		say("Nothing changed: write it as a text.")
		return nil
	}
	p, page, err := v.desk.Show(ctx, session, id)
	if err != nil {
		return v.refuse(err, say)
	}
	v.now = page.Now
	p = people.AsShown(p, counted(m.ReplyTo.Text))
	a, ok := answer(&p)
	if !ok || replyMessage(m.ReplyTo, &p, head, "").Text != m.ReplyTo.Text {
		say(people.Refusal(unknown, v.now))
		return nil
	}
	return v.answer(ctx, &p, a, say)
}

// spoken is the answer to p in somebody's own words, where it takes such.
func spoken(p *schemas.Prompt, text string, from schemas.From) (a schemas.Answer, ok bool) {
	i := slices.IndexFunc(p.Request.Options, func(o schemas.Option) bool { return o.Text && (whole(p) || !o.Kind.Allows()) })
	if i < 0 {
		return a, false
	}
	return schemas.Answer{
		Type: schemas.TypeAnswer, SessionID: p.SessionID, PendingID: p.PendingID, Digest: p.Digest,
		Waiters: p.Waiters, OptionID: p.Request.Options[i].OptionID, Message: text, From: from,
	}, true
}

// replied takes a yes or a no to the question that it replies to.
func (v *visit) replied(ctx context.Context, m *message, say func(string)) error {
	shown, ok := m.ReplyTo.button()
	if !ok {
		say("Nothing changed: that question is no longer open.")
		return nil
	}
	p, err := v.find(ctx, m.ReplyTo, m.From.ID, shown)
	if err != nil {
		return v.refuse(err, say)
	}
	action := map[people.Word]string{people.Yes: actAllow, people.No: actDeny}
	said := people.ReadText(m.Text)
	a, ok := chosen(&p, action[said.Word], m.from())
	if said.Code != "" || !ok {
		say("I did not understand that, and nothing changed. Use a button, or reply yes or no and nothing else; to deny with a reason, press “Deny, say why”.")
		return nil
	}
	if wantsWord(&p, &a) {
		v.send(ctx, wordMessage(m.ReplyTo, &p, actAllow))
		return nil
	}
	if err := v.answer(ctx, &p, a, say); err != nil {
		return err
	}
	v.settleHere(ctx, m.From.ID, m.ReplyTo, p)
	return nil
}

func (m *message) from() schemas.From {
	return schemas.From{
		UserID: strconv.FormatInt(m.From.ID, 10), Chat: strconv.FormatInt(m.Chat.ID, 10), MessageID: strconv.FormatInt(m.ID, 10),
	}
}

// button is what the first of a prompt's buttons sends.
func (m *message) button() (pressed, bool) {
	if m.ReplyMarkup == nil || len(m.ReplyMarkup.Rows) == 0 || len(m.ReplyMarkup.Rows[0]) == 0 {
		return pressed{}, false
	}
	return readCallback(m.ReplyMarkup.Rows[0][0].Data)
}

// maxListed is how many requests one list names.
const maxListed = 20

// pending lists what waits for this person.
func (v *visit) pending(ctx context.Context, m *message) error {
	open, err := v.desk.Pending(ctx, schemas.Query{Recipient: strconv.FormatInt(m.From.ID, 10)})
	if err != nil {
		return v.refuse(err, func(text string) { v.send(ctx, outgoing{ChatID: m.Chat.ID, Text: text}) })
	}
	list := listing(open)
	v.send(ctx, outgoing{ChatID: m.Chat.ID, Text: list.text.String(), Entities: list.entities})
	return nil
}

// times is " · ×3" where three identical calls wait.
func times(p *schemas.Prompt) string {
	if people.Times(p) == "" {
		return ""
	}
	return " · " + people.Times(p)
}

func listing(open []schemas.Prompt) *content {
	c := &content{}
	if len(open) == 0 {
		c.add("", people.Again(nil))
		return c
	}
	c.add("bold", fmt.Sprintf("%d waiting. Answer with the buttons under each question.", len(open)))
	for i := range open[:min(len(open), maxListed)] {
		p := &open[i]
		c.newline()
		c.add("code", p.PendingID[:min(len(p.PendingID), 16)])
		c.add("", fmt.Sprintf(" · %s%s · until %s\n", p.Risk, times(p), p.Deadline.UTC().Format("2 Jan 15:04 UTC")))
		c.add("pre", "│ "+people.Summary(p, 100))
	}
	if more := len(open) - maxListed; more > 0 {
		c.add("", fmt.Sprintf("\nand %d more: nod pending", more))
	}
	return c
}
