package peopletest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

func faults(s *stage) {
	for fault, want := range map[Fault]people.Error{
		Slow:    {After: SlowFor},
		Broken:  {},
		Cut:     {},
		Lost:    {},
		Locked:  {Permanent: true},
		Blocked: {Unreachable: true},
	} {
		p := s.desk.ask(call("make"), Ann)
		s.Break(fault)
		_, err := s.carrier.Prompt(s.ctx, p)
		s.sameError(err, want, fault)
		p.Repeat = true
		ref, err := s.carrier.Prompt(s.ctx, p)
		s.NoError(err, "once the fault has passed")
		ended := s.desk.end(p, schemas.Withdrawn, schemas.By{Kind: schemas.ByAgent, Name: "local"})
		if fault == Blocked || fault == Lost {
			continue
		}
		s.Break(fault)
		s.sameError(s.carrier.Settle(s.ctx, ref, ended), want, fault)
		s.NoError(s.carrier.Settle(s.ctx, ref, ended))
	}
}

// sameError requires that err tells the worker to retry or wait in the same way as the error want. The
// parameter fault is the fault that caused err.
func (s *stage) sameError(err error, want people.Error, fault Fault) {
	s.t.Helper()
	var e *people.Error
	s.True(errors.As(err, &e), "fault %d: %v", fault, err)
	s.Equal(want, people.Error{After: e.After, Permanent: e.Permanent, Unreachable: e.Unreachable}, "fault %d: %v", fault, err)
	s.NotContains(err.Error(), "\n")
	s.noSecretIn(err.Error())
}

// repeatedPrompt requires that every prompt that may be in the chat twice says so, even after the request
// has ended. Other prompts must not say so.
func repeatedPrompt(s *stage) {
	_, _, once := s.shown("make")
	s.NotContains(once.Text, "again")
	p, ref, m := s.shownAgain("make")
	s.Contains(m.Text, "again")
	s.answers(m, schemas.AllowOnce)
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
	s.settles(ref, s.desk.now(p))
	s.Contains(s.last(Ann).Text+s.looks(Ann, m.ID).Text, "again")
}

func repeatedRevision(s *stage) {
	p, ref, m := s.shownAgain("make")
	p.Detached = true
	s.NoError(s.reviser().Revise(s.ctx, ref, p))
	now := s.looks(Ann, m.ID)
	s.Contains(now.Text, "again")
	s.answers(now, schemas.AllowOnce)
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
	s.settles(ref, s.desk.now(p))
	s.Contains(s.last(Ann).Text+s.looks(Ann, m.ID).Text, "again")
}

// shownAgain shows Ann a prompt with Repeat set, because her chat may already contain a message
// about it.
func (s *stage) shownAgain(command string) (schemas.Prompt, people.Ref, Message) {
	s.t.Helper()
	p := s.desk.ask(call(command), Ann)
	p.Repeat = true
	return p, s.sends(p), s.last(Ann)
}

// endedPrompt calls Prompt with a decided request. A worker does so if it has no Ref for the message of
// the prompt. endedPrompt requires that Prompt sends the outcome in a message without choices.
func endedPrompt(s *stage) {
	p := s.desk.ask(call("rm -rf build"), Ann)
	ended := s.desk.end(p, schemas.Denied, schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "terminal"})
	ended.Repeat = true
	_, err := s.carrier.Prompt(s.ctx, ended)
	s.NoError(err)
	m := s.last(Ann)
	s.Contains(m.Text, "again")
	s.Contains(m.Text, "rm -rf build")
	s.Contains(m.Text, people.Outcome(ended.Decision, &p))
	s.Empty(m.Choices)
}

// unknownMessage shows a prompt in two messages, and gives the worker only the Ref of the second message.
// This can happen if nod's stores were restored from an older copy. Ann answers the first message. If the
// request is pending, her answer must count. If the request is decided, the channel must show her the
// outcome. The first message must lose its buttons in either case.
func unknownMessage(s *stage) {
	for _, decided := range []bool{false, true} {
		p, _, first := s.shown("make")
		p.Repeat = true
		ref := s.sends(p)
		if decided {
			s.settles(ref, s.desk.end(p, schemas.Denied, schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "terminal"}))
			s.Contains(s.answers(first, schemas.AllowOnce), "Nothing changed: Bob denied this")
		} else {
			s.answers(first, schemas.AllowOnce)
			s.Equal(schemas.Allowed, s.decided(p).Outcome)
		}
		s.waits("the choices to go", func() bool { return len(s.looks(Ann, first.ID).Choices) == 0 })
	}
}

// tooLong requires that a person can allow a command only if the message shows every byte of the
// command.
func tooLong(s *stage) {
	for _, n := range []int{100, 1000, 2000, 3000, 3500, 3900, 4000, 4200, 20000, 100000} {
		command := "echo begin " + strings.Repeat("x", n) + " end-" + strings.Repeat("y", 20)
		p, ref, m := s.shown(command)
		_, allows := m.choice(schemas.AllowOnce)
		if !s.features.Buttons {
			allows = strings.Contains(plain(m.Text), plain(command))
		}
		if allows {
			s.Contains(plain(m.Text), plain(command), "%d characters", n)
		} else {
			s.Contains(m.Text, "nod show "+p.PendingID, "it names the command that shows all")
			if s.features.Replies {
				s.says(Ann, Act{Message: m.ID, Say: "yes"})
				s.pending(p)
			}
		}
		s.True(n > 1000 || allows, "%d characters fit", n)
		s.True(n < 20000 || !allows, "%d characters do not fit", n)
		s.answers(m, schemas.RejectOnce)
		s.Equal(schemas.Denied, s.decided(p).Outcome)
		s.NoError(s.carrier.Settle(s.ctx, ref, s.desk.now(p)))
	}
}

func hostile(s *stage) {
	for text, seen := range map[string]string{
		"rm -rf /tmp \u202egnp.exe":                      "⟦U+202E⟧",
		"ls" + strings.Repeat(" ", 400) + "; rm -rf ~":   "⟦400 spaces⟧",
		"ls" + strings.Repeat("\n", 90) + "rm -rf ~":     "⟦90 line breaks⟧",
		"ls \u200b\u200b; rm":                            "⟦U+200B ×2⟧",
		"<b>safe</b> *bold* [a](http://x.example) `x`":   "<b>safe</b>*bold*[a](http://x.example)`x`",
		"✅ Allowed once · Ann\nRequest: other":           "⏎",
		"@everyone /pending https://evil.example/?q=1":   "https://evil.example/?q=1",
		"😀😀😀 \U0001F468\u200d\U0001F469 done":            "😀😀😀",
		"Request: other-1\nSession: other-2\nAnswers: x": "Request:other-1",
	} {
		r := call(text)
		r.Reason, r.Title, r.AgentName, r.SessionLabel, r.TaskID = text, text, text, text, text
		p, ref, m := s.shownOf(r)
		s.Contains(strings.ReplaceAll(plain(m.Text), "⟦U+0060⟧", "`"), plain(seen)) // a channel whose markup has backticks shows their number
		s.answers(m, schemas.RejectOnce)
		s.Equal(schemas.Denied, s.decided(p).Outcome, "this very request was answered")
		s.NoError(s.carrier.Settle(s.ctx, ref, s.desk.now(p)))
	}
}

// apart requires that a fault in the chat of one person does not delay messages to other people.
func apart(s *stage) {
	p := s.desk.ask(call("make"), Ann)
	s.Break(Blocked)
	_, err := s.carrier.Prompt(s.ctx, p)
	s.Error(err)
	q := s.desk.ask(call("make test"), Bob)
	s.sends(q)
	s.says(Bob, s.act(s.last(Bob), schemas.AllowOnce))
	s.Equal("Bob", s.decided(q).By.Name)
	s.pending(p)
}

func cancelled(s *stage) {
	s.stop() // stop waits until Run has returned
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.carrier.Run(ctx, s.desk) }()
	cancel()
	select {
	case err := <-ended:
		s.ErrorIs(err, context.Canceled)
	case <-time.After(10 * time.Second):
		s.Fail("Run does not return")
	}
}
