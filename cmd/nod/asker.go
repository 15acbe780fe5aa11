package main

import (
	"context"
	"time"

	nod "github.com/nodbus/nod"
	"github.com/nodbus/nod/schemas"
)

// asker is the client as a way in for agents uses it.
type asker struct {
	*nod.Client
	// patience bounds how long nod may take to store a request, not how long a
	// person may take to answer it; 0 is as long as the caller waits.
	patience time.Duration
}

// Ask waits for the one decision, whatever it is: a no is no error here. When
// ctx ends the request stays open, for Withdraw to take back.
func (a asker) Ask(ctx context.Context, r schemas.Request) (schemas.Decision, error) {
	storing := ctx
	if a.patience > 0 {
		var cancel context.CancelFunc
		storing, cancel = context.WithTimeout(ctx, a.patience)
		defer cancel()
	}
	asked, err := a.Submit(storing, r)
	if err != nil {
		return schemas.Decision{}, err
	}
	defer asked.Drop()
	return asked.Await(ctx)
}

// Withdraw takes a request back; what it was decided as does not matter.
func (a asker) Withdraw(ctx context.Context, sessionID, pendingID, reason string) error {
	_, err := a.Client.Withdraw(ctx, sessionID, pendingID, reason)
	return err
}
