package test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// Of four answers, a withdrawal and the deadline, all at once, one wins; every
// loser is told the winner, and the agent hears it and nothing else.
func TestOneWinner(t *testing.T) {
	requests := 1000
	if testing.Short() {
		requests = 200
		t.Log("the short form: 200 requests in place of 1,000")
	}
	w := newWorld(t, "")
	seconds := 3
	_, err := w.owner().ChangeSession(w.ctx, schemas.SessionChange{SessionID: "race", TimeoutSeconds: &seconds})
	require.NoError(t, err)
	agent, desk := w.agent("local"), w.desk()

	var mu sync.Mutex
	told := map[string]map[string]bool{} // what was published, by request
	listen := w.connect(roles.AgentID("local"))
	_, err = listen.Subscribe(schemas.DecisionSubject("local", "race", "*"), func(_ string, data []byte) {
		var d schemas.Decision
		if assert.NoError(t, schemas.Decode(data, &d)) {
			mu.Lock()
			defer mu.Unlock()
			if told[d.PendingID] == nil {
				told[d.PendingID] = map[string]bool{}
			}
			told[d.PendingID][d.DecisionID] = true
		}
	})
	require.NoError(t, err)
	require.NoError(t, listen.Flush(w.ctx))

	outcomes := map[schemas.Outcome]int{}
	var all sync.WaitGroup
	room := make(chan struct{}, 250)
	for range requests {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			asked, err := agent.Submit(w.ctx, bash("race", "", "rm -rf build"))
			if !assert.NoError(t, err) {
				return
			}
			stored := raceOne(t, w.ctx, agent, desk, asked)
			mu.Lock()
			defer mu.Unlock()
			outcomes[stored]++
		})
	}
	all.Wait()
	t.Log(outcomes)
	require.GreaterOrEqual(t, len(outcomes), 2, "it was no race")
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, told, requests)
	for id, decisions := range told {
		require.Len(t, decisions, 1, "%s was told two decisions", id)
	}
}

// answerer is the part of a desk that races.
type answerer interface {
	Answer(context.Context, schemas.Answer) (schemas.Decision, error)
}

// raceOne has everybody decide one request around its deadline, checks that all
// were told one decision, and returns its outcome.
func raceOne(t *testing.T, ctx context.Context, agent *bus.Asker, desk answerer, asked *bus.Asked) schemas.Outcome {
	if !assert.Equal(t, schemas.TierSession, asked.Receipt.Tier) {
		return ""
	}
	said := make(chan *schemas.Decision, 5)
	var racers sync.WaitGroup
	race := func(act func() (schemas.Decision, error)) {
		racers.Go(func() {
			start := time.NewTimer(time.Until(asked.Receipt.Deadline) + rand.N(120*time.Millisecond) - 40*time.Millisecond)
			<-start.C
			d, err := act()
			var e *schemas.Error
			switch {
			case err == nil:
				said <- &d
			case errors.As(err, &e) && (e.Code == schemas.CodeConflict || e.Code == schemas.CodeStale):
				if assert.NotNil(t, e.Decision(), "a loser is told the decision: %v", err) {
					said <- e.Decision()
				}
			default:
				assert.NoError(t, err)
			}
		})
	}
	for _, a := range []schemas.Answer{
		answer(asked.Receipt, "ann", "allow_once"), answer(asked.Receipt, "ann", "reject_once"),
		answer(asked.Receipt, "bob", "allow_once"), answer(asked.Receipt, "bob", "reject_once"),
	} {
		race(func() (schemas.Decision, error) { return desk.Answer(ctx, a) })
	}
	race(func() (schemas.Decision, error) {
		return agent.Withdraw(ctx, asked.Receipt.SessionID, asked.Receipt.PendingID, "raced")
	})
	heard, err := asked.Await(ctx)
	assert.NoError(t, err)
	racers.Wait()
	close(said)
	for d := range said {
		assert.Equal(t, heard.DecisionID, d.DecisionID, "one decision, told to all")
	}
	return heard.Outcome
}
