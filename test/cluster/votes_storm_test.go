package cluster

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// On three engines, two people allow each request at the same time, while the leader of the stream with the
// records keeps changing. For some requests, one of the two people never answers. A request is allowed by
// exactly two people, or stays pending with one vote.
func TestVotesWhileTheLeaderChanges(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestDecidingAtTheDeadlineWhileTheLeaderChanges is such a storm, and TestRacingVotesMakeOneDecision races votes")
	const requests = 60
	settings := strings.Replace(rig.Everybody, `"permissions": {`, `"permissions": {"confirm": [{"risk": "low", "votes": 2}], `, 1)
	n := newNodes(t, settings)
	asker := bus.NewAsker(n.conn(1, "_INBOX.agent.ada"), "ada")
	t.Cleanup(asker.Close)
	desks := map[string]*connector.Desk{
		"ann": connector.NewDesk(n.conn(2, "_INBOX.connector.terminal"), "terminal"),
		"bob": connector.NewDesk(n.conn(0, "_INBOX.connector.web"), "web"),
	}
	store, err := bus.OpenStore(n.ctx, n.conn(1, "_INBOX.looking"), 3)
	require.NoError(t, err)
	stop := n.stepDowns()
	var all sync.WaitGroup
	for i := range requests {
		all.Go(func() {
			asked, err := asker.Submit(n.ctx, rig.Deploy(fmt.Sprint("S", i%5), fmt.Sprint("vote-", i)))
			if !assert.NoError(t, err) {
				return
			}
			var voters sync.WaitGroup
			for who, desk := range desks {
				if i%4 == 0 && who == "bob" {
					continue
				}
				voters.Go(func() {
					session, id := schemas.SplitKey(asked.Key)
					_, err := desk.Answer(n.ctx, schemas.Answer{SessionID: session, PendingID: id, Digest: asked.Receipt.Digest, OptionID: "allow_once", From: schemas.From{UserID: who}})
					assert.True(t, err == nil || errors.Is(err, &schemas.Error{Code: schemas.CodeVoted}), "%v", err)
				})
			}
			voters.Wait()
			entry, err := store.Records.Get(n.ctx, asked.Key)
			if !assert.NoError(t, err) {
				return
			}
			if i%4 == 0 {
				assert.Nil(t, entry.Record.Decision)
				assert.Equal(t, []string{"Ann"}, schemas.Voters(entry.Record.Votes))
				return
			}
			d, err := asked.Await(n.ctx)
			assert.NoError(t, err)
			assert.Equal(t, schemas.Allowed, d.Outcome)
			assert.ElementsMatch(t, []string{"Ann", "Bob"}, schemas.Voters(d.Votes))
			assert.Equal(t, entry.Record.Decision.DecisionID, d.DecisionID)
		})
	}
	all.Wait()
	times := stop()
	t.Log(times, "step-downs")
	require.NotZero(t, times)
}

// On three engines, requests go through their escalation steps, while the leader of the stream with the
// records keeps changing. Each step comes, and no step decides a request or changes its deadline.
func TestEscalationsWhileTheLeaderChanges(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestDecidingAtTheDeadlineWhileTheLeaderChanges is such a storm")
	settings := strings.Replace(rig.Everybody, `"approvers": {`, `"approvers": {"escalation": [{"risk": "low", "steps": [{"to": ["Ann"]}, {"to": ["Bob"], "after_seconds": 2}]}], `, 1)
	n := newNodes(t, settings)
	asker := bus.NewAsker(n.conn(1, "_INBOX.agent.ada"), "ada")
	t.Cleanup(asker.Close)
	store, err := bus.OpenStore(n.ctx, n.conn(1, "_INBOX.looking"), 3)
	require.NoError(t, err)
	stop := n.stepDowns()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			asked, err := asker.Submit(n.ctx, rig.Deploy(fmt.Sprint("S", i%5), fmt.Sprint("step-", i)))
			if !assert.NoError(t, err) {
				return
			}
			assert.Eventually(t, func() bool {
				entry, err := store.Records.Get(n.ctx, asked.Key)
				return err == nil && entry.Record.NextEvent.Kind == schemas.EventDeadline
			}, rig.Patience*2, rig.Tick)
			entry, err := store.Records.Get(n.ctx, asked.Key)
			if !assert.NoError(t, err) || !assert.Len(t, entry.Record.Routes, 2) {
				return
			}
			assert.Nil(t, entry.Record.Decision)
			assert.Equal(t, 2, entry.Record.Routes[1].AfterSeconds)
			assert.True(t, asked.Receipt.Deadline.Equal(entry.Record.Deadline))
		})
	}
	all.Wait()
	times := stop()
	t.Log(times, "step-downs")
	require.NotZero(t, times)
}
