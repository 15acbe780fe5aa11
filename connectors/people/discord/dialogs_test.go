package discord_test

import (
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/people/peopletest"
	"github.com/nodbus/nod/schemas"
)

// A person can change the input of a request and allow it once with the change. A text that is no
// JSON object changes nothing.
func TestAnInputIsEdited(t *testing.T) {
	w := newWorld(t)
	m := w.shows()
	for input, reply := range map[string]string{`{"command": "make`: "Nothing changed. This is no JSON object. Press the button again.\n│ {\"command\": \"make", " ": "Write it as a text."} {
		w.presses(m, "More options")
		w.presses(w.opens(m), "Edit the input")
		modal := w.modal("Edit the input and allow it once")
		w.Equal("{\n  \"command\": \"make\"\n}", modal.Initial)
		w.Submit(ann, input)
		w.told(reply)
		w.Empty(w.desk.Answers())
	}
	w.presses(m, "More options")
	w.presses(w.opens(m), "Edit the input")
	w.modal("Edit the input and allow it once")
	w.Submit(ann, `{"command": "make -n"}`)
	w.told("Allowed once, with changes")
	w.JSONEq(`{"command": "make -n"}`, string(w.desk.Answers()[0].UpdatedInput))
	w.waits(func() bool { return len(w.question().Buttons) == 0 })
}

// Discord offers no edit of an input with characters that a person cannot see.
func TestAnInputWithHiddenCharactersIsNotEdited(t *testing.T) {
	w := newWorld(t, func(p *schemas.Prompt) { p.Request.ActionDetails = []byte("{\"command\":\"make \u200b\"}") })
	m := w.shows()
	w.NotContains(m.Buttons[len(m.Buttons)-1].Label, "More")
}

// If an agent's question needs a text as its answer, a person enters the text in a modal.
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
	w.Press(ann, ann, m.ID, m.Buttons[2].ID)
	w.modal("Answer")
	w.Submit(ann, "8080")
	w.waits(func() bool { return len(w.desk.Answers()) == 1 })
	w.Equal("own", w.desk.Answers()[0].OptionID)
	w.Equal("8080", w.desk.Answers()[0].Message)
}

// A person enters the code word in a modal, so that no message contains it.
func TestTheCodeWordIsEnteredInAModal(t *testing.T) {
	w := newWorld(t, func(p *schemas.Prompt) { p.Conditions = []string{schemas.ConditionCodeWord} })
	m := w.shows()
	w.presses(m, "✅ Allow once")
	w.Contains(w.modal("Code word").Text, "Allows: once")
	w.Empty(w.desk.Answers())
	w.Submit(ann, "wrong")
	w.told("that was not the code word")
	w.presses(m, "✅ Allow once")
	w.modal("Code word")
	w.Submit(ann, "swordfish")
	w.told("Allowed once")
	w.Equal("swordfish", w.desk.Answers()[1].CodeWord)
	for _, read := range w.Server.Read(ann) {
		w.NotContains(read.Text, "swordfish")
	}
}

// No text of the agent becomes markup, a mention or a link, neither in the message nor in the menu nor in
// the notification. The in-memory Discord refuses a message that contains one of these.
func TestTextOfTheAgentIsInert(t *testing.T) {
	for _, hostile := range []string{
		"@everyone <@123> <#1> <t:1:R> </nod:1> <:a:1> [ok](https://evil.example) https://evil.example *b* _i_ ~~s~~ ||x|| `c` \\* ¯\\_(ツ)_/¯",
		"sed 's:x:y:' f # ```", "sed 's::x:y:' `f`", ":skull: : ::", "\\: x", "discord.gg/abc Discord.com/invite/x", "```", "x ``` **Request:** `perm-2` ```", "`", "``", "# head", "-# small", "- item", "1. item", "> quote", "    code", "**Session:** `S-2`",
	} {
		w := newWorld(t, func(p *schemas.Prompt) {
			text, err := schemas.Encode(map[string]string{"command": hostile, "description": hostile})
			if err != nil {
				t.Fatal(err)
			}
			p.Request.ActionDetails = text
			p.Request.Reason, p.Request.AgentName, p.Request.Title, p.Request.Host = hostile, hostile, hostile, hostile
			p.Request.Options = append(schemas.DefaultOptions(), schemas.Option{OptionID: "x", Name: hostile, Kind: schemas.AllowAlways})
		})
		m := w.shows()
		w.Contains(m.Text, hostile)
		w.Contains(w.Server.Read(ann)[0].Text, "nod asks: ")
		w.presses(m, "More options")
		menu := w.opens(m)
		w.Contains(menu.Text, hostile)
		w.presses(menu, "✅ Allow, agent remembers")
		w.told("Allowed")
		w.Equal("x", w.desk.Answers()[0].OptionID, "the message names its request")
	}
}

// Only a person who may see the request gets a modal about it.
func TestAModalIsForThoseWhoMayAnswer(t *testing.T) {
	w := newWorld(t)
	m := w.shows()
	for _, b := range m.Buttons {
		if b.Label == "Deny, say why" {
			w.Press(peopletest.Mallory, ann, m.ID, b.ID)
		}
	}
	w.waits(func() bool { return len(w.Server.Read(peopletest.Mallory)) == 1 })
	w.Contains(w.Server.Read(peopletest.Mallory)[0].Text, "you are not among those who may decide this")
	_, open := w.Server.Open(peopletest.Mallory)
	w.False(open)
}

// The notification shows the beginning of the payload. The message gets the whole payload with its
// buttons.
func TestTheNotificationShowsThePayload(t *testing.T) {
	w := newWorld(t)
	_, err := w.carrier.Prompt(w.ctx, w.desk.Prompt)
	w.NoError(err)
	w.Equal("nod asks: make", w.question().Text)
	w.Empty(w.question().Buttons)
	w.Contains(w.shows().Text, "Request: perm-1")
	w.Len(w.Chat(ann), 1, "a repeated message with the same nonce is the same message")
}

// The command /nod pairs, freezes, lists requests and sends a login link. Nobody else sees the reply.
func TestTheCommand(t *testing.T) {
	w := newWorld(t)
	w.Command(ann, "pair 7F3K9", true)
	w.told("The code is right")
	w.Equal([]string{ann + " 7F3K9"}, w.desk.Codes())
	w.Command(ann, "pending", false)
	w.told("1 waiting")
	w.Command(ann, "freeze", false)
	w.told("Frozen: every request of any agent is denied until you send /nod thaw")
	w.Command(ann, "", false)
	w.told("Your Discord user id is " + ann)
	w.Command(ann, "web", false)
	w.told("This link logs one browser in")
	all := w.Server.Read(ann)
	w.Equal([]string{"https://nod.example.com/#login=c0de"}, all[len(all)-1].Links)
	w.Equal(1, w.Registered())
	w.ends()
	w.runs()
	w.waits(func() bool { return w.Connected() == 1 })
	w.Equal(1, w.Registered(), "a known command is not registered again")
}
