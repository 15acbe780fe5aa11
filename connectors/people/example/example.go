// Package example is the smallest complete channel: a notice board on which nod pins questions and
// people leave slips with their answers. Read it before you write a channel. Every channel has the
// same parts:
//
//   - Board is the outside system.
//   - Carrier is the channel: Prompt pins a note, Revise adds the choices, Settle replaces them by
//     the outcome, and Run reads slips.
//
// Every channel follows these rules. Run reads the request again before it answers. An answer counts
// only for the calls that the note showed when the person left the slip. The answer contains the user
// id of that person, and nod decides whether the person may answer. Run removes a slip only after nod
// has stored or refused the answer. All texts about requests come from package people. If a channel
// cannot show a request completely, it must not offer to allow it. A real channel also has limits, and
// reports its faults as *people.Error: see package telegram.
package example

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// Carrier implements people.Carrier on a Board. It has no state of its own, so another worker can
// continue its work.
type Carrier struct{ board *Board }

var (
	_ people.Carrier = Carrier{}
	_ people.Reviser = Carrier{}
)

func New(b *Board) Carrier { return Carrier{b} }

// maxNote is the largest number of characters on a note.
const maxNote = 5000

// Prompt pins a note without choices for the recipient. Revise adds the choices after nod has stored
// the id of the note.
func (c Carrier) Prompt(_ context.Context, p schemas.Prompt) (people.Ref, error) {
	n := note(&p)
	n.Choices = nil
	id, err := c.board.pin(p.Recipient, n)
	return people.Ref(id), err
}

// Settle rewrites the note: the outcome takes the place of the choices.
func (c Carrier) Settle(_ context.Context, ref people.Ref, p schemas.Prompt) error {
	return c.board.rewrite(string(ref), note(&p))
}

// Revise rewrites the note of a pending request, with its choices.
func (c Carrier) Revise(_ context.Context, ref people.Ref, p schemas.Prompt) error {
	return c.board.rewrite(string(ref), note(&p))
}

// note returns the note that shows p. If p is pending, the note has choices.
func note(p *schemas.Prompt) Note {
	now := time.Now()
	text := people.Text(p, now, 0)
	whole := people.Fits(text, maxNote, utf8.RuneCountInString)
	if !whole {
		text = people.Layout(people.Brief(p, now), 0)
	}
	n := Note{Text: text, about: p.Key(), calls: p.Waiters}
	if p.Repeat {
		n.Text = "(This may be pinned here twice: it was pinned again.)\n" + n.Text
	}
	if p.Decision != nil {
		return n
	}
	for _, o := range p.Request.Options {
		once := o.Kind == schemas.AllowOnce && whole || o.Kind == schemas.RejectOnce
		if once { // A lasting allow or denial takes two steps. This board has only one step, so it offers no lasting answers.
			n.Choices = append(n.Choices, Choice{o.Kind, p.Digest + ":" + o.OptionID})
		}
	}
	return n
}

// Run reads slips until ctx ends. A slip stays on the board until nod has stored or refused the
// answer.
func (c Carrier) Run(ctx context.Context, desk people.Desk) error {
	for {
		slip, err := c.board.next(ctx)
		if err != nil {
			return err
		}
		said, err := c.bring(ctx, desk, slip)
		if err != nil {
			return err
		}
		c.board.done(slip, said)
	}
}

// bring submits the answer on a slip to nod, and returns the reply for the person who left the
// slip. If it returns an error, the slip stays on the board.
func (c Carrier) bring(ctx context.Context, desk people.Desk, s Slip) (string, error) {
	waiting := time.AfterFunc(time.Second, func() { c.board.tell(s.By, people.Recording) })
	defer waiting.Stop()
	now := time.Now()
	refuse := func(err error) (string, error) {
		var e *schemas.Error
		if !errors.As(err, &e) || e.Code == schemas.CodeUnavailable {
			return "", fmt.Errorf("submit a slip from the board: %w", err)
		}
		return people.Refusal(e, now), nil
	}
	session, id, _ := strings.Cut(c.board.about(s.Note), ".")
	p, page, err := desk.Show(ctx, session, id)
	if err != nil {
		return refuse(err)
	}
	now = page.Now
	a, ok := read(&p, s)
	if !ok {
		return "Nothing changed: that is none of the choices.", nil
	}
	d, err := desk.Answer(ctx, a)
	var e *schemas.Error
	if errors.As(err, &e) && e.Decision() != nil {
		c.ended(s.Note, p, e.Decision())
	}
	if err != nil {
		return refuse(err)
	}
	c.ended(s.Note, p, &d)
	if p.Decision != nil {
		return people.AlreadyDecided(&d, now), nil
	}
	return people.Recorded(&d, &p), nil
}

// ended removes the choices from the answered note at once. The worker calls Settle for the same
// purpose, but possibly much later.
func (c Carrier) ended(id string, p schemas.Prompt, d *schemas.Decision) {
	p.Decision = d
	_ = c.board.rewrite(id, note(&p)) // if the edit fails, the next slip under the note tries again
}

// read returns the answer on a slip. The slip must contain one of the choices on p's note, or a yes or
// no. For any other slip read returns false.
func read(p *schemas.Prompt, s Slip) (schemas.Answer, bool) {
	open := *p
	open.Decision = nil
	from := schemas.From{UserID: s.By, MessageID: s.Note}
	said := people.ReadText(s.Says)
	for _, choice := range note(&open).Choices {
		digest, option, _ := strings.Cut(choice.Token, ":")
		word := map[schemas.OptionKind]people.Word{schemas.AllowOnce: people.Yes, schemas.RejectOnce: people.No}[choice.Kind]
		if s.Says == choice.Token || said.Word == word && said.Code == "" {
			return schemas.Answer{SessionID: p.SessionID, PendingID: p.PendingID, Digest: digest, Waiters: s.calls, OptionID: option, From: from}, true
		}
	}
	return schemas.Answer{}, false
}

// ref returns the id of the n-th note.
func ref(n int) string { return "note-" + strconv.Itoa(n) }
