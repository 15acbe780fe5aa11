package whatsapp_test

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/whatsapp/whatsapptest"
	"github.com/nodbus/nod/schemas"
)

func (w *world) unreachable(err error) {
	w.t.Helper()
	var e *people.Error
	w.True(errors.As(err, &e), "%v", err)
	w.True(e.Unreachable, "%v", err)
}

// Without a template in the settings, a person who has not written for 24 hours is unreachable. nod
// learns this from Meta's reply or from a later report. When the person writes again, they get prompts
// again.
func TestWithoutATemplateAClosedWindowIsUnreachable(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		w := newWorld(t)
		stop := w.run()
		w.CloseWindow(ann)
		if late {
			w.Late()
			_, err := w.carrier.Prompt(w.ctx, w.desk.prompt)
			w.NoError(err)
			w.waits(func() bool { return len(w.desk.reported()) > 0 })
			w.Contains(w.desk.reported()[0], "unreachable whatsapp: error 131047")
			w.quiet()
		}
		_, err := w.carrier.Prompt(w.ctx, w.desk.prompt)
		w.unreachable(err)
		w.Empty(w.Chat(ann))
		ended := w.desk.prompt
		ended.Decision = &schemas.Decision{Outcome: schemas.TimedOut}
		w.unreachable(w.carrier.Settle(w.ctx, "", ended))

		w.Write(ann, "hello", "")
		w.quiet()
		_, m := w.shows()
		w.Len(m.Buttons, 2)
		w.Error(stop())
	}
}

// With a template in the settings, a person who has not written for 24 hours gets the template, which
// does not contain the payload. A tap on the template's button makes nod send the prompt with its
// buttons.
func TestTheTemplateBringsTheQuestion(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		w := newWorld(t, withTemplate)
		stop := w.run()
		w.CloseWindow(ann)
		if late {
			w.Late()
		}
		w.desk.prompt.Request.Project = "/home/ann/app"
		_, err := w.carrier.Prompt(w.ctx, w.desk.prompt)
		w.NoError(err)
		w.waits(func() bool { return len(w.Chat(ann)) == 1 })
		m := w.last()
		w.Equal("template", m.Type)
		w.Contains(m.Text, "app · low risk · request perm-1")
		w.NotContains(m.Text, "make")
		w.quiet()
		w.Tap(ann, m.ID, m.Buttons[0].ID)
		w.waits(func() bool { return w.last().Type == "interactive" })
		question := w.last()
		w.Contains(question.Text, "make")
		w.Tap(ann, question.ID, question.Buttons[0].ID)
		w.told("Allowed once")
		w.Equal(1, w.desk.answered())
		w.quiet()
		w.Error(stop())
		w.NotContains(strings.Join(w.desk.reported(), "\n"), "unreachable")
	}
}

// The agent's session gets a notice when a message was delivered and another when it was read,
// each once and in this order, although Meta's receipts may come twice and in another order.
func TestReceiptsAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, m := w.shows()
	defer w.run()()
	w.quiet()
	w.Equal([]string{"shown delivered"}, w.desk.reported())
	w.Reads(ann, m.ID)
	w.quiet()
	w.Replay(2)
	w.quiet()
	w.Equal([]string{"shown delivered", "shown read"}, w.desk.reported())
	w.desk.mu.Lock()
	w.Equal(schemas.Delivery{Recipient: ann, SessionID: "S-1", PendingID: "perm-1", State: schemas.DeliveryShown, Reason: "read"}, w.desk.reports[1])
	w.desk.mu.Unlock()
}

// When Meta limits the rate, nod waits as long as Meta says. If Meta names no time, the wait
// depends on the kind of limit.
func TestRateLimitsAreObeyed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		fault whatsapptest.Fault
		want  time.Duration
	}{
		{whatsapptest.Fault{Status: http.StatusBadRequest, Code: 131056}, 6 * time.Second},
		{whatsapptest.Fault{Status: http.StatusBadRequest, Code: 130429}, 30 * time.Second},
		{whatsapptest.Fault{Status: http.StatusBadRequest, Code: 80007}, 30 * time.Second},
		{whatsapptest.Fault{Status: http.StatusTooManyRequests}, 30 * time.Second},
		{whatsapptest.Fault{Status: http.StatusTooManyRequests, Code: 4, RetryAfter: 90}, 90 * time.Second},
		{whatsapptest.Fault{Status: http.StatusTooManyRequests, Code: 4, RetryAfter: 99999999}, 24 * time.Hour},
	} {
		w.rig.Fail(c.fault)
		_, err := w.carrier.Prompt(w.ctx, w.desk.prompt)
		var e *people.Error
		w.True(errors.As(err, &e))
		w.Equal(c.want, e.After, "%d", c.fault.Code)
	}
	w.Empty(w.Chat(ann))
}

// A prompt that is too long for the text above buttons takes two messages. If sending the second message
// fails, the next attempt sends both messages again.
func TestALongQuestionTakesTwoMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.desk.prompt.Request
	r.ActionDetails = []byte(`{"command":"echo ` + strings.Repeat("x", 1500) + `"}`)
	w.desk.sets(t, r)
	w.rig.Fail(whatsapptest.Fault{Status: http.StatusBadGateway, Nth: 1})
	_, err := w.carrier.Prompt(w.ctx, w.desk.prompt)
	w.Error(err)
	_, m := w.shows()
	w.Len(w.Chat(ann), 3)
	w.Equal(w.Chat(ann)[1].ID, m.Quotes)
	w.Contains(w.Chat(ann)[1].Text, strings.Repeat("x", 1500))
	w.Equal("Allow once", m.Buttons[0].Title)
	defer w.run()()
	w.Tap(ann, m.ID, m.Buttons[0].ID)
	w.told("Allowed once")
}

// A person who reads the outcome in the reply to their own answer does not get it again. Other people do
// get the outcome.
func TestTheOutcomeIsToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ref, m := w.shows()
	defer w.run()()
	w.Tap(ann, m.ID, m.Buttons[0].ID)
	w.told("Allowed once")
	w.Equal(m.ID, w.last().Quotes)
	w.quiet()
	n := len(w.Chat(ann))
	ended := w.desk.prompt
	ended.Decision = &schemas.Decision{Outcome: schemas.Allowed, OptionKind: schemas.AllowOnce, By: schemas.By{Kind: schemas.ByHuman, Name: "Ann"}}
	w.NoError(w.carrier.Settle(w.ctx, ref, ended))
	w.Len(w.Chat(ann), n)
	ended.Recipient = "4712"
	w.NoError(w.carrier.Settle(w.ctx, "", ended))
	w.Len(w.Chat("4712"), 1)
	ended.Recipient = ann
	ended.Aftermath = []schemas.Aftermath{{Kind: schemas.AftermathNeverRan}}
	w.NoError(w.carrier.Settle(w.ctx, ref, ended))
	w.Contains(w.last().Text, "never ran")
}

// On WhatsApp, a person cannot allow a request that needs the code word, because the word would stay in
// the chat.
func TestTheCodeWordIsNotTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.desk.prompt.Conditions = []string{schemas.ConditionCodeWord}
	_, m := w.shows()
	w.Len(m.Buttons, 1)
	w.Contains(m.Text, "allow it on another channel")
	defer w.run()()
	code := answerCode.FindStringSubmatch(m.Text)[1]
	w.Write(ann, "yes "+code, "")
	w.told("cannot be allowed on WhatsApp")
	w.Tap(ann, m.ID, strings.Replace(m.Buttons[0].ID, ":d.", ":a.", 1))
	w.told("Nothing changed: no such request")
	w.Zero(w.desk.answered())
}

// An agent's question has a button for each answer, or no buttons if there are more than three answers.
func TestQuestionsHaveAButtonForEachAnswer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 5)
	for _, c := range []struct{ options, titles []string }{
		{[]string{"Red", "Green"}, []string{"Red", "Green"}},
		{[]string{long, "Green", "Blue"}, []string{"Answer 1", "Green", "Blue"}},
		{[]string{"Same", "Same"}, []string{"Answer 1", "Answer 2"}},
		{[]string{"1", "2", "3", "4"}, nil},
	} {
		w := newWorld(t)
		r := w.desk.prompt.Request
		r.Kind, r.Options = schemas.KindQuestion, nil
		for i, name := range c.options {
			r.Options = append(r.Options, schemas.Option{OptionID: string(rune('a' + i)), Name: name, Kind: schemas.AllowOnce})
		}
		w.desk.sets(t, r)
		_, m := w.shows()
		var titles []string
		for _, b := range m.Buttons {
			titles = append(titles, b.Title)
		}
		w.Equal(c.titles, titles)
		if len(titles) == 0 {
			w.Contains(m.Text, "Answer it in nod inbox, in the web inbox (/web sends a link), or with nod answer")
			continue
		}
		stop := w.run()
		w.Tap(ann, m.ID, m.Buttons[1].ID)
		w.waits(func() bool { return w.desk.answered() == 1 })
		w.Equal("b", w.desk.answers[0].OptionID)
		w.Error(stop())
	}
}

// An agent's question that takes a text is answered by the prompt's code and the text. The text decides
// nothing without the code, or after the request has ended.
func TestWordsAnswerAQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.desk.prompt.Request
	r.Kind = schemas.KindQuestion
	r.Options = []schemas.Option{{OptionID: "next", Name: "Say what is next", Kind: schemas.AllowOnce, Text: true}, {OptionID: "leave", Name: "Leave it", Kind: schemas.RejectOnce}}
	w.desk.sets(t, r)
	_, m := w.shows()
	w.Len(m.Buttons, 1)
	found := regexp.MustCompile(`answer ([0-9A-Z]{4}) and your words`).FindStringSubmatch(m.Text)
	w.Len(found, 2, m.Text)
	defer w.run()()
	for _, text := range []string{"run the tests", "yes", "yes " + found[1], "answer", "answer " + found[1], "answer 0000 run the tests", "please answer " + found[1] + " x"} {
		n := len(w.Chat(ann))
		w.Write(ann, text, m.ID)
		w.waits(func() bool { return len(w.Chat(ann)) > n })
	}
	w.Zero(w.desk.answered())
	w.Write(ann, "Answer "+strings.ToLower(found[1])+" run  the\ntests", "")
	w.waits(func() bool { return w.desk.answered() == 1 })
	w.Equal("next", w.desk.answers[0].OptionID)
	w.Equal("run  the\ntests", w.desk.answers[0].Message)

	r.Kind, r.Options = schemas.KindToolCall, []schemas.Option{{OptionID: "y", Name: "Yes", Kind: schemas.AllowOnce, Text: true}}
	w.desk.sets(t, r)
	w.shows()
	n := len(w.Chat(ann))
	w.Write(ann, "answer "+found[1]+" x", "")
	w.waits(func() bool { return len(w.Chat(ann)) > n })
	w.Equal(1, w.desk.answered(), "a call takes no words")
}

// Every text that WhatsApp would render as markup is formatted as code, and a backtick in the
// text cannot end the code.
func TestMarkupIsInert(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, text := range []string{"rm *a* _b_ ~c~", "echo ```; rm -rf /```", "a`b`", "> cited", "* list", "1. x", "`` ` ```` "} {
		r := w.desk.prompt.Request
		details, err := schemas.Encode(map[string]string{"command": text, text: text})
		w.NoError(err)
		r.ActionDetails, r.Reason, r.AgentName = details, text, text
		w.desk.sets(t, r)
		w.shows()
		for _, m := range w.Chat(ann) {
			w.NotContains(m.Bare(), "`")
			for _, piece := range []string{"rm ", "*a*", "_b_", "~c~", "cited", "list"} {
				w.NotContains(m.Bare(), piece, text)
			}
		}
	}
}
