package peopletest

import (
	"strings"

	"github.com/nodbus/nod/schemas"
)

// reader is Ann, who reads one message from the carrier. It implements Person.
type reader struct {
	*stage
	prompt schemas.Prompt
	id     string
}

// nothingUnseen requires that a person reads the effect of a lasting answer before choosing it.
// It also fails if the channel offers lasting answers without declaring Scopes or AgentOptions.
func nothingUnseen(s *stage) {
	NothingLastsUnseen(s.t, 4, Lasts{Rules: s.features.Scopes, Agents: s.features.AgentOptions}, func(int) Person {
		p := s.desk.ask(lastingRequest(), Ann)
		p.Remember = s.desk.remembers(p, lastingRules)
		s.sends(p)
		return &reader{s, p, s.lastQuestion().ID}
	})
}

// lastQuestion returns the last prompt to Ann. It skips later replies about earlier prompts.
func (s *stage) lastQuestion() (last Message) {
	for _, m := range s.Read(Ann) {
		if m.ID != "" && (len(m.Choices) > 0 || !s.features.Buttons) {
			last = m
		}
	}
	return last
}

func (r *reader) now() Message { return r.looks(Ann, r.id) }

// Sees returns the text and the buttons of the message in its present state.
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
	before, sent := r.now(), r.messages()
	for _, c := range before.Choices {
		if c.Label == label {
			r.True(r.Does(Ann, Act{Message: r.id, Press: c.Token}))
		}
	}
	r.waits("the effect of "+label, func() bool {
		return r.Said() != nil || !sameChoices(before, r.now()) || r.messages() > sent
	})
}

// messages returns the number of Ann's messages, without toasts, because the toast about a press
// may come before the message that the press causes.
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
