package peopletest

import (
	"slices"
	"strings"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

func answered(s *stage) {
	p, _, m := s.shown("rm -rf build")
	for _, part := range []string{p.PendingID, p.SessionID, "Claude Code", "rm -rf build", "/workspace", "devbox", "high"} {
		s.Contains(m.Text, part)
	}
	reply := s.answers(m, schemas.AllowOnce)
	d := s.decided(p)
	s.Equal(schemas.Allowed, d.Outcome)
	s.Equal(schemas.AllowOnce, d.OptionKind)
	s.Equal("Ann", d.By.Name)
	s.Empty(s.desk.answered(p).Scope, "the answer is about this call alone")
	s.Contains(reply, "Allowed once", "success is told once it is recorded")
}

func denied(s *stage) {
	p, _, m := s.shown("rm -rf build")
	s.answers(m, schemas.RejectOnce)
	s.Equal(schemas.Denied, s.decided(p).Outcome)
}

// reason is the text of a reason for a denial. A reply with only this text must not answer the prompt.
const reason = "use make clean"

func deniedWithReason(s *stage) {
	p, _, m := s.shown("rm -rf build")
	s.True(s.Does(Ann, Act{Message: m.ID, Reason: reason}), "the channel cannot deny with a reason, which its features include")
	d := s.decided(p)
	s.Equal(schemas.Denied, d.Outcome)
	s.Equal(reason, d.Message)
}

// agentRemembers requires that a person needs two presses to choose an option that the agent itself
// applies to later calls. The person must read the meaning of the option before the second press.
func agentRemembers(s *stage) {
	r := call("git status")
	r.Options = append(schemas.DefaultOptions(),
		schemas.Option{OptionID: "always-1", Name: "Bash(git status:*)", Kind: schemas.AllowAlways},
		schemas.Option{OptionID: "never-1", Name: "Bash(git push:*)", Kind: schemas.RejectAlways})
	p, _, m := s.shownOf(r)
	for _, kind := range []schemas.OptionKind{schemas.AllowAlways, schemas.RejectAlways} {
		_, there := m.choice(kind)
		s.False(there, "%s is one press away", kind)
	}
	i := slices.IndexFunc(m.Choices, func(c Choice) bool { return c.Kind == "" && strings.Contains(c.Label, "More") })
	s.GreaterOrEqual(i, 0, "no choice leads to the second step, which the channel's features include")
	s.True(s.Does(Ann, Act{Message: m.ID, Press: m.Choices[i].Token}))
	s.waits("the second step", func() bool {
		_, there := s.looks(Ann, m.ID).choice(schemas.AllowAlways)
		return there
	})
	s.pending(p)
	second, _ := s.looks(Ann, m.ID).choice(schemas.AllowAlways)
	s.Contains(second.Label, "Bash(git status:*)", "the rule is read before it is chosen")
	s.says(Ann, Act{Message: m.ID, Press: second.Token})
	s.Equal("always-1", s.decided(p).OptionID)
}

func pressedTwice(s *stage) {
	p, _, m := s.shown("make")
	s.answers(m, schemas.AllowOnce)
	first := s.decided(p)
	reply := s.answers(m, schemas.AllowOnce)
	s.Contains(reply, "Nothing left to do: Ann allowed this once")
	reply = s.answers(m, schemas.RejectOnce)
	s.Contains(reply, "Nothing changed: Ann allowed this once")
	s.Equal(first, s.decided(p))
}

func stranger(s *stage) {
	p, _, m := s.shown("make")
	allow, _ := m.choice(schemas.AllowOnce)
	reply := s.says(Mallory, Act{Of: Ann, Message: m.ID, Press: allow.Token})
	s.Contains(reply, "Nothing changed")
	s.pending(p)
	s.answers(m, schemas.AllowOnce)
	s.Equal("Ann", s.decided(p).By.Name)
}

func foreign(s *stage) {
	p, _, m := s.shown("make")
	allow, _ := m.choice(schemas.AllowOnce)
	reply := s.says(Bob, Act{Of: Ann, Message: m.ID, Press: allow.Token})
	s.Equal(people.Refusal(&schemas.Error{Code: schemas.CodeNotFound}, p.Deadline), reply, "as for an unknown request")
	s.pending(p)
}

// forged presses buttons with invented data, and a button with the data of a button in another message.
// None of these presses may answer a prompt.
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
		reply := s.says(Ann, Act{Message: n.ID, Press: token})
		s.Contains(reply, "Nothing changed", "%q", token)
		s.pending(p)
		s.pending(other)
	}
	reply := s.says(Ann, Act{Message: n.ID, Press: allow.Token}) // press a button under n with the data of Allow under m
	s.Contains(reply, "Nothing changed")
	s.pending(p)
	s.pending(other)
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
		s.Contains(s.answers(m, schemas.AllowOnce), want)
		s.Equal(end.outcome, s.decided(p).Outcome)
	}
}

// unclear lists texts that must not answer a prompt, even as a reply to the prompt's message.
var unclear = []string{
	"yes please", "yes, but not in production", "not yes", "no yes", "yes no", "do not approve", "don't", "disallow",
	"allow", "approve", "ok", "ye", "y", "yess", "yes.", "yes!", "yes 7F3K", "YES SIR", "yes\nno", "y e s", "уes", "ｙｅｓ", "yes\u200b",
	"allow_once", "/allow", "/yes", "👍", "true", "1", "yes to everything", "/pending yes", "why?", "𝐲𝐞𝐬", "", " ",
}

func words(s *stage) {
	p, _, m := s.shown("make")
	for _, text := range unclear {
		if strings.TrimSpace(text) == "" {
			continue // the channels send no empty text
		}
		reply := s.says(Ann, Act{Message: m.ID, Say: text})
		s.NotContains(reply, "Allowed", "%q", text)
		s.pending(p)
	}
	s.says(Ann, Act{Say: "yes"}) // Ann writes yes without replying to a message
	s.pending(p)
	s.says(Mallory, Act{Of: Ann, Message: m.ID, Say: "yes"})
	s.pending(p)
	s.says(Ann, Act{Message: m.ID, Say: " Yes "})
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
}
