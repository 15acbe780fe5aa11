package peopletest

import (
	"strings"

	"github.com/nodbus/nod/schemas"
)

// reader is Ann before one message of a carrier's.
type reader struct {
	*stage
	prompt schemas.Prompt
	id     string
}

// unseen: what lasts is on the screen before it can be chosen.
func unseen(s *stage) {
	offers := Lasts{}
	if lasting, ok := s.Rig.(interface{ Lasts() Lasts }); ok {
		offers = lasting.Lasts()
	}
	NothingLastsUnseen(s.t, 4, offers, func(int) Person {
		p := s.desk.ask(unseenRequest(), Ann)
		p.Remember = s.desk.remembers(p, unseenRules)
		_, err := s.carrier.Prompt(s.ctx, p)
		s.NoError(err)
		return &reader{s, p, s.asked().ID}
	})
}

// asked is the last question that Ann got: a word about an earlier one may follow it.
func (s *stage) asked() (asked Message) {
	for _, m := range s.Read(Ann) {
		if m.ID != "" && len(m.Choices) > 0 {
			asked = m
		}
	}
	return asked
}

func (r *reader) now() Message { return r.looks(Ann, r.id) }

// Sees is the message as it looks now, with its buttons.
func (r *reader) Sees() string {
	m := r.now()
	text := strings.ReplaceAll(m.Text, r.prompt.PendingID, "")
	text = strings.ReplaceAll(text, r.prompt.SessionID, "")
	return text + "\n" + strings.Join(labels(r.May()), "\n")
}

func (r *reader) May() (all []Pressable) {
	for _, c := range r.now().Choices {
		all = append(all, Pressable{Label: c.Label})
	}
	return all
}

func (r *reader) Press(label string) {
	r.t.Helper()
	before := r.now()
	for _, c := range before.Choices {
		if c.Label == label {
			r.True(r.Does(Ann, Act{Message: r.id, Press: c.Token}))
		}
	}
	sent := r.messages()
	r.waits("what comes of "+label, func() bool {
		return r.Said() != nil || !sameChoices(before, r.now()) || r.messages() > sent
	})
}

// messages counts those that Ann got; a word about a press may come before what it
// leads to.
func (r *reader) messages() (n int) {
	for _, m := range r.Read(Ann) {
		if m.ID != "" {
			n++
		}
	}
	return n
}

func sameChoices(a, b Message) bool {
	return strings.Join(tokens(a), " ") == strings.Join(tokens(b), " ")
}

func tokens(m Message) (all []string) {
	for _, c := range m.Choices {
		all = append(all, c.Token)
	}
	return all
}

func (r *reader) Said() *schemas.Answer {
	if r.desk.now(r.prompt).Decision == nil {
		return nil
	}
	a := r.desk.answered(r.prompt)
	return &a
}
