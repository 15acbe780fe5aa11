package telegram_test

import (
	"strings"
	"testing"

	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/schemas"
)

// seen returns the present state of Ann's first message.
func (w *world) seen() telegramtest.Message { return w.Chat(ann)[0] }

// step presses the button with this label under Ann's first message. It waits for the next buttons.
func (w *world) step(label string) telegramtest.Message {
	w.t.Helper()
	before := w.seen()
	w.press(before, label)
	w.waits(func() bool { return len(w.seen().Buttons) > 0 && w.seen().Buttons[0] != before.Buttons[0] })
	return w.seen()
}

func (w *world) press(m telegramtest.Message, label string) {
	w.t.Helper()
	for _, b := range m.Buttons {
		if strings.Contains(b.Text, label) {
			w.Press(ann, ann, m.ID, b.Data, false)
			return
		}
	}
	w.Failf("no such button", "%s among %v", label, m.Buttons)
}

// remembering makes the request offer two rules. The second rule is too long for a button.
func (w *world) remembering() {
	w.desk.prompt.Remember = []schemas.Reach{
		{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"make"}, Project: "/app"}}},
		{Rules: []schemas.RememberedRule{{Tool: "Bash", Argv: []string{"make", strings.Repeat("x", 300)}, Prefix: true, Project: "/app"}}},
	}
}

// A standing answer takes several presses. The first press shows the rule, and the next presses choose
// its scope and duration.
func TestAStandingAnswerIsChosenWithItsRuleScopeAndEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reach, end string
		want       schemas.Answer
	}{
		"an hour of the session": {"1: Bash(make) in /app", "1, in this session, for 60 minutes", schemas.Answer{Scope: schemas.ScopeSession, ForSeconds: 3600}},
		"the session":            {"1: Bash(make) in /app", "1, in this session, until you revoke it", schemas.Answer{Scope: schemas.ScopeSession}},
		"a day of the agent":     {"2 …", "2, for this agent, in any session, for 24 hours", schemas.Answer{Scope: schemas.ScopeAgent, Reach: 1, ForSeconds: 86400}},
		"the agent":              {"2 …", "2, for this agent, in any session, until you revoke it", schemas.Answer{Scope: schemas.ScopeAgent, Reach: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.remembering()
			for _, b := range w.shows().Buttons {
				w.NotContains(b.Text, "now on")
			}
			defer w.run()()
			w.step("More options")
			w.step("From now on, " + c.reach)
			exact := "From now on, " + strings.TrimSuffix(c.reach, " …")
			if strings.HasSuffix(c.reach, "…") {
				exact += ": Bash(make " + strings.Repeat("x", 300) + ":*) in /app"
			}
			w.told(exact)
			for _, r := range w.Read(ann) {
				w.Equal(r.Toast != "", r.Alert, "a rule stays on the screen: %s", r.Toast)
			}
			w.Empty(w.desk.answers)
			w.press(w.seen(), c.end)
			a := <-w.desk.answers
			w.Equal("allow_once", a.OptionID)
			w.Equal(c.want, schemas.Answer{Scope: a.Scope, Reach: a.Reach, ForSeconds: a.ForSeconds})
			w.Empty(w.Rejected())
		})
	}
}

func TestBackLeavesTheChoiceOfAStandingAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.remembering()
	first := w.shows()
	defer w.run()()
	w.step("More options")
	w.step("From now on, 1")
	w.Equal(first.Buttons, w.step("Back").Buttons)
	w.Empty(w.desk.answers)
}

// A made-up button cannot choose a rule that the message does not offer or does not show completely.
func TestARuleThatIsNotOfferedIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.remembering()
	m := w.shows()
	defer w.run()()
	allow := m.Buttons[0].Data
	forged := strings.TrimSuffix(allow, "a")
	for i, action := range []string{"k2s0", "k0s60", "k0a3600", "k0s", "k00s0", "k0x0", "r2", "r-1", "k-1s0"} {
		w.Press(ann, ann, m.ID, forged+action, false)
		w.waits(func() bool { return len(w.Read(ann)) == i+2 })
		w.Contains(w.Read(ann)[i+1].Toast, "Nothing changed", action)
	}
	w.desk.prompt.Request.ActionDetails = []byte(`{"command":"` + strings.Repeat("x", 9000) + `"}`)
	w.Press(ann, ann, m.ID, forged+"k0s0", false)
	w.waits(func() bool { return len(w.Read(ann)) == 11 })
	w.Contains(w.Read(ann)[10].Toast, "Nothing changed")
	w.Empty(w.desk.answers)
}

// codeWordForm waits for the message that asks Ann for the code word.
func (w *world) codeWordForm(allows string) telegramtest.Message {
	w.t.Helper()
	var m telegramtest.Message
	w.waits(func() bool {
		all := w.Chat(ann)
		m = all[len(all)-1]
		return strings.HasPrefix(m.Text, "Reply to this message with the code word") && strings.HasSuffix(m.Text, "Allows: "+allows)
	})
	return m
}

// If a request requires the code word, a press or a yes without it does not allow the request. nod
// does not leave the code word in the chat.
func TestTheCodeWordIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.remembering()
	w.desk.prompt.Conditions = []string{"a second device, the code word"}
	m := w.shows()
	defer w.run()()
	w.press(m, "Allow once")
	form := w.codeWordForm("once")
	w.desk.err = func() error { return schemas.Errorf(schemas.CodeForbidden, "it takes the code word") }
	w.Write(ann, "sesame", form.ID)
	w.told("that was not the code word")
	w.False(w.Keeps(ann, "sesame"), "not even a wrong one")
	w.Empty(w.desk.answers)

	w.desk.err = func() error { return nil }
	w.Write(ann, " open sesame ", form.ID)
	a := <-w.desk.answers
	w.Equal("open sesame", a.CodeWord)
	w.Equal(w.desk.prompt.Digest, a.Digest)
	w.Empty(a.Scope)
	w.waits(func() bool { return !w.Keeps(ann, " open sesame ") && !w.Keeps(ann, form.Text) })

	w.Write(ann, "yes", m.ID)
	w.codeWordForm("once")
	w.step("More options")
	w.step("From now on, 1")
	w.press(w.seen(), "1, in this session, for 60 minutes")
	form = w.codeWordForm("From now on, 1: Bash(make) in /app, in this session, for 60 minutes")
	w.Empty(w.desk.answers)
	w.Server.Fail(telegramtest.Fault{Method: "deleteMessage", Code: 400, Words: "Bad Request: message can't be deleted"})
	w.Write(ann, "open sesame", form.ID)
	a = <-w.desk.answers
	w.Equal("open sesame", a.CodeWord)
	w.Equal(3600, a.ForSeconds)
	w.told("delete it yourself")
	w.press(m, "Deny")
	w.Equal("reject_once", (<-w.desk.answers).OptionID, "denying takes no word")
}

// If nod asked for the code word for one request, the reply cannot allow another request.
func TestACodeWordForAnotherRequestIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.desk.prompt.Conditions = []string{"the code word"}
	m := w.shows()
	defer w.run()()
	w.press(m, "Allow once")
	form := w.codeWordForm("once")
	w.desk.prompt.Digest = strings.Repeat("ab", 32)
	w.Write(ann, "sesame", form.ID)
	w.told("no such request")
	w.Empty(w.desk.answers)
}
