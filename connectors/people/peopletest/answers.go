package peopletest

import (
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

func answered(s *stage) {
	p, _, m := s.shown("rm -rf build")
	for _, part := range []string{p.PendingID, p.SessionID, "Claude Code", "rm -rf build", "/workspace", "devbox", "high"} {
		s.Contains(m.Text, part)
	}
	told := s.presses(m, schemas.AllowOnce)
	d := s.decided(p)
	s.Equal(schemas.Allowed, d.Outcome)
	s.Equal(schemas.AllowOnce, d.OptionKind)
	s.Equal("Ann", d.By.Name)
	s.Contains(told, "Allowed once", "success is told once it is recorded")
}

func denied(s *stage) {
	p, _, m := s.shown("rm -rf build")
	s.presses(m, schemas.RejectOnce)
	s.Equal(schemas.Denied, s.decided(p).Outcome)
}

// always: no option that lasts is among the first choices.
func always(s *stage) {
	r := call("git status")
	r.Options = append(schemas.DefaultOptions(),
		schemas.Option{OptionID: "always-1", Name: "Bash(git status:*)", Kind: schemas.AllowAlways},
		schemas.Option{OptionID: "never-1", Name: "Bash(git push:*)", Kind: schemas.RejectAlways})
	p, _, m := s.shownOf(r)
	for _, kind := range []schemas.OptionKind{schemas.AllowAlways, schemas.RejectAlways} {
		_, there := m.choice(kind)
		s.False(there, "%s is one tap away", kind)
	}
	for _, step := range m.Choices {
		if step.Kind != "" || !strings.Contains(step.Label, "More") {
			continue
		}
		s.True(s.Does(Ann, Act{Message: m.ID, Press: step.Token}))
		s.waits("the second step", func() bool {
			_, there := s.looks(Ann, m.ID).choice(schemas.AllowAlways)
			return there
		})
		s.open(p)
		second, _ := s.looks(Ann, m.ID).choice(schemas.AllowAlways)
		s.Contains(second.Label, "Bash(git status:*)", "the rule is read before it is chosen")
		s.does(Ann, Act{Message: m.ID, Press: second.Token})
		s.Equal("always-1", s.decided(p).OptionID)
		return
	}
	s.t.Skip("this channel has no second step")
}

func pressedTwice(s *stage) {
	p, _, m := s.shown("make")
	s.presses(m, schemas.AllowOnce)
	first := s.decided(p)
	told := s.presses(m, schemas.AllowOnce)
	s.Contains(told, "Nothing left to do: Ann allowed this once")
	told = s.presses(m, schemas.RejectOnce)
	s.Contains(told, "Nothing changed: Ann allowed this once")
	s.Equal(first, s.decided(p))
}

func stranger(s *stage) {
	p, _, m := s.shown("make")
	allow, _ := m.choice(schemas.AllowOnce)
	told := s.does(Mallory, Act{Of: Ann, Message: m.ID, Press: allow.Token})
	s.Contains(told, "Nothing changed")
	s.open(p)
	s.presses(m, schemas.AllowOnce)
	s.Equal("Ann", s.decided(p).By.Name)
}

func foreign(s *stage) {
	p, _, m := s.shown("make")
	allow, _ := m.choice(schemas.AllowOnce)
	told := s.does(Bob, Act{Of: Ann, Message: m.ID, Press: allow.Token})
	s.Equal(people.Refusal(&schemas.Error{Code: schemas.CodeNotFound}, p.Deadline), told, "as of one that is unknown")
	s.open(p)
}

// forged presses what no button sends, under a message that is there and under
// another.
func forged(s *stage) {
	p, _, m := s.shown("make")
	other, _, n := s.shown("rm -rf /")
	allow, _ := m.choice(schemas.AllowOnce)
	deny, _ := n.choice(schemas.RejectOnce)
	tokens := []string{"x", "v1::a", allow.Token + "a", allow.Token[:len(allow.Token)-1], strings.ToUpper(allow.Token) + "!", "allow_once", "v1:" + p.PendingID + ":a", "\x00", strings.Repeat("v", 64)}
	for i := range len(allow.Token) {
		changed := []byte(allow.Token)
		changed[i] ^= 1
		tokens = append(tokens, string(changed))
	}
	for _, token := range tokens {
		if token == deny.Token {
			continue
		}
		told := s.does(Ann, Act{Message: n.ID, Press: token})
		s.Contains(told, "Nothing changed", "%q", token)
		s.open(p)
		s.open(other)
	}
	told := s.does(Ann, Act{Message: n.ID, Press: allow.Token}) // one question's yes under another
	s.Contains(told, "Nothing changed")
	s.open(p)
	s.open(other)
}

func late(s *stage) {
	bob := schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "web"}
	for want, end := range map[string]struct {
		outcome schemas.Outcome
		by      schemas.By
	}{
		"Nothing changed: Bob denied this on the web": {schemas.Denied, bob},
		"Nothing changed: this expired":               {schemas.TimedOut, schemas.By{Kind: schemas.ByClock}},
		"Nothing changed: the agent stopped waiting":  {schemas.Withdrawn, schemas.By{Kind: schemas.ByAgent}},
	} {
		p, _, m := s.shown("make")
		s.desk.end(p, end.outcome, end.by)
		s.Contains(s.presses(m, schemas.AllowOnce), want)
		s.Equal(end.outcome, s.decided(p).Outcome)
	}
}

// unclear is what must not answer, in reply to the question itself.
var unclear = []string{
	"yes please", "yes, but not in production", "not yes", "no yes", "yes no", "do not approve", "don't", "disallow",
	"allow", "approve", "ok", "ye", "y", "yess", "yes.", "yes!", "yes 7F3K", "YES SIR", "yes\nno", "y e s", "уes", "ｙｅｓ", "yes\u200b",
	"allow_once", "/allow", "/yes", "👍", "true", "1", "yes to everything", "/pending yes", "why?", "𝐲𝐞𝐬", "", " ",
}

func words(s *stage) {
	p, _, m := s.shown("make")
	for _, text := range unclear {
		if strings.TrimSpace(text) == "" {
			continue // no channel sends it
		}
		told := s.does(Ann, Act{Message: m.ID, Say: text})
		s.NotContains(told, "Allowed", "%q", text)
		s.open(p)
	}
	s.does(Ann, Act{Say: "yes"}) // to nothing in particular
	s.open(p)
	s.does(Mallory, Act{Of: Ann, Message: m.ID, Say: "yes"})
	s.open(p)
	s.does(Ann, Act{Message: m.ID, Say: " Yes "})
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
}
