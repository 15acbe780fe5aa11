package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nodbus/nod/connectors/people"
	"github.com/nodbus/nod/schemas"
)

// carrier implements people.Carrier and keeps no state. A user answers by typing a line that the prompt
// shows. The line contains all parts of an answer, so it works even after a restart.
type carrier struct {
	user  string // the approver who types; in a real channel, each message names its sender
	lines <-chan string
	mu    sync.Mutex // guards out, because the worker calls Prompt and Settle from several goroutines
	out   io.Writer
}

// Prompt writes a prompt and, for each choice, the line to type. Each line contains the prompt's digest
// and number of waiters, because an answer must contain both values.
func (c *carrier) Prompt(_ context.Context, p schemas.Prompt) (people.Ref, error) {
	text := people.Text(&p, time.Now(), 0)
	if p.Repeat {
		text = "(This prompt may be here twice.)\n" + text
	}
	for _, o := range p.Request.Options {
		if p.Decision == nil && (o.Kind == schemas.AllowOnce || o.Kind == schemas.RejectOnce) {
			text += fmt.Sprintf("\n%s: %s %s %s %d %s", o.Kind, p.SessionID, p.PendingID, p.Digest, p.Waiters, o.OptionID)
		}
	}
	return people.Ref(p.PendingID), c.write(text) // a channel with message ids would return the message's id here
}

// Settle writes the outcome as a new message, because it cannot edit a written line.
func (c *carrier) Settle(_ context.Context, _ people.Ref, p schemas.Prompt) error {
	return c.write(p.PendingID + ": " + people.Outcome(p.Decision, &p))
}

// Run sends answers to nod until ctx ends. It repeats an answer each second until nod has
// stored or refused it.
func (c *carrier) Run(ctx context.Context, desk people.Desk) error {
	for {
		select {
		case line := <-c.lines:
			for c.answer(ctx, desk, line) != nil && ctx.Err() == nil {
				time.Sleep(time.Second)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// answer sends one line to nod. An error means that nod may accept the same line later.
func (c *carrier) answer(ctx context.Context, desk people.Desk, line string) error {
	a := schemas.Answer{From: schemas.From{UserID: c.user}}
	if _, err := fmt.Sscan(line, &a.SessionID, &a.PendingID, &a.Digest, &a.Waiters, &a.OptionID); err != nil {
		return c.write("type one of the lines that are shown with a prompt")
	}
	_, err := desk.Answer(ctx, a)
	var refused *schemas.Error
	if errors.As(err, &refused) && refused.Code != schemas.CodeUnavailable {
		return c.write(people.Refusal(refused, time.Now()))
	}
	return err
}

func (c *carrier) write(text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := fmt.Fprintln(c.out, text)
	return err
}
