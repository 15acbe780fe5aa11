// Package example is the smallest complete channel: a notice board on which nod pins
// questions and people leave slips with their answers. Read it before you write a channel
// of your own; every channel has the same parts.
//
//   - Board is the outside system.
//   - Carrier is the channel: Prompt pins a note, Revise adds its choices, Settle rewrites it,
//     and Run takes slips.
//
// Every channel follows these rules. Run looks up the request that a slip answers. An answer
// counts only for the calls that the note showed when the slip was left. The answer contains
// the user id of the person who left the slip; nod decides whether this person may answer. A
// slip is removed only after nod has stored or refused its answer. All texts about requests
// come from package people, and a request that is not shown whole cannot be allowed. A real
// channel also has limits of its own, and reports its faults as *people.Error: see package
// telegram.
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

// Carrier implements people.Carrier on a Board. It keeps no state, so any worker can
// continue the work of another.
type Carrier struct{ board *Board }

var (
	_ people.Carrier = Carrier{}
	_ people.Reviser = Carrier{}
)

// New makes a carrier for b.
func New(b *Board) Carrier { return Carrier{b} }

// maxNote is the greatest number of characters on a note.
const maxNote = 5000

// Prompt pins a note without choices for the recipient. Revise adds the choices once nod has
// stored the note's id.
func (c Carrier) Prompt(_ context.Context, p schemas.Prompt) (people.Ref, error) {
	n := note(&p)
	n.Choices = nil
	id, err := c.board.pin(p.Recipient, n)
	return people.Ref(id), err
}

// Settle rewrites the note: the outcome replaces the choices.
func (c Carrier) Settle(_ context.Context, ref people.Ref, p schemas.Prompt) error {
	return c.board.rewrite(string(ref), note(&p))
}

// Revise rewrites the note of a pending request, with its choices.
func (c Carrier) Revise(_ context.Context, ref people.Ref, p schemas.Prompt) error {
	return c.board.rewrite(string(ref), note(&p))
}

// note returns the note that shows p, with the choices of a pending request.
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
		if once { // A lasting allow or denial needs a second step, which this board does not have.
			n.Choices = append(n.Choices, Choice{o.Kind, p.Digest + ":" + o.OptionID})
		}
	}
	return n
}

// Run takes slips until ctx ends. A slip stays on the board until nod has stored or
// refused its answer.
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

// bring submits the answer of a slip to nod and returns the reply to the slip's writer.
// After an error the slip stays on the board.
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

// ended removes the choices from the answered note at once. Settle does the same when its turn
// comes, which may be much later.
func (c Carrier) ended(id string, p schemas.Prompt, d *schemas.Decision) {
	p.Decision = d
	_ = c.board.rewrite(id, note(&p)) // if rewrite fails, the next slip under this note tries again
}

// read returns the answer that a slip gives to p: one of the choices that p's note offered,
// or a plain yes or no. It returns false for any other slip.
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
