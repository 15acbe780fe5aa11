package bus

import (
	"context"
	"fmt"

	"github.com/nodbus/nod/schemas"
)

// Find returns a request that was sent earlier, perhaps by another process. The caller must call Await or
// Drop on the request. The error is NOT_FOUND if nod does not know the request, or if another agent sent
// it.
func (a *Asker) Find(ctx context.Context, sessionID, pendingID string) (*OpenRequest, error) {
	if !schemas.ValidID(sessionID) || !schemas.ValidID(pendingID) {
		return nil, badIDs()
	}
	asked, err := a.listen(sessionID, pendingID)
	if err != nil {
		return nil, err
	}
	which := schemas.Awaited{SessionID: sessionID, PendingID: pendingID}
	var reply schemas.AwaitReply
	err = a.conn.CallInto(ctx, schemas.AwaitSubject(a.agent), schemas.Await{Type: schemas.TypeAwait, Requests: []schemas.Awaited{which}}, &reply)
	switch {
	case err != nil:
	case len(reply.Results) != 1:
		err = schemas.Errorf(schemas.CodeInternal, "nod replied about %d requests, not about one", len(reply.Results))
	case reply.Results[0].Error != nil:
		err = reply.Results[0].Error
	}
	if err != nil {
		asked.unsub()
		return nil, fmt.Errorf("find: %w", err)
	}
	asked.Receipt = schemas.Receipt{SessionID: sessionID, PendingID: pendingID, Revision: reply.Results[0].Revision}
	if d := reply.Results[0].Decision; d != nil {
		asked.decide(*d)
	}
	a.watch(asked)
	return asked, nil
}
