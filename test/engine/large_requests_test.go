package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// large returns a request of nearly the greatest permitted length.
func large(id string) schemas.Request {
	r := rig.Deploy("S", id)
	r.ActionDetails = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("<", schemas.MaxRequestBytes-4096))
	return r
}

// Lists contain all pending requests, in pages that each fit into one message.
func TestLargeRequestsAreListed(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestLargeDecisionsReachAnAgentThatAsksAgain sends as large messages")
	env := rig.Start(t)
	for i := range 9 {
		env.Agent("ada").Asks(large(fmt.Sprint("large-", i)))
		env.Agent("ada").Asks(rig.Deploy("S", fmt.Sprint("small-", i)))
	}
	all, err := env.Ann().Pending(env.Ctx, schemas.Query{})
	env.NoError(err)
	env.Len(all, 18)
	seen := map[string]bool{}
	for _, p := range all {
		seen[p.PendingID] = true
	}
	env.Len(seen, 18, "each request is listed once")
}

func TestLargeDecisionsReachAnAgentThatAsksAgain(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	await := schemas.Await{Type: schemas.TypeAwait}
	for i := range 5 {
		q := ada.Asks(rig.Deploy("S", fmt.Sprint("q-", i)))
		a := env.Ann().AnswerTo(q, "allow_once")
		a.UpdatedInput = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("<", schemas.MaxAnswerBytes-4096))
		_, err := env.Ann().Answer(env.Ctx, a)
		env.NoError(err)
		await.Requests = append(await.Requests, schemas.Awaited{SessionID: "S", PendingID: q.PendingID, Revision: q.Receipt.Revision})
	}
	env.Soon("the outbox is idle", env.OutboxIdle)
	heard := make(chan string, 10)
	_, err := ada.Conn.Subscribe(schemas.DecisionSubject("ada", "*", "*"), func(m bus.Message) {
		var d schemas.Decision
		if schemas.Load(m.Data, &d) == nil {
			heard <- d.PendingID
		}
	})
	env.NoError(err)
	env.NoError(ada.Conn.Flush(env.Ctx))
	var reply schemas.AwaitReply
	env.NoError(ada.Conn.CallInto(env.Ctx, schemas.AwaitSubject("ada"), await, &reply))
	told := map[string]bool{}
	for _, r := range reply.Results {
		env.Nil(r.Error)
		if r.Decision != nil {
			told[r.PendingID] = true
		}
	}
	for len(told) < 5 {
		select {
		case id := <-heard:
			told[id] = true
		case <-env.Ctx.Done():
			env.Len(told, 5)
		}
	}
}
