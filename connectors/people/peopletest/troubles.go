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
		s.same(err, want, fault)
		p.Repeat = true
		ref, err := s.carrier.Prompt(s.ctx, p)
		s.NoError(err, "once the fault has passed")
		ended := s.desk.end(p, schemas.Withdrawn, schemas.By{Kind: schemas.ByAgent, Name: "local"})
		if fault == Blocked || fault == Lost {
			continue
		}
		s.Break(fault)
		s.same(s.carrier.Settle(s.ctx, ref, ended), want, fault)
		s.NoError(s.carrier.Settle(s.ctx, ref, ended))
	}
}

// same compares what the retry loop goes by.
func (s *stage) same(err error, want people.Error, fault Fault) {
	s.t.Helper()
	var e *people.Error
	s.True(errors.As(err, &e), "fault %d: %v", fault, err)
	s.Equal(want, people.Error{After: e.After, Permanent: e.Permanent, Unreachable: e.Unreachable}, "fault %d: %v", fault, err)
	s.NotContains(err.Error(), "\n")
	s.keeps(err.Error())
}

// repeatedPrompt: a message that may be there twice says so as long as it is there,
// and one that is not does not.
func repeatedPrompt(s *stage) {
	_, _, once := s.shown("make")
	s.NotContains(once.Text, "again")
	p := s.desk.ask(call("make"), Ann)
	p.Repeat = true
	ref, err := s.carrier.Prompt(s.ctx, p)
	s.NoError(err)
	m := s.last(Ann)
	s.Contains(m.Text, "again")
	if reviser, can := s.carrier.(people.Reviser); can {
		p.Detached = true
		s.NoError(reviser.Revise(s.ctx, ref, p))
		s.Contains(s.looks(Ann, m.ID).Text, "again")
	}
	s.presses(s.looks(Ann, m.ID), schemas.AllowOnce)
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
	s.settles(ref, s.desk.now(p))
	s.Contains(s.last(Ann).Text+s.looks(Ann, m.ID).Text, "again")
}

// endedPrompt: how a question ended whose message nobody can edit is a message of its
// own, with nothing to press.
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

// unknownMessage: a question is there twice, of which nod's worker knows the second.
// An answer to the first counts, or its person reads what happened, and nothing stays
// there to be pressed.
func unknownMessage(s *stage) {
	for _, decided := range []bool{false, true} {
		p, _, first := s.shown("make")
		p.Repeat = true
		ref, err := s.carrier.Prompt(s.ctx, p)
		s.NoError(err)
		if decided {
			s.settles(ref, s.desk.end(p, schemas.Denied, schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "terminal"}))
			s.Contains(s.presses(first, schemas.AllowOnce), "Nothing changed: Bob denied this")
		} else {
			s.presses(first, schemas.AllowOnce)
			s.Equal(schemas.Allowed, s.decided(p).Outcome)
		}
		s.waits("nothing to press", func() bool { return len(s.looks(Ann, first.ID).Choices) == 0 })
	}
}

// tooLong: a choice to allow is there only where every byte is seen.
func tooLong(s *stage) {
	for _, n := range []int{100, 1000, 2000, 3000, 3500, 3900, 4000, 4200, 20000, 100000} {
		command := "echo begin " + strings.Repeat("x", n) + " end-" + strings.Repeat("y", 20)
		p, ref, m := s.shown(command)
		_, allows := m.choice(schemas.AllowOnce)
		if allows {
			s.Contains(plain(m.Text), plain(command), "%d characters", n)
		} else {
			s.Contains(m.Text, "nod show "+p.PendingID, "it says where to look")
		}
		s.True(n > 1000 || allows, "%d characters fit", n)
		s.True(n < 20000 || !allows, "%d characters do not fit", n)
		s.presses(m, schemas.RejectOnce)
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
		s.Contains(plain(m.Text), plain(seen))
		s.presses(m, schemas.RejectOnce)
		s.Equal(schemas.Denied, s.decided(p).Outcome, "it is this request that was answered")
		s.NoError(s.carrier.Settle(s.ctx, ref, s.desk.now(p)))
	}
}

// apart: what is wrong with one person's chat keeps nobody else from reading.
func apart(s *stage) {
	p := s.desk.ask(call("make"), Ann)
	s.Break(Blocked)
	_, err := s.carrier.Prompt(s.ctx, p)
	s.Error(err)
	q := s.desk.ask(call("make test"), Bob)
	_, err = s.carrier.Prompt(s.ctx, q)
	s.NoError(err)
	m := s.last(Bob)
	allow, ok := m.choice(schemas.AllowOnce)
	s.True(ok)
	s.does(Bob, Act{Message: m.ID, Press: allow.Token})
	s.Equal("Bob", s.decided(q).By.Name)
	s.open(p)
}

func cancelled(s *stage) {
	s.stop() // which waits for Run
	ctx, cancel := context.WithCancel(s.ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.carrier.Run(ctx, s.desk) }()
	cancel()
	select {
	case err := <-ended:
		s.ErrorIs(err, context.Canceled)
	case <-time.After(10 * time.Second):
		s.Fail("Run goes on")
	}
}
