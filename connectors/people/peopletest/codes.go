package peopletest

import (
	"regexp"
	"strings"

	"github.com/nodbus/nod/schemas"
)

// shownCode matches the code that a prompt shows.
var shownCode = regexp.MustCompile(`\b(?:yes|no) ([0-9B-DF-HJKMNP-TV-Z]{4})\b`)

// code returns the code of a prompt.
func (s *stage) code(m Message) string {
	s.t.Helper()
	found := shownCode.FindStringSubmatch(m.Text)
	s.Len(found, 2, "the question shows no code:\n%s", m.Text)
	return found[1]
}

func answeredByCode(s *stage) {
	for text, want := range map[string]schemas.Outcome{
		"yes CODE": schemas.Allowed, " Yes  code ": schemas.Allowed, "YES CODE\n": schemas.Allowed,
		"no CODE": schemas.Denied, "No code": schemas.Denied,
	} {
		p, _, m := s.shown("make")
		code := s.code(m)
		reply := s.says(Ann, Act{Say: strings.NewReplacer("CODE", code, "code", strings.ToLower(code)).Replace(text)})
		d := s.decided(p)
		s.Equal(want, d.Outcome, text)
		s.Contains(reply, map[schemas.Outcome]string{schemas.Allowed: "Allowed once", schemas.Denied: "Denied"}[want])
	}
	p, _, m := s.shown("make")
	s.says(Ann, Act{Say: "no " + s.code(m) + " " + reason})
	s.Equal(reason, s.decided(p).Message)
}

// UnclearWithCode lists texts that must not answer the prompt with the code CODE.
var UnclearWithCode = []string{
	"yes", "no", "do not allow CODE", "disallow CODE", "allow CODE", "approve CODE", "ok CODE", "yes but CODE", "yes CODE but not in production", "not yet CODE", "not yes CODE",
	"nope yes CODE", "yes yes CODE", "yes yes no", "yes no CODE", "no yes CODE now please", "CODE", "CODE yes", "yes: CODE", "yes, CODE", "yes CODE.", "yes CODE!", "yes CODE yes",
	"“yes CODE”", "\"yes CODE\"", "> yes CODE", "Ann: yes CODE", "she said yes CODE", "yes CODE?", "yes CODECODE", "yesCODE", "yes\nCODE", "yes\tCODE", "yes\u00a0CODE", "y CODE", "уes CODE",
	"yes CODE\u200b", "\u202eyes CODE", "/yes CODE", "*yes CODE*", "yes *CODE*", "👍 CODE", "true CODE", "1 CODE", "ja CODE", "yes #CODE", "yes 0000", "yes ????", "dont CODE", "yes except CODE",
}

func wordsWithCode(s *stage) {
	p, _, m := s.shown("make")
	code := s.code(m)
	for _, text := range UnclearWithCode {
		said := strings.ReplaceAll(text, "CODE", code)
		if strings.Contains(said, "0000") && code == "0000" {
			continue
		}
		if word, rest, _ := strings.Cut(said, " "); word == "no" && strings.HasPrefix(rest, code) {
			continue // this text denies with a reason
		}
		reply := s.says(Ann, Act{Say: said})
		s.NotContains(reply, "Allowed", "%q", said)
		s.pending(p)
		reply = s.says(Ann, Act{Message: m.ID, Say: said}) // Ann writes the text in reply to the prompt
		s.NotContains(reply, "Allowed", "%q", said)
		s.pending(p)
	}
	s.says(Ann, Act{Say: "yes " + code})
	s.Equal(schemas.Allowed, s.decided(p).Outcome)
}

// foreignCode requires that a code works only for its own recipient and its own request. An answer with
// the code must cover only the number of calls that the code's message showed.
func foreignCode(s *stage) {
	p, _, m := s.shown("make")
	q := s.desk.ask(call("make test"), Bob)
	s.sends(q)
	ann, bob := s.code(m), s.code(s.last(Bob))
	s.NotEqual(ann, bob)
	for _, act := range []struct{ user, code string }{{Ann, bob}, {Bob, ann}, {Mallory, ann}, {Mallory, bob}} {
		s.NotContains(s.says(act.user, Act{Say: "yes " + act.code}), "Allowed")
	}
	s.pending(p)
	s.pending(q)

	three := s.desk.ask(call("make"), Ann)
	s.showCount(&three, 3, "")
	code := s.code(s.last(Ann))
	s.desk.counts(three, 5)
	s.says(Ann, Act{Say: "yes " + code})
	s.Equal(schemas.Allowed, s.decided(three).Outcome)
	s.Equal(3, s.desk.answered(three).Waiters, "the calls that the message counted")
	s.pending(p)
}

// lateCode requires that the code of a prompt that has ended changes nothing, even if another prompt
// waits.
func lateCode(s *stage) {
	p, _, m := s.shown("make")
	code := s.code(m)
	s.says(Ann, Act{Say: "yes " + code})
	first := s.decided(p)
	q, _, _ := s.shown("rm -rf /")
	for _, text := range []string{"yes " + code, "no " + code, "yes"} {
		s.NotContains(s.says(Ann, Act{Message: m.ID, Say: text}), "Allowed once")
	}
	s.pending(q)
	s.Equal(first, s.decided(p))
	s.Zero(s.desk.contradicted())
}
