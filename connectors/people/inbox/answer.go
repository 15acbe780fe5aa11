package inbox

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// answerWithin is how long an answer is tried to be brought to nod.
const answerWithin = 15 * time.Second

// The smallest terminal on which anything may be allowed; people.Layout lays
// nothing out for a narrower one.
const (
	minHeight = 10
	minWidth  = 40
)

// answer is what its user says, before it is said of a request.
type answer struct {
	allows bool
	choice int // which of the choices, from 1; 0 is yes or no, once
	said   people.Utterance
	word   string
}

// answeredMsg says what became of an answer.
type answeredMsg struct {
	key      string
	decision schemas.Decision
	err      error
}

// barred says why nothing may be allowed now; empty where it may.
func (m *model) barred() string {
	v := m.top()
	items := pending(m.about(v))
	switch {
	case len(items) == 0:
		return "nothing here waits for an answer"
	case m.away || !m.timed:
		return "nod cannot be reached"
	case m.width < minWidth || m.height < minHeight || m.frame().body < 1:
		return "this terminal is too small"
	}
	for _, i := range items {
		if why := m.barredBy(i); why != "" {
			return why
		}
	}
	for n := len(m.views) - 1; n >= 0; n-- {
		if why := m.views[n].unread(); why != "" {
			return why
		}
		if m.views[n].reads() { // this was read; what is open below it does not matter
			break
		}
	}
	return ""
}

// barredBy is what keeps one request from being allowed here.
func (m *model) barredBy(i *item) string {
	switch _, once := i.Request.OptionOfKind(schemas.AllowOnce); {
	case !once && m.reading().kind != choose:
		return "it offers none for once"
	case i.TakesMore(schemas.TakesSecondDevice):
		return "it takes a second device"
	case !m.now().Before(i.Deadline):
		return "its time has passed"
	}
	return ""
}

// unread says that a view's text has not been seen whole.
func (v *view) unread() string {
	switch {
	case v.entry():
		return ""
	case !v.page.draws:
		return "this terminal cannot draw it"
	case v.kind == browse && !v.page.fits:
		return "v shows it in full"
	case !v.page.whole():
		return "read it to its end"
	}
	return ""
}

// say answers what the view on top is about, or asks for the code word first.
func (m *model) say(a answer) tea.Cmd {
	items := pending(m.about(m.top()))
	if a.allows && m.barred() != "" {
		return nil
	}
	for _, i := range items {
		if a.allows && a.word == "" && i.TakesMore(schemas.TakesCodeWord) {
			m.open(word, keysOf(items))
			m.top().answer = a
			return nil
		}
	}
	for !m.top().reads() {
		m.back()
	}
	var cmds []tea.Cmd
	for _, i := range items {
		if said, ok := a.to(&i.Prompt, schemas.From{UserID: m.o.UserID}); ok {
			i.sending, i.said = true, ""
			cmds = append(cmds, m.bring(i.Key(), said))
		}
	}
	return tea.Batch(cmds...)
}

func keysOf(items []*item) (keys []string) {
	for _, i := range items {
		keys = append(keys, i.Key())
	}
	return keys
}

// to is the answer to one request; ok is false where that offers no such thing.
func (a answer) to(p *schemas.Prompt, from schemas.From) (said schemas.Answer, ok bool) {
	if a.choice == 0 {
		said, ok = a.said.Answer(p, from)
	} else if all := choices(p); a.choice <= len(all) {
		c := all[a.choice-1]
		said, ok = schemas.Answer{
			Type: schemas.TypeAnswer, SessionID: p.SessionID, PendingID: p.PendingID, Digest: p.Digest, Waiters: p.Waiters,
			OptionID: c.option.OptionID, Scope: c.scope, Reach: c.reach, From: from,
		}, true
	}
	said.CodeWord = a.word
	return said, ok
}

// bring brings one answer to nod.
func (m *model) bring(key string, a schemas.Answer) tea.Cmd {
	return m.call(answerWithin, func(ctx context.Context) tea.Msg {
		d, err := m.o.Desk.Answer(ctx, a)
		return answeredMsg{key, d, err}
	})
}

// answered shows what became of an answer: success only where nod said so.
func (m *model) answered(msg answeredMsg) tea.Cmd {
	if i := m.book.items[msg.key]; i != nil {
		i.sending = false
		decision := &msg.decision
		if msg.err != nil {
			i.said, decision = m.refusal(msg.err)
		}
		if i.open() && decision != nil {
			i.Decision = decision
		}
	}
	if m.closing && m.sending() == 0 {
		return tea.Quit
	}
	return nil
}

// refusal puts into words why an answer did not count, and what was decided
// instead where that is known.
func (m *model) refusal(err error) (string, *schemas.Decision) {
	var se *schemas.Error
	switch {
	case !errors.As(err, &se):
		return people.NotConfirmed, nil
	case se.Code == schemas.CodeForbidden:
		return "Nothing changed: " + people.Line(se.Message), nil
	}
	return people.Refusal(se, m.now()), se.Decision()
}
