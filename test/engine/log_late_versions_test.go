package engine

import (
	"testing"
	"time"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// Hours after its decision, a record is written again several times, each time with one more aftermath, which
// is news of what became of the call. For each version, the engine adds all log entries of the request again,
// and the broker no longer recognizes them as duplicates. The log still has each entry once.
func TestLateVersionsOfARecordAreLoggedOnce(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	log, err := env.Raw.Stream(env.Ctx, "permission_log")
	env.NoError(err)
	config := log.CachedInfo().Config
	config.Duplicates = 100 * time.Millisecond
	_, err = env.Raw.UpdateStream(env.Ctx, config)
	env.NoError(err)

	at := time.Now().Add(-3 * time.Hour).UTC().Truncate(time.Millisecond)
	r := rig.Deploy("S", "old")
	r.Type, r.CreatedAt = schemas.TypeRequest, at
	body, err := schemas.Encode(&r)
	env.NoError(err)
	decision := schemas.Decision{
		Type: schemas.TypeDecision, SessionID: "S", PendingID: "old", DecisionID: bus.NewID(), Outcome: schemas.Denied,
		By: schemas.By{Kind: schemas.ByHuman, Name: "Ann", Connector: "terminal"}, Digest: "d", DecidedAt: at.Add(time.Minute),
		Votes: []schemas.Vote{{Name: "Ann", Connector: "terminal", UserID: "ann", OptionID: "reject_once", At: at.Add(time.Second)}},
	}
	entry := bus.Entry{Key: "S.old", Record: schemas.Record{
		Type: schemas.TypeRecord, Agent: "ada", Request: body, Digest: "d", Risk: schemas.RiskLow, Tier: schemas.TierRequest, Deadline: at.Add(time.Hour), TimeoutSeconds: 3600,
		Routes: []schemas.Route{}, Votes: []schemas.Vote{}, Decision: &decision,
		Waiters: []schemas.Waiter{{PendingID: "old", Digest: "d", Deadline: at.Add(time.Hour), TimeoutSeconds: 3600}},
	}}
	entry.Revision, err = env.Store.Records.CreateDecided(env.Ctx, entry)
	env.NoError(err)
	for i, kind := range []schemas.AftermathKind{schemas.AftermathRan, schemas.AftermathUncontained, schemas.AftermathNeverRan} {
		env.Soon("the outbox has handled all changes", env.OutboxIdle)
		env.Passed(time.Now().Add(200 * time.Millisecond))
		entry.Record.Aftermath = append(entry.Record.Aftermath, schemas.Aftermath{PendingID: "old", Kind: kind, Reason: "a test", At: at.Add(time.Duration(i+2) * time.Minute)})
		entry.Revision, err = env.Store.Records.Amend(env.Ctx, entry, time.Hour)
		env.NoError(err)
	}
	env.Soon("the outbox has handled all changes", env.OutboxIdle)
	env.Equal(map[string]int{"S.old": 1}, env.Logged(schemas.LogDecided))
	env.Equal(map[string]int{"S.old": 1}, env.Logged(schemas.LogVoted))
	env.Equal(map[string]int{"S.old": 3}, env.Logged(schemas.LogAftermath), "one of each kind")
}
