package test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// large is a request of nearly the greatest length allowed.
func large(id string) schemas.Request {
	r := deploy("S", id)
	r.ActionDetails = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("<", schemas.MaxRequestBytes-4096))
	return r
}

// All pending requests are listed, in pages that each fit one message.
func TestLargeRequestsAreListed(t *testing.T) {
	t.Parallel()
	env := start(t)
	for i := range 9 {
		env.Agent("ada").Asks(large(fmt.Sprint("large-", i)))
		env.Agent("ada").Asks(deploy("S", fmt.Sprint("small-", i)))
	}
	all, err := env.Ann().Pending(env.ctx, schemas.Query{})
	env.NoError(err)
	env.Len(all, 18)
	seen := map[string]bool{}
	for _, p := range all {
		seen[p.PendingID] = true
	}
	env.Len(seen, 18, "each request is listed once")
}

// Decisions too large together for one reply still reach an agent that asks again.
func TestLargeDecisionsAreToldToWhoAsksAgain(t *testing.T) {
	t.Parallel()
	env := start(t)
	ada := env.Agent("ada")
	await := schemas.Await{Type: schemas.TypeAwait}
	for i := range 5 {
		q := ada.Asks(deploy("S", fmt.Sprint("q-", i)))
		a := env.Ann().answer(q, "allow_once")
		a.UpdatedInput = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("<", schemas.MaxAnswerBytes-4096))
		_, err := env.Ann().Answer(env.ctx, a)
		env.NoError(err)
		await.Requests = append(await.Requests, schemas.Awaited{SessionID: "S", PendingID: q.PendingID, Revision: q.Receipt.Revision})
	}
	env.soon("the outbox is idle", env.outboxIdle)
	heard := make(chan string, 10)
	_, err := ada.conn.Subscribe(schemas.DecisionSubject("ada", "*", "*"), func(m bus.Message) {
		var d schemas.Decision
		if schemas.Load(m.Data, &d) == nil {
			heard <- d.PendingID
		}
	})
	env.NoError(err)
	env.NoError(ada.conn.Flush(env.ctx))
	var reply schemas.AwaitReply
	env.NoError(ada.conn.CallInto(env.ctx, schemas.AwaitSubject("ada"), await, &reply))
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
		case <-env.ctx.Done():
			env.Len(told, 5)
		}
	}
}
