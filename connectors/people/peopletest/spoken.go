package peopletest

import (
	"errors"
	"strings"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// spokenTests are the tests of the suite for a channel that asks by voice.
var spokenTests = []struct {
	name  string
	needs []feature
	run   func(*stage)
}{
	{"a yes is read back, and counts once it is confirmed", nil, confirmed},
	{"a denial is taken at once", nil, spokenDenial},
	{"speech that does not answer changes nothing", nil, spokenWords},
	{"a request that cannot be spoken whole cannot be allowed", nil, unspeakable},
	{"one question is asked at a time", nil, oneAtATime},
	{"an answer is about the calls that its question counted", nil, spokenCount},
	{"a late answer decides nothing", nil, spokenLate},
	{"an ended request is told once, and settling twice is no error", nil, spokenEnd},
	{"an answer that nod takes long to record is not called failed", nil, spokenNodAway},
	{"speech while the connector was away decides nothing", nil, spokenAway},
	{"a person without a client is not asked", nil, nobodyListens},
	{"one person's answer is not another's", nil, spokenApart},
	{"cancelling ends it promptly", nil, cancelled},
}

// asks passes a request to the carrier and waits until the carrier asks the person about it. It returns
// the spoken message, whose ID is the id of the request.
func (s *stage) asks(p schemas.Prompt) Message {
	s.t.Helper()
	s.waits("the prompt", func() bool {
		_, err := s.carrier.Prompt(s.ctx, p)
		return err == nil
	})
	var asked Message
	s.waits("the question", func() bool {
		for _, m := range s.Read(p.Recipient) {
			if m.ID == p.PendingID {
				asked = m
			}
		}
		return asked.ID != ""
	})
	return asked
}

func (s *stage) speaks(user, text string) (reply string) {
	s.t.Helper()
	return s.says(user, Act{Say: text})
}

func confirmed(s *stage) {
	p := s.desk.ask(call("make"), Ann)
	m := s.asks(p)
	for _, part := range []string{"make", "workspace", "igh risk", "yes or no"} {
		s.Contains(m.Text, part)
	}
	s.Contains(s.speaks(Ann, "yes"), "onfirm")
	s.pending(p)
	s.speaks(Ann, "confirm")
	d := s.decided(p)
	s.Equal(schemas.AllowOnce, d.OptionKind)
	s.Equal("Ann", d.By.Name)
	s.Empty(s.desk.answered(p).Scope, "the answer is about this call alone")
	q := s.desk.ask(call("make"), Ann)
	s.asks(q)
	s.speaks(Ann, "Yes.")
	s.speaks(Ann, "no")
	s.Equal(schemas.Denied, s.decided(q).Outcome, "a no takes the yes back")
}

func spokenDenial(s *stage) {
	for _, word := range []string{"no", "reject", "stop", "cancel", "No."} {
		p := s.desk.ask(call("make"), Ann)
		s.asks(p)
		s.speaks(Ann, word)
		s.Equal(schemas.Denied, s.decided(p).Outcome, word)
	}
}

// UnclearSpeech lists utterances that must not answer a request: negated, mixed, quoted, unfinished and
// overheard words, and words that a speech recogniser may hear in place of an answer.
var UnclearSpeech = []string{
	"yes please", "yes but", "yes but not in production", "not yet", "nope yes", "yes yes no", "yes yes", "yes no", "no yes", "not yes",
	"do not allow abcd", "do not approve", "don't approve", "don't", "do not", "disallow", "disapprove", "allow", "allow it", "approve it",
	"i said yes", "he said yes", "\"yes\"", "'yes'", "“yes”", "she says approve", "did you say yes", "say yes", "yes?", "yes!", "yes,", "yeah", "yep", "yup", "sure",
	"okay not", "ok no", "ok stop", "do not continue", "continue not", "discontinue", "never mind", "nope", "nah", "no no", "no thank you",
	"yes 7F3K", "confirm yes", "confirm not", "do not confirm", "unconfirm", "confirmed", "уes", "ｙｅｓ", "yes\u200b", "y e s", "the yes men", "ja", "oui", "1", "true", "[noise]", "<unk>",
}

func spokenWords(s *stage) {
	p := s.desk.ask(call("make"), Ann)
	s.asks(p)
	for _, text := range append([]string{"confirm"}, UnclearSpeech...) {
		s.True(s.Does(Ann, Act{Say: text}))
		s.pending(p)
	}
	s.denies(p)
	for _, text := range UnclearSpeech { // an unclear utterance must not confirm a yes either
		q := s.readsBack()
		s.True(s.Does(Ann, Act{Say: text}))
		s.True(s.Does(Ann, Act{Say: "confirm that"}))
		s.denies(q)
	}
	s.Zero(s.desk.contradicted())
}

// readsBack makes Ann say yes, and waits until the channel repeats the yes and asks her to confirm it. It
// returns the request. If a late "no" about an earlier request has denied the request, it tries again
// with another request.
func (s *stage) readsBack() schemas.Prompt {
	s.t.Helper()
	for {
		p := s.desk.ask(call("make"), Ann)
		s.asks(p)
		s.True(s.Does(Ann, Act{Say: "yes"}))
		s.waits("the yes to be read back", func() bool {
			return s.desk.now(p).Decision != nil || strings.Contains(s.last(Ann).Text, "onfirm")
		})
		d := s.desk.now(p).Decision
		if d == nil {
			return p
		}
		s.Equal(schemas.Denied, d.Outcome)
	}
}

// denies makes Ann say no until the request is denied, because the channel may take her first no
// for an echo of its own words. Speech is handled in order, so the denial shows that nothing that
// Ann said before has allowed the request.
func (s *stage) denies(p schemas.Prompt) {
	s.t.Helper()
	for s.desk.now(p).Decision == nil {
		s.speaks(Ann, "no")
	}
	s.Equal(schemas.Denied, s.decided(p).Outcome)
}

// unspeakable requires that nobody can allow a request by voice if speech cannot convey its exact
// text.
func unspeakable(s *stage) {
	for _, command := range []string{
		"echo begin " + strings.Repeat("x", 300), strings.Repeat("a ", 200), "rm -rf /tmp \u202egnp.exe", "ls" + strings.Repeat(" ", 40) + "; rm -rf ~",
		"ls\nrm -rf ~", "rm -rf b\u0443ild", "ls \u200b", "echo caf\u00e9", "rm dash rf build", "ls\trm", " ", "echo \x1b[2K",
	} {
		p := s.desk.ask(call(command), Ann)
		m := s.asks(p)
		s.Contains(m.Text, "screen", "%q", command)
		s.NotContains(m.Text, "yes or no")
		s.NotContains(s.speaks(Ann, "yes"), "onfirm", "%q", command)
		s.speaks(Ann, "confirm")
		s.pending(p)
		s.speaks(Ann, "no")
		s.Equal(schemas.Denied, s.decided(p).Outcome, "%q", command)
	}
}

func oneAtATime(s *stage) {
	first, second := s.desk.ask(call("make one"), Ann), s.desk.ask(call("make two"), Ann)
	s.Contains(s.asks(first).Text, "one")
	_, err := s.carrier.Prompt(s.ctx, second)
	s.NoError(err)
	s.NotContains(s.last(Ann).Text, "two")
	s.speaks(Ann, "no")
	s.Equal(schemas.Denied, s.decided(first).Outcome)
	s.waits("the second question", func() bool { return strings.Contains(s.last(Ann).Text, "two") })
	s.pending(second)
	s.speaks(Ann, "no")
	s.Equal(schemas.Denied, s.decided(second).Outcome)
}

func spokenCount(s *stage) {
	p := s.desk.ask(call("make"), Ann)
	p.Waiters, p.Waiting = 3, 3
	s.desk.counts(p, 3)
	s.Contains(s.asks(p).Text, "3 identical calls")
	s.desk.counts(p, 4)
	s.speaks(Ann, "no")
	s.decided(p)
	s.Equal(3, s.desk.answered(p).Waiters, "the calls that the question counted")
}

func spokenLate(s *stage) {
	p := s.desk.ask(call("make"), Ann)
	s.asks(p)
	ended := s.desk.end(p, schemas.Denied, schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "web"})
	s.settles("", ended)
	s.waits("the outcome", func() bool { return strings.Contains(s.last(Ann).Text, "Bob denied this") })
	s.speaks(Ann, "yes")
	s.Equal(schemas.Denied, s.decided(p).Outcome)
	s.Zero(s.desk.contradicted(), "a late yes is no answer")
}

func spokenEnd(s *stage) {
	for outcome, want := range map[schemas.Outcome]string{schemas.TimedOut: "expired", schemas.Withdrawn: "stopped waiting", schemas.Allowed: "allowed"} {
		p := s.desk.ask(call("make"), Ann)
		s.asks(p)
		by := schemas.By{Kind: schemas.ByClock}
		if outcome == schemas.Allowed {
			by = schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "web"}
		}
		ended := s.desk.end(p, outcome, by)
		s.settles("", ended)
		s.waits("the outcome", func() bool { return strings.Contains(s.last(Ann).Text, want) })
		told := len(s.Read(Ann))
		s.settles("", ended)
		s.Len(s.Read(Ann), told)
	}
}

func spokenNodAway(s *stage) {
	p := s.desk.ask(call("make"), Ann)
	s.asks(p)
	s.speaks(Ann, "yes")
	s.desk.leave()
	read := len(s.Read(Ann))
	s.True(s.Does(Ann, Act{Say: "confirm"}))
	s.waits("the notice that it is being recorded", func() bool { return len(s.Read(Ann)) > read })
	s.Equal(people.Recording, s.last(Ann).Text, "never that it failed")
	s.desk.come()
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
}

func spokenAway(s *stage) {
	p := s.desk.ask(call("make"), Ann)
	s.asks(p)
	s.Contains(s.speaks(Ann, "yes"), "onfirm")
	s.stop()
	s.Does(Ann, Act{Say: "confirm"})
	s.Does(Ann, Act{Say: "no"})
	read := len(s.Read(Ann))
	s.start()
	s.waits("the question anew", func() bool { return len(s.Read(Ann)) > read })
	s.Contains(s.last(Ann).Text, "yes or no")
	s.speaks(Ann, "confirm")
	s.pending(p)
	s.speaks(Ann, "no")
	s.Equal(schemas.Denied, s.decided(p).Outcome)
}

func nobodyListens(s *stage) {
	s.Break(Blocked)
	var e *people.Error
	p := s.desk.ask(call("make"), Ann)
	s.waits("the client's end", func() bool {
		_, err := s.carrier.Prompt(s.ctx, p)
		return errors.As(err, &e)
	})
	s.Positive(e.After, "the client of a new request may be connecting again")
	p.Request.CreatedAt = time.Now().Add(-time.Minute)
	_, err := s.carrier.Prompt(s.ctx, p)
	s.True(errors.As(err, &e))
	s.True(e.Unreachable)
	s.NotContains(err.Error(), "\n")
	s.NoError(s.carrier.Settle(s.ctx, "", s.desk.end(p, schemas.TimedOut, schemas.By{Kind: schemas.ByClock})))
}

func spokenApart(s *stage) {
	p, q := s.desk.ask(call("make one"), Ann), s.desk.ask(call("make two"), Bob)
	s.asks(p)
	s.asks(q)
	s.speaks(Bob, "no")
	s.Equal("Bob", s.decided(q).By.Name)
	s.False(s.Does(Mallory, Act{Say: "yes"}), "who is no approver has no client")
	s.pending(p)
}
