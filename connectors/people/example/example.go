// Package example is the smallest whole connector: a notice board on which nod
// pins questions and people leave slips. Read it to write one of your own; the
// parts are the same on every channel.
//
//   - Board is the outside system. It is here only so that there is one.
//   - Carrier is the connector: Prompt pins, Settle edits, Run brings slips in.
//
// The rules that it shows: whatever a slip says is looked up and compared with
// what was pinned, and is about the calls that the note counted when it was left; the person who left it is named, and nod decides whether
// they may; a slip is thrown away only when nod took or refused it; what is
// shown comes from package people, and what cannot be shown whole cannot be
// allowed. What a real channel adds is its own limits and faults, as
// *people.Error: see package telegram.
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

// Carrier is people.Carrier for a Board. It keeps nothing: any worker can go on
// where another stopped.
type Carrier struct{ board *Board }

var (
	_ people.Carrier = Carrier{}
	_ people.Reviser = Carrier{}
)

// New makes a carrier.
func New(b *Board) Carrier { return Carrier{b} }

// maxNote is how many characters a note holds.
const maxNote = 5000

// Prompt pins a note for one person.
func (c Carrier) Prompt(_ context.Context, p schemas.Prompt) (people.Ref, error) {
	id, err := c.board.pin(p.Recipient, note(&p))
	return people.Ref(id), err
}

// Settle rewrites the note: the outcome stays, the choices go.
func (c Carrier) Settle(_ context.Context, ref people.Ref, p schemas.Prompt) error {
	return c.board.rewrite(string(ref), note(&p))
}

// Revise rewrites the note of a question that is open still, which keeps its choices.
func (c Carrier) Revise(_ context.Context, ref people.Ref, p schemas.Prompt) error {
	return c.board.rewrite(string(ref), note(&p))
}

// note is a prompt as the board shows it.
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
		if once { // what lasts takes more than one step, which this board has not
			n.Choices = append(n.Choices, Choice{o.Kind, p.Digest + ":" + o.OptionID})
		}
	}
	return n
}

// Run takes slips in until ctx ends. Each stays on the board until nod took it
// or refused it for good.
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

// bring brings one slip to nod, and returns what its writer is to read; an
// error leaves the slip where it is.
func (c Carrier) bring(ctx context.Context, desk people.Desk, s Slip) (string, error) {
	waiting := time.AfterFunc(time.Second, func() { c.board.tell(s.By, people.Recording) })
	defer waiting.Stop()
	now := time.Now()
	refuse := func(err error) (string, error) {
		var e *schemas.Error
		if !errors.As(err, &e) || e.Code == schemas.CodeUnavailable {
			return "", fmt.Errorf("bring a slip from the board: %w", err)
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
		return people.Already(&d, now), nil
	}
	return people.Recorded(&d, &p), nil
}

// ended takes the choices off the note that was answered. It may be one that nod does
// not know of, because the worker that pinned it was killed.
func (c Carrier) ended(id string, p schemas.Prompt, d *schemas.Decision) {
	p.Decision = d
	_ = c.board.rewrite(id, note(&p)) // the next slip finds it again
}

// read is the answer that a slip stands for, if it stands for one: a choice
// that this very request was pinned with, or a whole yes or no.
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

// ref makes the id of the n-th note.
func ref(n int) string { return "note-" + strconv.Itoa(n) }
