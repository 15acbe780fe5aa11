package inbox

import (
	"context"
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

const answerTimeout = 15 * time.Second

// The size of the smallest terminal on which a user can allow a request. For a narrower terminal,
// people.Layout makes rows that are too wide.
const (
	minHeight = 10
	minWidth  = 40
)

// answer is the user's choice. answerTo converts the choice to one schemas.Answer for each request.
type answer struct {
	allows bool
	choice int // the number of the choice, from 1; 0 means allow once or deny
	option int // the number of an option of an agent's question, from 1; 0 for other requests
	said   people.Utterance
	text   string // the text that the user typed as the answer to an agent's question
	word   string // the code word
}

// answeredMsg is the result of sending an answer.
type answeredMsg struct {
	key      string
	decision schemas.Decision
	err      error
}

// allowBarrier returns the reason why the user cannot allow the requests of the top view now. If the user
// can allow them, the reason is "".
func (m *model) allowBarrier() string {
	v := m.top()
	items := pending(m.itemsOf(v))
	switch {
	case len(items) == 0:
		return "nothing here waits for an answer"
	case m.offline || !m.skewKnown:
		return "nod cannot be reached"
	case m.width < minWidth || m.height < minHeight || m.frame().body < 1:
		return "this terminal is too small"
	}
	for _, i := range items {
		if why := m.itemBarrier(i); why != "" {
			return why
		}
	}
	for n := len(m.views) - 1; n >= 0; n-- {
		if why := m.views[n].readBarrier(); why != "" {
			return why
		}
		if m.views[n].showsRequests() { // this view shows the requests in full, so the views below it need not be read
			break
		}
	}
	return ""
}

// itemBarrier returns the reason why the user cannot allow one request on this screen. If the user can
// allow it, the reason is "".
func (m *model) itemBarrier(i *item) string {
	switch _, once := i.Request.OptionOfKind(schemas.AllowOnce); {
	case !once && m.textView().kind != choose && i.Request.Kind != schemas.KindQuestion:
		return "it cannot be allowed once"
	case i.HasCondition(schemas.ConditionSecondDevice):
		return "it needs a second device"
	case !m.now().Before(i.Deadline):
		return "its time has passed"
	}
	return ""
}

// readBarrier returns the reason why the user has not yet read the view, which an allow requires. If the
// user has read it, the reason is "".
func (v *view) readBarrier() string {
	switch {
	case v.takesText():
		return ""
	case !v.page.draws:
		return "this terminal cannot draw it"
	case v.kind == browse && !v.page.fits:
		return "v shows it in full"
	case !v.page.allSeen():
		return "read it to its end"
	}
	return ""
}

// sendAnswers sends answers to the requests of the top view. If a request needs the code word, it
// first asks for that word.
func (m *model) sendAnswers(a answer) tea.Cmd {
	items := pending(m.itemsOf(m.top()))
	if a.allows && m.allowBarrier() != "" {
		return nil
	}
	for _, i := range items {
		if a.allows && a.word == "" && i.HasCondition(schemas.ConditionCodeWord) {
			m.open(word, keysOf(items))
			m.top().answer = a
			return nil
		}
	}
	for !m.top().showsRequests() {
		m.back()
	}
	var cmds []tea.Cmd
	for _, i := range items {
		if said, ok := a.answerTo(&i.Prompt, schemas.From{UserID: m.o.UserID}); ok {
			i.sending, i.notice = true, ""
			cmds = append(cmds, m.send(i.Key(), said))
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

// answerTo makes the answer to one request. ok is false if the request does not offer what the
// user chose.
func (a answer) answerTo(p *schemas.Prompt, from schemas.From) (said schemas.Answer, ok bool) {
	if options := p.Request.Offered(); a.option > 0 && a.option <= len(options) {
		said, ok = schemas.Answer{
			Type: schemas.TypeAnswer, SessionID: p.SessionID, PendingID: p.PendingID, Digest: p.Digest, Waiters: p.Waiters,
			OptionID: options[a.option-1].OptionID, Message: a.text, From: from,
		}, true
	} else if a.choice == 0 {
		said, ok = a.said.Answer(p, from)
	} else if all := choices(p); a.choice <= len(all) {
		c := all[a.choice-1]
		said, ok = schemas.Answer{
			Type: schemas.TypeAnswer, SessionID: p.SessionID, PendingID: p.PendingID, Digest: p.Digest, Waiters: p.Waiters,
			OptionID: c.option.OptionID, Scope: c.scope, Reach: c.reach, ForSeconds: c.seconds, From: from,
		}, true
	}
	said.CodeWord = a.word
	return said, ok
}

func (m *model) send(key string, a schemas.Answer) tea.Cmd {
	return m.call(answerTimeout, func(ctx context.Context) tea.Msg {
		d, err := m.o.Desk.Answer(ctx, a)
		return answeredMsg{key, d, err}
	})
}

// answered shows the result of an answer. It shows success only after nod has confirmed the answer.
func (m *model) answered(msg answeredMsg) tea.Cmd {
	if i := m.requests.items[msg.key]; i != nil {
		i.sending = false
		decision := &msg.decision
		if msg.err != nil {
			i.notice, decision = m.refusal(msg.err)
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

// refusal returns a text that explains why an answer or a revocation failed. If err contains the
// decision that nod stored instead, refusal returns that decision too.
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
