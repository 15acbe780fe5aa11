package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/schemas"
)

const testSession = "nod-test"

// testQuestion sends a harmless request and waits for its decision, at most for the duration wait. The
// test passes if a person allows or denies the request.
func (e *env) testQuestion(wait time.Duration) (schemas.Decision, error) {
	ctx, client, done, err := e.agent("local")
	if err != nil {
		return schemas.Decision{}, err
	}
	defer done()
	r := schemas.Request{
		SessionID: testSession, Kind: schemas.KindToolCall, Title: "A test of nod", ToolName: "nod-test",
		ActionType: schemas.ActionOther, ActionDetails: []byte(`{"note":"Nothing happens, whatever you answer."}`),
		Reason: "see that questions reach you", AgentName: "nod",
	}
	open, err := client.Submit(ctx, r)
	if err != nil {
		return schemas.Decision{}, fmt.Errorf("send a test question: %w", err)
	}
	r.PendingID = open.PendingID
	if open.Receipt.Revision != 0 {
		fmt.Fprintf(e.stderr, "A question is on its way to you. Answer it where you are asked, or in another terminal with: nod allow %s\n", r.PendingID)
	}
	waiting, cancel := context.WithTimeout(e.ctx, wait)
	defer cancel()
	d, err := open.Await(waiting)
	if waiting.Err() != nil && err != nil {
		return e.takeBackTest(client, r, wait)
	}
	return d, err
}

// takeBackTest withdraws an unanswered test question and returns an error. If a person has answered in
// the meantime, it returns that decision instead.
func (e *env) takeBackTest(client *nod.Client, r schemas.Request, waited time.Duration) (schemas.Decision, error) {
	d, err := takeBack(client, &r)
	if err == nil && d.By.Kind == schemas.ByHuman {
		return d, nil
	}
	if e.ctx.Err() != nil {
		return d, errors.New("the test question was withdrawn unanswered")
	}
	return d, fmt.Errorf("no approver answered the test question within %s: check the approvers and their channels with nod doctor", schemas.FormatDuration(waited))
}
