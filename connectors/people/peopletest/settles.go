package peopletest

import (
	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

func settled(s *stage) {
	for outcome, by := range map[schemas.Outcome]schemas.By{
		schemas.Allowed:   {Kind: schemas.ByHuman, Name: "Ann", Connector: "web"},
		schemas.Denied:    {Kind: schemas.ByHuman, Name: "Bob", Connector: "terminal"},
		schemas.Cancelled: {Kind: schemas.ByHuman, Name: "Bob", Connector: "terminal"},
		schemas.TimedOut:  {Kind: schemas.ByClock},
		schemas.Withdrawn: {Kind: schemas.ByAgent, Name: "local"},
	} {
		p, ref, m := s.shown("rm -rf build")
		ended := s.desk.end(p, outcome, by)
		s.settles(ref, ended)
		now := s.looks(Ann, m.ID)
		told := s.last(Ann) // the same message, or one that follows it
		s.Contains(told.Text, people.Outcome(ended.Decision, &p))
		s.Contains(now.Text, "rm -rf build", "the command stays")
		if told.ID == m.ID {
			s.Empty(now.Choices)
		}
	}
}

func settledTwice(s *stage) {
	p, ref, m := s.shown("make")
	ended := s.desk.end(p, schemas.TimedOut, schemas.By{Kind: schemas.ByClock})
	s.settles(ref, ended)
	read := len(s.Read(Ann))
	s.settles(ref, ended)
	s.Len(s.Read(Ann), read)
	s.stop()
	s.start() // another worker, which has only the ref
	s.settles(ref, ended)
	s.Contains(s.looks(Ann, m.ID).Text, "Expired")
}

// revised: a question that changes while it is open says so, and can be answered
// still.
func revised(s *stage) {
	reviser, can := s.carrier.(people.Reviser)
	if !can {
		s.t.Skip("this channel cannot change what it shows")
	}
	p, ref, m := s.shown("make")
	p.Detached = true
	s.NoError(reviser.Revise(s.ctx, ref, p))
	s.NoError(reviser.Revise(s.ctx, ref, p), "as it is already")
	now := s.looks(Ann, m.ID)
	s.Contains(now.Text, "nobody is waiting")
	s.Equal(m.Choices, now.Choices)
	s.presses(now, schemas.AllowOnce)
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
}

// presented has Ann press a choice without waiting for a word.
func (s *stage) presented(m Message, kind schemas.OptionKind) {
	c, ok := m.choice(kind)
	s.True(ok)
	if !s.Does(Ann, Act{Message: m.ID, Press: c.Token}) {
		s.t.Skip("this channel has no such thing")
	}
}

func connectorAway(s *stage) {
	p, _, m := s.shown("make")
	s.stop()
	s.presented(m, schemas.AllowOnce)
	s.open(p)
	s.start()
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
}

func nodAway(s *stage) {
	p, _, m := s.shown("make")
	s.desk.leave()
	read := len(s.Read(Ann))
	s.presented(m, schemas.AllowOnce)
	s.waits("that it is being recorded", func() bool { return len(s.Read(Ann)) > read })
	s.Equal(people.Recording, s.last(Ann).Text, "and never that it failed")
	s.desk.come()
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
}

func bothAway(s *stage) {
	p, _, m := s.shown("make")
	s.stop()
	s.desk.leave()
	s.presented(m, schemas.RejectOnce)
	s.start()
	s.desk.come()
	s.Equal(schemas.Denied, s.decided(p).Outcome)
}

// restartedMeanwhile: what nod did not take is not lost with the connector.
func restartedMeanwhile(s *stage) {
	p, _, m := s.shown("make")
	s.desk.leave()
	read := len(s.Read(Ann))
	s.presented(m, schemas.AllowOnce)
	s.waits("that it is being recorded", func() bool { return len(s.Read(Ann)) > read })
	s.stop()
	s.open(p)
	s.desk.come()
	s.start()
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
	s.Zero(s.desk.contradicted(), "what a platform tells twice is the same answer")
}
