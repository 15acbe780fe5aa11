package agents

import (
	"context"

	"github.com/nodbus/nod/schemas"
)

// Waits records that this process waits for a decision about a request. If the process dies, nod can
// then withdraw the request. The function unregister ends the record. A nil Waits records nothing.
type Waits func(sessionID, pendingID string) (unregister func(), err error)

// Register records that this process waits for r. If that fails, Register calls the function failed with
// the error, and the process waits without a record.
func (w Waits) Register(r *schemas.Request, failed func(error)) (unregister func()) {
	if w == nil {
		return func() {}
	}
	unregister, err := w(r.SessionID, r.PendingID)
	if err != nil {
		failed(err)
		return func() {}
	}
	return unregister
}

// AskAnew calls the function ask with r. If r.Rejoin is set and the end of an earlier process withdrew
// r, the agent has made the same call again. AskAnew then gives r a new id and calls ask once more.
func AskAnew(ctx context.Context, r *schemas.Request, ask func(context.Context, *schemas.Request) (schemas.Decision, error)) (schemas.Decision, error) {
	d, err := ask(ctx, r)
	if err == nil && r.Rejoin && d.Outcome == schemas.Withdrawn && ctx.Err() == nil {
		r.PendingID = NewID()
		d, err = ask(ctx, r)
	}
	return d, err
}
