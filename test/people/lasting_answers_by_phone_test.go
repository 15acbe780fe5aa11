package people

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/connectors/people/telegram/telegramtest"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The method runs starts nod ask for a shell command. The returned process waits for the decision.
func (p *phone) runs(id, command string) *waiting {
	w := &waiting{Cmd: p.Command("ask", "--session", "phone", "--id", id, "--tool", "Bash", "--json",
		"--input", `{"command":"`+command+`","cwd":"/app"}`)}
	w.Stdout, w.Stderr = &w.out, &w.errs
	require.NoError(p.T, w.Start())
	p.T.Cleanup(func() { _ = w.Process.Kill() }) // Kill fails if the process has ended
	return w
}

// The method steps presses the button with the given label under a question, and waits until the question has
// a button with the next label.
func (p *phone) steps(id, label, next string) {
	p.press(p.question(id), label)
	require.Eventually(p.T, func() bool {
		for _, b := range p.question(id).Buttons {
			if strings.Contains(b.Text, next) {
				return true
			}
		}
		return false
	}, rig.Patience, rig.Tick)
}

// An approver allows a command for an hour by two taps on the phone. The next identical call is allowed
// without a question.
func TestAStandingAnswerIsGivenOnThePhone(t *testing.T) {
	t.Parallel()
	p := newPhone(t, `"token_file": "DIR/token"`)
	p.StartNod()
	agent := p.runs("now-on", "npm test")
	p.steps("now-on", "More options", "From now on, 1: Bash(npm test")
	p.steps("now-on", "From now on, 1", "for 60 minutes")
	p.press(p.question("now-on"), "in this session, for 60 minutes")
	d := p.hears(agent)
	require.Equal(t, schemas.Allowed, d.Outcome)
	require.Equal(t, schemas.ScopeSession, d.Grant.Scope)
	require.Equal(t, time.Hour, d.Grant.ExpiresAt.Sub(d.Grant.CreatedAt))
	p.settled("now-on", "✅ Allowed, and from now on")
	d = p.hears(p.runs("again", "npm test"))
	require.Equal(t, schemas.Allowed, d.Outcome)
	require.NotEqual(t, schemas.ByHuman, d.By.Kind, "no approver is asked again")
}

// If an approver allows a risky call on the phone, nod demands the code word, and then removes the word from
// the chat.
func TestTheCodeWordIsTypedOnThePhone(t *testing.T) {
	t.Parallel()
	p := newPhone(t, `"token_file": "DIR/token"`)
	p.write("word", "open sesame\n")
	p.StartNod()
	agent := p.runs("risky", "rm -rf src")
	p.press(p.question("risky"), "Allow once")
	form := p.form()
	p.Write(annOnTG, "shut sesame", form)
	p.told("that was not the code word")
	p.Write(annOnTG, "open sesame", form)
	d := p.hears(agent)
	require.Equal(t, schemas.Allowed, d.Outcome)
	require.Equal(t, schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "telegram"}, d.By)
	require.False(t, bytes.Contains(agent.out.Bytes(), []byte("sesame")))
	require.Eventually(t, func() bool {
		forms := slices.ContainsFunc(p.Chat(annOnTG), func(m telegramtest.Message) bool { return m.ID == form })
		return !forms && !p.Keeps(annOnTG, "open sesame") && !p.Keeps(annOnTG, "shut sesame")
	}, rig.Patience, rig.Tick)
	p.settled("risky", "✅ Allowed once · Ann")
}

// The method form waits until the bot asks Ann for a text, and returns the id of the message that asks.
func (p *phone) form() (id int64) {
	require.Eventually(p.T, func() bool {
		all := p.Chat(annOnTG)
		id = all[len(all)-1].ID
		return strings.HasPrefix(all[len(all)-1].Text, "Reply to this message")
	}, rig.Patience, rig.Tick)
	return id
}

// An approver gives leave to a session by two taps on the phone. During the leave, the session's calls are
// allowed. The command /back ends the leave and lists these calls.
func TestALeaveIsGivenOnThePhone(t *testing.T) {
	t.Parallel()
	p := newPhone(t, `"token_file": "DIR/token"`)
	p.StartNod()
	p.runs("first", "npm test")
	p.question("first")
	p.Write(annOnTG, "/leave medium", 0)
	p.told("To leave, send /leave 30m medium phone yes")
	p.Write(annOnTG, "/leave 30m medium phone yes", 0)
	p.told("Session phone goes on until ")
	d := p.hears(p.runs("under", "make build"))
	require.Equal(t, schemas.Allowed, d.Outcome)
	require.Equal(t, schemas.By{Kind: schemas.ByPolicy, Name: "leave of Ann"}, d.By)
	p.Write(annOnTG, "/back", 0)
	p.told("Session phone: 1 call allowed since ")
	p.told("  Bash make build")
	p.runs("after", "make build")
	p.question("after")
}
