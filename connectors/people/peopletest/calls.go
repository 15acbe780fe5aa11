package peopletest

import (
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// counted: a question says how many identical calls wait, says so anew when more do,
// and an answer is about the calls that its person had read of.
func counted(s *stage) {
	p := s.desk.ask(call("make"), Ann)
	s.grows(&p, 3, "")
	m := s.last(Ann)
	s.Contains(m.Text, "×3 · 3 identical calls wait: allow once lets these 3 run")

	s.desk.counts(p, 4) // nod counts another, and the message does not say so yet
	s.presses(m, schemas.AllowOnce)
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
	s.Equal(3, s.desk.answered(p).Waiters, "the calls that the message counted")

	q := s.desk.ask(call("make"), Ann)
	ref := s.grows(&q, 3, "")
	first := s.last(Ann)
	if _, can := s.carrier.(people.Reviser); !can {
		return
	}
	s.grows(&q, 4, ref)
	now := s.looks(Ann, first.ID)
	s.Contains(now.Text, "×4 · 4 identical calls wait")
	s.presses(now, schemas.RejectOnce)
	s.Equal(4, s.desk.answered(q).Waiters)

	r := s.desk.ask(call("make"), Ann)
	s.grows(&r, 2, "")
	told := s.last(Ann)
	s.desk.counts(r, 4)
	if s.Does(Ann, Act{Message: told.ID, Say: "yes"}) {
		s.decided(r)
		s.Equal(2, s.desk.answered(r).Waiters, "in words as well")
	}
}

// grows has p count n calls, and shows it: as a new message, or in the place of ref.
func (s *stage) grows(p *schemas.Prompt, n int, ref people.Ref) people.Ref {
	s.t.Helper()
	p.Waiters, p.Waiting = n, n
	s.desk.counts(*p, n)
	if ref != "" {
		s.NoError(s.carrier.(people.Reviser).Revise(s.ctx, ref, *p))
		return ref
	}
	ref, err := s.carrier.Prompt(s.ctx, *p)
	s.NoError(err)
	return ref
}
