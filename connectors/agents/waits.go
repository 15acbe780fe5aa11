package agents

import "github.com/nodbus/nod/schemas"

// Waits records that this process waits for a decision about a request, so that nod can withdraw the request
// if the process dies. unregister ends the record. A nil Waits records nothing.
type Waits func(sessionID, pendingID string) (unregister func(), err error)

// Register records that this process waits for r. If that fails, Register calls failed with the error, and
// the process waits without a record.
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
