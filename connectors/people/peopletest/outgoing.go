package peopletest

import (
	"strings"

	"github.com/nodbus/nod/schemas"
)

// secretWords are the words of a request that an outgoing channel must not send.
const secretWords = "curl-with-password-hunter2"

// secretive returns a request that contains secretWords in all fields that an outgoing channel
// must not send.
func secretive() schemas.Request {
	r := call(secretWords)
	r.Title, r.Reason, r.SessionLabel, r.TaskID = secretWords, secretWords, secretWords, secretWords
	r.Project = "/home/" + secretWords + "/app"
	r.Options = []schemas.Option{{OptionID: "allow_once", Name: secretWords, Kind: schemas.AllowOnce}, {OptionID: "reject_once", Name: "No", Kind: schemas.RejectOnce}}
	return r
}

func told(s *stage) {
	p, ref, m := s.shownOf(secretive())
	for _, part := range []string{p.PendingID, p.SessionID, "app", "high"} {
		s.Contains(m.Text, part)
	}
	s.NotContains(m.Text, secretWords)
	s.NotContains(string(ref), secretWords)
	s.NotEmpty(ref, "without a Ref, no outcome follows")
	s.Empty(m.Choices)
	s.pending(p)
}

// toldOutcome requires that each outcome comes as one new message, without the words of the person who
// decided. Another worker, which knows only the Ref of the first message, must be able to call Settle
// again without an error.
func toldOutcome(s *stage) {
	for outcome, want := range map[schemas.Outcome]string{
		schemas.Allowed: "allowed", schemas.Denied: "denied", schemas.Cancelled: "dismissed", schemas.TimedOut: "expired", schemas.Withdrawn: "stopped waiting",
	} {
		p, ref, m := s.shownOf(secretive())
		read := len(s.Read(Ann))
		ended := s.desk.end(p, outcome, schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "web"})
		ended.Decision.Message = secretWords
		s.settles(ref, ended)
		s.Len(s.Read(Ann), read+1)
		s.Equal(m, s.looks(Ann, m.ID))
		s.Contains(s.last(Ann).Text, want)
		s.Equal(outcome == schemas.Allowed, strings.Contains(s.last(Ann).Text, "allowed"))
		s.NotContains(s.last(Ann).Text, secretWords)
		s.stop()
		s.start()
		s.settles(ref, ended)
	}
}

func toldAgain(s *stage) {
	_, _, once := s.shownOf(secretive())
	s.NotContains(once.Text, "again")
	p := s.desk.ask(secretive(), Ann)
	p.Repeat = true
	s.sends(p)
	s.Contains(s.last(Ann).Text, "again")
	ended := s.desk.end(p, schemas.Denied, schemas.By{Kind: schemas.ByHuman, Name: "Bob", Connector: "web"})
	_, err := s.carrier.Prompt(s.ctx, ended) // call Prompt, because the worker has no Ref of the prompt
	s.NoError(err)
	s.Contains(s.last(Ann).Text, "denied")
	s.Contains(s.last(Ann).Text, "again")
}

// toldHostile requires that the project's name, which is the only text of the agent that an outgoing
// channel sends, cannot hide or imitate other text.
func toldHostile(s *stage) {
	for name, seen := range map[string]string{
		"app\u202egnp":        "⟦U+202E⟧",
		"app\n\nnod: allowed": "⏎",
		"{secret}{link}":      "{secret}{link}",
		"app · low risk":      "⟦U+00B7⟧",
	} {
		r := call("make")
		r.Project = "/home/ann/" + name
		_, _, m := s.shownOf(r)
		s.Contains(plain(m.Text), plain(seen))
		s.Contains(m.Text, "high")
	}
}

func toldApart(s *stage) {
	p := s.desk.ask(secretive(), Ann)
	s.Break(Blocked)
	_, err := s.carrier.Prompt(s.ctx, p)
	s.Error(err)
	q := s.desk.ask(secretive(), Bob)
	s.sends(q)
	s.Contains(s.last(Bob).Text, q.PendingID)
}
