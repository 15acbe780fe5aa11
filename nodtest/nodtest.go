// Package nodtest runs a complete nod in a test's process and answers its prompts. Tests use it to
// check how a program acts if its request is allowed, denied or not answered.
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

const within = 30 * time.Second

// person is the approver's user id.
const person = "nodtest"

// Answer is the approver's answer to a prompt. The zero Answer means that the approver is silent, so
// the request times out at its deadline.
type Answer struct {
	Kind    schemas.OptionKind
	Message string          // the message for the agent
	Input   json.RawMessage // the input that replaces the tool's input; nil keeps the tool's input
}

// Allow returns an answer that allows the call once.
func Allow() Answer { return Answer{Kind: schemas.AllowOnce} }

// Deny returns an answer that denies the call once, with a message for the agent.
func Deny(message string) Answer { return Answer{Kind: schemas.RejectOnce, Message: message} }

// Start starts a nod that stops when the test ends, and returns a client of this nod. nod applies its
// default rules. For each request that no rule decides, it calls the function answer, possibly from
// several goroutines at once. Identical requests do not share a prompt, and no denial is remembered.
// If nod cannot start or stop, or an answer cannot be sent, the test fails.
func Start(t testing.TB, answer func(schemas.Prompt) Answer) *nod.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	quiet, dir := slog.New(slog.DiscardHandler), t.TempDir()
	n, err := embed.Start(ctx, embed.Options{
		DataDir: dir, SyncInterval: time.Minute, EngineAlone: true, Log: quiet,
		// Each request gets a prompt of its own, because the settings turn off joining and remembered
		// denials.
		Settings: []byte(`{"permissions":{"join_identical":false,"remember_denials_seconds":0,"open_prompts":0},"approvers":{"people":[{"name":"nodtest","identities":[{"connector":"terminal","user_id":"nodtest"}]}]}}`),
	})
	if err != nil {
		t.Fatalf("start nod: %v", err)
	}
	sys := actors.NewSystem(quiet)
	conn, err := n.Connect(ctx, roles.ConnectorID(schemas.ConnectorTerminal))
	if err != nil {
		t.Fatalf("connect the approver: %v", err)
	}
	approver := &approver{t: t, desk: connector.NewDesk(conn, schemas.ConnectorTerminal), answer: answer}
	viewer, err := connector.View(ctx, sys, conn, schemas.ConnectorTerminal, quiet, approver.show)
	if err != nil {
		t.Fatalf("watch the pending requests: %v", err)
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
			t.Errorf("stop watching the pending requests: %v", err)
		}
		conn.Close()
		sys.Stop()
		if err := n.Stop(ctx); err != nil {
			t.Errorf("stop nod: %v", err)
		}
	})
	return client
}

// approver calls the function answer for each prompt, and sends the result to nod.
type approver struct {
	t      testing.TB
	desk   *connector.Desk
	answer func(schemas.Prompt) Answer
}

func (a *approver) show(p schemas.Prompt) {
	if p.Decision != nil {
		return
	}
	answer := a.answer(p)
	if answer.Kind == "" {
		return
	}
	option, ok := p.Request.OptionOfKind(answer.Kind)
	if !ok {
		a.t.Errorf("nodtest: %s offers no option of the kind %s", p.PendingID, answer.Kind)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	_, err := a.desk.Answer(ctx, schemas.Answer{
		SessionID: p.SessionID, PendingID: p.PendingID, Digest: p.Digest, Waiters: p.Waiters, OptionID: option.OptionID,
		Message: answer.Message, UpdatedInput: answer.Input, From: schemas.From{UserID: person},
	})
	if err != nil {
		a.t.Errorf("nodtest: answer %s: %v", p.PendingID, err)
	}
}
