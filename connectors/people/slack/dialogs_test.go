package slack_test

import (
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/schemas"
)

// A person can change the input of a request and allow it once with the change. If the changed
// text is no JSON object, the dialog shows an error and stays open.
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
	w.Empty(w.desk.Answers())
	w.Submit(ann, `{"command": "make -n"}`)
	w.told("Allowed once, with changes")
	a := w.desk.Answers()[0]
	w.JSONEq(`{"command": "make -n"}`, string(a.UpdatedInput))
	w.waits(func() bool { _, open := w.Server.Open(ann); return !open }) // nod may acknowledge the dialog, which closes it, after it has told the person the result
}

// Slack offers no edit of an input with characters that a person cannot see.
func TestAnInputWithHiddenCharactersIsNotEdited(t *testing.T) {
	w := newWorld(t, func(p *schemas.Prompt) { p.Request.ActionDetails = []byte("{\"command\":\"make \u200b\"}") })
	m := w.shows()
	w.NotContains(m.Buttons[len(m.Buttons)-1].Label, "More")
}

// If an agent's question needs a text as its answer, a person enters the text in a dialog.
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
	w.waits(func() bool { return len(w.desk.Answers()) == 1 })
	w.Equal("own", w.desk.Answers()[0].OptionID)
	w.Equal("8080", w.desk.Answers()[0].Message)
}

// A person enters the code word in a dialog, so that no message contains it.
func TestTheCodeWordIsEnteredInADialog(t *testing.T) {
	w := newWorld(t, func(p *schemas.Prompt) { p.Conditions = []string{schemas.ConditionCodeWord} })
	m := w.shows()
	w.presses(m, "✅ Allow once")
	d := w.dialog("Code word")
	w.Contains(d.Text, "Allows: once")
	w.Empty(w.desk.Answers())
	w.Submit(ann, "wrong")
	w.told("that was not the code word")
	w.presses(m, "✅ Allow once")
	w.dialog("Code word")
	w.Submit(ann, "swordfish")
	w.told("Allowed once")
	w.Equal("swordfish", w.desk.Answers()[1].CodeWord)
	for _, shown := range w.Chat(ann) {
		w.NotContains(shown.Text+shown.Alert, "swordfish")
	}
}

// No text of the agent becomes markup, a mention, a link or an emoji, neither in the message nor in its
// notification. Slack reads markup only in the notification.
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

// Everybody in a conversation can press a button, but only a person who may see the request gets
// a dialog about it.
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

// nod writes the decision of a prompt once into the thread of its message, even if Settle is called
// twice.
func TestTheThreadHasTheDecision(t *testing.T) {
	w := newWorld(t)
	m := w.shows()
	ended := w.desk.Prompt
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

// The command /nod pairs, freezes, lists requests and sends a login link. Nobody else sees the
// reply.
func TestTheCommand(t *testing.T) {
	w := newWorld(t)
	w.Command(ann, "pair 7F3K9", "C-other") // Ann writes the command in a conversation that the app has not joined
	w.waits(func() bool { return len(w.Chat(ann)) == 1 })
	w.Contains(w.Chat(ann)[0].Text, "The code is right")
	w.Equal([]string{ann + " 7F3K9"}, w.desk.Codes())
	w.Command(ann, "pending", "")
	w.told("1 waiting")
	w.Command(ann, "freeze", "")
	w.told("Frozen: every request of any agent is denied until you send /nod thaw")
	w.Command(ann, "", "")
	w.told("Your Slack user id is " + ann)
	w.Command(ann, "web", "")
	w.told("This link logs one browser in")
	all := w.Server.Read(ann)
	w.Equal([]string{"https://nod.example.com/#login=c0de"}, all[len(all)-1].Links)
}
