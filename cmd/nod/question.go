package main

import (
	"context"
	"fmt"
	"time"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/schemas"
)

// testSession is the session of questions that only try nod out.
const testSession = "nod-test"

// testQuestion asks a question that nothing hangs on, and waits until it is
// answered, but not for longer than wait. The answer counts, whatever it is.
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
	asked, err := client.Submit(ctx, r)
	if err != nil {
		return schemas.Decision{}, fmt.Errorf("ask a test question: %w", err)
	}
	r.PendingID = asked.PendingID
	if asked.Receipt.Revision != 0 {
		fmt.Fprintf(e.stderr, "A question is on its way to you. Answer it where you are asked, or with: nod allow %s\n", r.PendingID)
	}
	waiting, cancel := context.WithTimeout(e.ctx, wait)
	defer cancel()
	d, err := asked.Await(waiting)
	if waiting.Err() != nil && err != nil {
		return e.takeBackTest(client, r, wait)
	}
	return d, err
}

// takeBackTest withdraws a test that nobody answered; an answer that came
// first counts.
func (e *env) takeBackTest(client *nod.Client, r schemas.Request, waited time.Duration) (schemas.Decision, error) {
	d, err := (&askCmd{}).takeBack(client, r)
	if err == nil && d.By.Kind == schemas.ByHuman {
		return d, nil
	}
	if e.ctx.Err() != nil {
		return d, fmt.Errorf("the test question was taken back unanswered")
	}
	return d, fmt.Errorf("nobody answered the test question within %s: see who may answer and where (nod doctor)", schemas.Words(waited))
}
