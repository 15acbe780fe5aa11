// Package nodtest runs a whole nod in a test's process and answers its
// questions: what a program does on a yes, a no, or silence is tested against
// the real thing.
package nodtest

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/schemas"
)

// within bounds starting, stopping and answering.
const within = 30 * time.Second

// person answers every question.
const person = "nodtest"

// Answer is what the person says to a question. The zero Answer is silence: the
// question waits until its deadline.
type Answer struct {
	Kind    schemas.OptionKind
	Message string
	Input   json.RawMessage // allows with this input instead
}

// Allow allows the call once.
func Allow() Answer { return Answer{Kind: schemas.AllowOnce} }

// Deny denies it, and tells the agent why.
func Deny(message string) Answer { return Answer{Kind: schemas.RejectOnce, Message: message} }

// Start starts a nod that ends with the test, and returns a client of it. What
// no rule settles is asked of answer, which is called from any goroutine; the
// rules are those of a nod without settings. An answer that could not be given
// fails the test.
func Start(t testing.TB, answer func(schemas.Prompt) Answer) *nod.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	quiet, dir := slog.New(slog.DiscardHandler), t.TempDir()
	n, err := embed.Start(ctx, embed.Options{
		DataDir: dir, SyncInterval: time.Minute, EngineAlone: true, Log: quiet,
		// Every question is asked, whatever was answered before.
		Settings: []byte(`{"permissions":{"join_identical":false,"remember_denials_seconds":0,"open_prompts":0},"approvers":{"people":[{"name":"nodtest","identities":[{"connector":"terminal","user_id":"nodtest"}]}]}}`),
	})
	if err != nil {
		t.Fatalf("start nod: %v", err)
	}
	sys := actors.NewSystem(quiet)
	conn, err := n.Connect(ctx, roles.ConnectorID(schemas.ConnectorTerminal))
	if err != nil {
		t.Fatalf("connect the person who answers: %v", err)
	}
	asked := &asked{t: t, desk: connector.NewDesk(conn, schemas.ConnectorTerminal), answer: answer}
	viewer, err := connector.View(ctx, sys, conn, schemas.ConnectorTerminal, quiet, asked.show)
	if err != nil {
		t.Fatalf("look for questions: %v", err)
	}
	client, err := nod.Connect(ctx, nod.Options{Place: bus.Place{DataDir: dir}, Log: quiet})
	if err != nil {
		t.Fatalf("connect the agent: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		client.Close()
		if err := viewer.Stop(ctx); err != nil {
			t.Errorf("stop looking for questions: %v", err)
		}
		conn.Close()
		sys.Stop()
		if err := n.Stop(ctx); err != nil {
			t.Errorf("stop nod: %v", err)
		}
	})
	return client
}

// asked answers what it is shown.
type asked struct {
	t      testing.TB
	desk   *connector.Desk
	answer func(schemas.Prompt) Answer
}

func (a *asked) show(p schemas.Prompt) {
	if p.Decision != nil {
		return
	}
	said := a.answer(p)
	if said.Kind == "" {
		return
	}
	option, ok := p.Request.OptionOfKind(said.Kind)
	if !ok {
		a.t.Errorf("nodtest: %s offers no option of the kind %s", p.PendingID, said.Kind)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	_, err := a.desk.Answer(ctx, schemas.Answer{
		SessionID: p.SessionID, PendingID: p.PendingID, Digest: p.Digest, Waiters: p.Waiters, OptionID: option.OptionID,
		Message: said.Message, UpdatedInput: said.Input, From: schemas.From{UserID: person},
	})
	if err != nil {
		a.t.Errorf("nodtest: answer %s: %v", p.PendingID, err)
	}
}
