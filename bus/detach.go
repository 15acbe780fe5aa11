package bus

import (
	"context"
	"fmt"

	"github.com/nodbus/nod/schemas"
)

// Detach reports that an agent no longer waits for the decision of a tool call. The call stays pending.
// If a person allows the call, nod allows the agent's next identical call before the deadline, once. If
// the request is not a tool call, Detach withdraws it.
func (a *Asker) Detach(ctx context.Context, sessionID, pendingID, reason string) error {
	_, err := a.conn.Call(ctx, schemas.WithdrawSubject(a.agent, sessionID, pendingID), schemas.Withdraw{
		Type: schemas.TypeWithdraw, SessionID: sessionID, PendingID: pendingID, Reason: reason, Detach: true,
	})
	if err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	return nil
}

// HostResolved reports that the host went on without waiting for the decisions of some requests. nod
// withdraws those that are pending, and adds to the record of each decided one an aftermath, which
// tells people that the host went on. HostResolved returns the ids of the requests that nod changed.
func (a *Asker) HostResolved(ctx context.Context, p schemas.HostResolved) ([]string, error) {
	p.Type = schemas.TypeHostResolved
	var reply schemas.HostResolvedReply
	if err := a.conn.CallInto(ctx, schemas.HostResolvedSubject(a.agent), p, &reply); err != nil {
		return nil, fmt.Errorf("report that the host went on: %w", err)
	}
	return reply.PendingIDs, nil
}
