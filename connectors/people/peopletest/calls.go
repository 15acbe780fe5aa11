package peopletest

import (
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// counted requires that a prompt shows how many identical calls wait for its answer. If a further call
// joins after that, the answer must not cover that call.
func counted(s *stage) {
	p := s.desk.ask(call("make"), Ann)
	s.showCount(&p, 3, "")
	m := s.last(Ann)
	s.Contains(m.Text, "×3 · 3 identical calls wait: allow once lets these 3 run")

	s.desk.counts(p, 4) // a fourth call waits now, but the message still shows 3
	s.answers(m, schemas.AllowOnce)
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
	s.Equal(3, s.desk.answered(p).Waiters, "the calls that the message counted")
}

func recounted(s *stage) {
	p := s.desk.ask(call("make"), Ann)
	ref := s.showCount(&p, 3, "")
	first := s.last(Ann)
	s.showCount(&p, 4, ref)
	now := s.looks(Ann, first.ID)
	s.Contains(now.Text, "×4 · 4 identical calls wait")
	s.answers(now, schemas.RejectOnce)
	s.Equal(4, s.desk.answered(p).Waiters)
}

func countedInReply(s *stage) {
	p := s.desk.ask(call("make"), Ann)
	s.showCount(&p, 2, "")
	m := s.last(Ann)
	s.desk.counts(p, 4)
	s.True(s.Does(Ann, Act{Message: m.ID, Say: "yes"}))
	s.decided(p)
	s.Equal(2, s.desk.answered(p).Waiters)
}

// showCount sets the number of calls of p to n and shows it. It edits the message that ref identifies or,
// if ref is empty, sends a new message.
func (s *stage) showCount(p *schemas.Prompt, n int, ref people.Ref) people.Ref {
	s.t.Helper()
	p.Waiters, p.Waiting = n, n
	s.desk.counts(*p, n)
	if ref != "" {
		s.NoError(s.reviser().Revise(s.ctx, ref, *p))
		return ref
	}
	return s.sends(*p)
}
