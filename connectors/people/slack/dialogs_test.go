package slack_test

import (
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/schemas"
)

// A person can change the input and allow it once with the change. A text that is no JSON object is
// refused in the dialog.
func TestAnInputIsEdited(t *testing.T) {
	w := newWorld(t)
	m := w.shows()
	w.presses(m, "More options")
	w.dialog("More answers")
	w.presses(m, "Edit the input")
	d := w.dialog("Edit the input")
	w.Equal("{\n  \"command\": \"make\"\n}", d.Initial)
	w.Submit(ann, `{"command": "make`)
	w.told("This is no JSON object.")
	w.Empty(w.desk.answers())
	w.Submit(ann, `{"command": "make -n"}`)
	w.told("Allowed once, with changes")
	a := w.desk.answers()[0]
	w.JSONEq(`{"command": "make -n"}`, string(a.UpdatedInput))
	w.waits(func() bool { _, open := w.Server.Open(ann); return !open }) // the reply that closes the dialog may come after the words
}

// An input with characters that a person cannot see is not edited on Slack.
func TestAnInputWithHiddenCharactersIsNotEdited(t *testing.T) {
	w := newWorld(t, func(p *schemas.Prompt) { p.Request.ActionDetails = []byte("{\"command\":\"make \u200b\"}") })
	m := w.shows()
	w.NotContains(m.Buttons[len(m.Buttons)-1].Label, "More")
}

// A question that takes words gets them from a dialog.
func TestAQuestionIsAnsweredInWords(t *testing.T) {
	w := newWorld(t, func(p *schemas.Prompt) {
		p.Request.Kind, p.Request.ActionDetails = schemas.KindQuestion, []byte(`{"question":"Which port?"}`)
		p.Request.Options = []schemas.Option{
			{OptionID: "1", Name: "80", Kind: schemas.AllowOnce}, {OptionID: "2", Name: strings.Repeat("long ", 40), Kind: schemas.AllowOnce},
			{OptionID: "own", Name: "Another", Kind: schemas.AllowOnce, Text: true},
		}
	})
	m := w.shows()
	w.Equal([]string{"80", "Answer 2"}, []string{m.Buttons[0].Label, m.Buttons[1].Label})
	w.Press(ann, ann, m.TS, m.Buttons[2].Value)
	w.dialog("Answer")
	w.Submit(ann, "8080")
	w.waits(func() bool { return len(w.desk.answers()) == 1 })
	w.Equal("own", w.desk.answers()[0].OptionID)
	w.Equal("8080", w.desk.answers()[0].Message)
}

// The code word is entered in a dialog, and in no message.
func TestTheCodeWordIsEnteredInADialog(t *testing.T) {
	w := newWorld(t, func(p *schemas.Prompt) { p.Conditions = []string{schemas.ConditionCodeWord} })
	m := w.shows()
	w.presses(m, "✅ Allow once")
	d := w.dialog("Code word")
	w.Contains(d.Text, "Allows: once")
	w.Empty(w.desk.answers())
	w.Submit(ann, "wrong")
	w.told("that was not the code word")
	w.presses(m, "✅ Allow once")
	w.dialog("Code word")
	w.Submit(ann, "swordfish")
	w.told("Allowed once")
	w.Equal("swordfish", w.desk.answers()[1].CodeWord)
	for _, shown := range w.Chat(ann) {
		w.NotContains(shown.Text+shown.Alert, "swordfish")
	}
}

// No text of the agent becomes markup, a mention, a link or an emoji: not in the message, and not in the
// text of the notification, the only one in which Slack reads markup.
func TestTextOfTheAgentIsInert(t *testing.T) {
	const hostile = `<!channel> <@U123> <https://evil.example|ok> @here :skull: *b* &lt;`
	w := newWorld(t, func(p *schemas.Prompt) {
		p.Request.ActionDetails = []byte(`{"command":"` + hostile + `"}`)
		p.Request.Reason, p.Request.AgentName, p.Request.Title = hostile, hostile, hostile
		p.Request.Options = append(schemas.DefaultOptions(), schemas.Option{OptionID: "x", Name: hostile, Kind: schemas.AllowAlways})
	})
	m := w.shows()
	w.Contains(m.Text, hostile)
	w.Contains(m.Alert, "&lt;!channel&gt;")
	w.presses(m, "More options")
	w.Contains(w.dialog("More answers").Text, hostile)
}

// Every person in a conversation may press; only those who may see the request get a dialog about it.
func TestADialogIsForThoseWhoMayAnswer(t *testing.T) {
	w := newWorld(t)
	m := w.shows()
	for _, b := range m.Buttons {
		if b.Label == "Deny, say why" {
			w.Press(peopletest.Mallory, ann, m.TS, b.Value)
		}
	}
	w.waits(func() bool { return len(w.Chat(peopletest.Mallory)) == 1 })
	w.Contains(w.Chat(peopletest.Mallory)[0].Text, "you are not among those who may decide this")
	_, open := w.Server.Open(peopletest.Mallory)
	w.False(open)
}

// The thread of a question gets the decision with the command that ends it, once.
func TestTheThreadHasTheDecision(t *testing.T) {
	w := newWorld(t)
	m := w.shows()
	ended := w.desk.prompt
	ended.Decision = &schemas.Decision{Outcome: schemas.Denied, By: schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "web"}, Message: "no"}
	for range 2 {
		w.NoError(w.carrier.Settle(w.ctx, people.Ref("D"+ann+"/"+m.TS), ended))
	}
	all := w.Chat(ann)
	w.Len(all, 2)
	w.Equal(m.TS, all[1].Thread)
	w.Contains(all[1].Text, "Denied · Bob")
	w.Empty(all[0].Buttons)
}

// The command /nod pairs, freezes, lists and sends a login link, for the person alone.
func TestTheCommand(t *testing.T) {
	w := newWorld(t)
	w.Command(ann, "pair 7F3K9", "C-other") // in a conversation without the app
	w.waits(func() bool { return len(w.Chat(ann)) == 1 })
	w.Contains(w.Chat(ann)[0].Text, "The code is right")
	w.Equal([]string{ann + " 7F3K9"}, w.desk.codes)
	w.Command(ann, "pending", "")
	w.told("1 waiting")
	w.Command(ann, "freeze", "")
	w.told("Frozen: every request of any agent is denied until you write /nod thaw")
	w.Command(ann, "", "")
	w.told("Your Slack user id is " + ann)
	w.Command(ann, "web", "")
	w.told("This link logs one browser in")
	all := w.Server.Read(ann)
	w.Equal([]string{"https://nod.example.com/#login=c0de"}, all[len(all)-1].Links)
}
