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
		s.Contains(s.last(Ann).Text, people.Outcome(ended.Decision, &p))
		s.Contains(now.Text, "rm -rf build", "the command stays")
		if s.features.Edits {
			s.Equal(m.ID, s.last(Ann).ID, "the outcome takes the prompt's place")
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
	s.stop()
	s.start() // open a new worker, which knows only the Ref of the message
	s.settles(ref, ended)
	s.Contains(s.last(Ann).Text, "Expired")
	if s.features.Edits {
		s.Len(s.Read(Ann), read)
		s.Contains(s.looks(Ann, m.ID).Text, "Expired")
	}
}

// reviser returns the carrier as a people.Reviser. It is for tests that need the feature Edits.
func (s *stage) reviser() people.Reviser {
	s.t.Helper()
	r, can := s.carrier.(people.Reviser)
	s.True(can, "the features include Edits, but the carrier is not a people.Reviser")
	return r
}

// inSteps requires that Prompt sends the prompt without choices, and that Revise adds the choices to the
// message with its Ref. If a worker dies in between, the message has no choices. No worker can remove
// choices from a message whose Ref is not stored.
func inSteps(s *stage) {
	p := s.desk.ask(call("make"), Ann)
	ref, err := s.carrier.Prompt(s.ctx, p)
	s.NoError(err)
	s.NotEmpty(ref, "a message without a Ref never gets its choices")
	first := s.last(Ann)
	s.Contains(first.Text, "make")
	s.Empty(first.Choices, "the worker has not stored the Ref yet")
	s.stop()
	s.start() // open a new worker, which knows only the Ref of the message
	s.NoError(s.reviser().Revise(s.ctx, ref, p))
	now := s.last(Ann)
	s.Equal(first.ID, now.ID, "the choices are in the same message")
	s.answers(now, schemas.AllowOnce)
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
}

// heldUpChoices makes Revise fail when it adds the choices. The next call of Revise must add them
// to the same message.
func heldUpChoices(s *stage) {
	for fault, want := range map[Fault]people.Error{
		Slow:   {After: SlowFor},
		Broken: {},
		Cut:    {},
		Lost:   {},
		Locked: {Permanent: true},
	} {
		p := s.desk.ask(call("make"), Ann)
		ref, err := s.carrier.Prompt(s.ctx, p)
		s.NoError(err)
		first := s.last(Ann)
		s.Break(fault)
		s.sameError(s.reviser().Revise(s.ctx, ref, p), want, fault)
		s.NoError(s.reviser().Revise(s.ctx, ref, p))
		s.Equal(first.ID, s.last(Ann).ID, "no second message")
		s.answers(s.looks(Ann, first.ID), schemas.RejectOnce)
		s.Equal(schemas.Denied, s.decided(p).Outcome)
		// Wait until the carrier has removed the choices. Otherwise the next fault could hit that
		// edit.
		s.waits("the choices to go", func() bool { return len(s.looks(Ann, first.ID).Choices) == 0 })
	}
}

// revised requires that Revise changes the text of a pending prompt and keeps its choices. A person must
// be able to answer the changed prompt.
func revised(s *stage) {
	p, ref, m := s.shown("make")
	p.Detached = true
	s.NoError(s.reviser().Revise(s.ctx, ref, p))
	s.NoError(s.reviser().Revise(s.ctx, ref, p), "without a change")
	now := s.looks(Ann, m.ID)
	s.Contains(now.Text, "the agent has stopped waiting")
	s.Equal(m.Choices, now.Choices)
	s.answers(now, schemas.AllowOnce)
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
}

func connectorAway(s *stage) {
	p, _, m := s.shown("make")
	s.stop()
	s.submits(m, schemas.AllowOnce)
	s.pending(p)
	s.start()
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
}

func nodAway(s *stage) {
	p, _, m := s.shown("make")
	s.desk.leave()
	read := len(s.Read(Ann))
	s.submits(m, schemas.AllowOnce)
	s.waits("the notice that it is being recorded", func() bool { return len(s.Read(Ann)) > read })
	s.Equal(people.Recording, s.last(Ann).Text, "never that it failed")
	s.desk.come()
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
}

func bothAway(s *stage) {
	p, _, m := s.shown("make")
	s.stop()
	s.desk.leave()
	s.submits(m, schemas.RejectOnce)
	s.start()
	s.desk.come()
	s.Equal(schemas.Denied, s.decided(p).Outcome)
}

// restartedMeanwhile requires that an answer is not lost if nod is unreachable and the connector
// restarts at the same time.
func restartedMeanwhile(s *stage) {
	p, _, m := s.shown("make")
	s.desk.leave()
	read := len(s.Read(Ann))
	s.submits(m, schemas.AllowOnce)
	s.waits("the notice that it is being recorded", func() bool { return len(s.Read(Ann)) > read })
	s.stop()
	s.pending(p)
	s.desk.come()
	s.start()
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
	s.Zero(s.desk.contradicted(), "an update that comes twice gives the same answer")
}

// connectorAwayUnkept lets a person press a button while no connector is connected. The press must not
// count. The person must be told so, and must be able to answer the prompt later.
func connectorAwayUnkept(s *stage) {
	p, _, m := s.shown("make")
	s.stop()
	read := len(s.Read(Ann))
	s.submits(m, schemas.AllowOnce)
	s.waits("the notice that the app did not respond", func() bool { return len(s.Read(Ann)) > read })
	s.start()
	q, _, n := s.shown("make test") // the connector is back
	s.answers(n, schemas.RejectOnce)
	s.Equal(schemas.Denied, s.decided(q).Outcome)
	s.pending(p)
	s.answers(m, schemas.AllowOnce)
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
}

// restartedUnkept stops the connector before nod has stored a person's answer. The connector must
// tell the person that the answer is not confirmed.
func restartedUnkept(s *stage) {
	p, _, m := s.shown("make")
	s.desk.leave()
	read := len(s.Read(Ann))
	s.submits(m, schemas.AllowOnce)
	s.waits("the notice that it is being recorded", func() bool { return len(s.Read(Ann)) > read })
	s.stop()
	s.Equal(people.NotConfirmed, s.last(Ann).Text)
	s.pending(p)
	s.desk.come()
	s.start()
	s.answers(m, schemas.AllowOnce)
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
	s.Zero(s.desk.contradicted())
}
