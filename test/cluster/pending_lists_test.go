package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// The function stuck takes fired timers without acknowledging them, like a hanging engine. The function holds
// returns the keys of these timers' records.
func stuck(e *rig.Env) (holds func() []string) {
	e.T.Helper()
	store, err := bus.OpenStore(e.Ctx, e.Dial(roles.ID{Role: roles.EngineStore}, e.Server.URL()), 1)
	e.NoError(err)
	queue, err := store.Records.Due(e.Ctx, 30*time.Second) // the running engines take timers from the same queue
	e.NoError(err)
	var mu sync.Mutex
	var held []string
	stop, err := queue.Consume(func(d *bus.Delivery) {
		fired, _ := store.Records.Fired(d)
		mu.Lock()
		defer mu.Unlock()
		held = append(held, fired.Key)
	})
	e.NoError(err)
	e.Wires = append(e.Wires, stop)
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(held)
	}
}

// firedAndHeld sends requests with the function ask until a hanging engine has taken the fired timer of one
// of them. It returns the key of that request's record.
func firedAndHeld(e *rig.Env, ask func(id string) *rig.Question) (key string) {
	e.T.Helper()
	holds := stuck(e)
	e.Timeout("S", time.Second)
	for i := 0; len(holds()) == 0; i++ { // several tries, because a running engine may take a timer first and decide its request
		q := ask(fmt.Sprint("q-", i))
		e.Soon("its timer has fired", func() bool {
			return slices.Contains(holds(), q.Key) || e.Stored(q.Key).Record.Decision != nil
		})
	}
	key = holds()[0]
	e.NotContains(e.Armed(), key)
	return key
}

// A hanging engine has taken the fired timer of a request. The list of pending requests still contains the
// request, and a freeze denies it.
func TestATimerHeldByAStoppedEngineIsPendingAndFrozen(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	key := firedAndHeld(env, func(id string) *rig.Question { return ada.Asks(rig.Deploy("S", id)) })

	pending, err := env.Ann().Pending(env.Ctx, schemas.Query{})
	env.NoError(err)
	env.Len(pending, 1)
	env.Equal(key, pending[0].Key())
	frozen, err := env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	env.Equal(1, frozen.Denied)
	env.False(frozen.Unfinished)
	env.Equal("frozen by Ann", env.Stored(key).Record.Decision.By.Name)
}

// A hanging engine has taken the fired timer of a request. The request still ends when the host reports the
// end of the session.
func TestATimerHeldByAStoppedEngineEndsWithItsHost(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	key := firedAndHeld(env, func(id string) *rig.Question {
		r := rig.Deploy("S", id)
		r.HostAsks = true
		return ada.Asks(r)
	})
	_, err := ada.Asker.HostResolved(env.Ctx, schemas.HostResolved{SessionID: "S", WholeSession: true, Reason: "over"})
	env.NoError(err)
	env.NotNil(env.Stored(key).Record.Decision, "the request is still pending")
}

// An engine stores a request before it learns of a freeze. The thaw denies this request before it ends the
// freeze, so that no person can allow the request afterwards.
func TestAThawComesAfterTheLastDenial(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	q := env.Agent("ada").Asks(rig.Deploy("S", "template"))
	_, err := env.Ann().Freeze(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	late := env.Stored(q.Key).Record
	deadline := schemas.Event{At: late.Deadline, Kind: schemas.EventDeadline}
	late.Decision, late.NextEvent = nil, &deadline
	late.Question, late.Waiters = "", []schemas.Waiter{{PendingID: "late", Digest: late.Digest, Deadline: late.Deadline}}
	_, err = env.Store.Records.Create(env.Ctx, bus.Entry{Key: "S.late", Record: late})
	env.NoError(err)

	_, err = env.Ann().Thaw(env.Ctx, schemas.FreezeRequest{From: rig.Ann()})
	env.NoError(err)
	d := env.Stored("S.late").Record.Decision
	env.NotNil(d, "the request is still pending after the thaw")
	env.Equal(schemas.Denied, d.Outcome)
}

// The pages of a list contain all pending requests. If a request changes between two pages, a later page
// contains its new version.
func TestPagesHoldAllPendingRequests(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	const n = 20
	for i := range n {
		ada.Asks(rig.Deploy("S", fmt.Sprintf("q-%02d", i)))
	}
	ada.Asks(rig.Deploy("T", "other"))
	terminal := env.Conn(roles.ConnectorID("terminal"))
	next := func(after string) (page schemas.Page, err error) {
		err = terminal.CallInto(env.Ctx, schemas.QuerySubject("terminal", schemas.QueryPending), schemas.Query{
			Type: schemas.TypeQuery, SessionID: "S", After: after, Limit: 6,
		}, &page)
		return page, err
	}
	seen := map[string]uint64{}
	var pages []int
	for after := ""; ; {
		page, err := next(after)
		env.NoError(err)
		pages = append(pages, len(page.Prompts))
		for _, p := range page.Prompts {
			env.Greater(p.Revision, seen[p.Key()])
			seen[p.Key()] = p.Revision
		}
		if after == "" { // after the first page, a record of the first page and a record of a later page change
			for _, key := range []string{"S.q-00", "S.q-19"} {
				_, err := env.Store.Records.Update(env.Ctx, env.Stored(key))
				env.NoError(err)
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	env.Equal([]int{6, 6, 6, 3}, pages)
	env.Len(seen, n)
	env.Equal(env.Stored("S.q-19").Revision, seen["S.q-19"])
	_, err := next("S.q-03")
	env.Refusal(err, schemas.CodeValidation)

	all, err := env.Ann().Pending(env.Ctx, schemas.Query{Limit: 6})
	env.NoError(err)
	env.Len(all, n+1)
}

// The pages of a list share a few scans of the bucket. They contain a request that is stored between two
// pages, and leave out a request that is decided before its page is read.
func TestPagesShareScans(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	ada := env.Agent("ada")
	const n = 20
	var asked []*rig.Question
	for i := range n {
		asked = append(asked, ada.Asks(rig.Deploy("S", fmt.Sprintf("q-%02d", i))))
	}
	env.Soon("all are stored", env.OutboxIdle)
	var scans atomic.Int64
	nc := env.RawConn(roles.ID{Role: roles.OwnerStore})
	_, err := nc.Subscribe("$JS.API.CONSUMER.CREATE.KV_pending_permissions.>", func(*nats.Msg) { scans.Add(1) })
	env.NoError(err)
	env.NoError(nc.Flush())
	terminal := env.Conn(roles.ConnectorID("terminal"))
	var seen []string
	q := schemas.Query{Type: schemas.TypeQuery, Limit: 1}
	for page := 0; ; page++ {
		var p schemas.Page
		env.NoError(terminal.CallInto(env.Ctx, schemas.QuerySubject("terminal", schemas.QueryPending), q, &p))
		for _, prompt := range p.Prompts {
			seen = append(seen, prompt.PendingID)
		}
		switch page {
		case 5: // the scan for the next pages has run, so it does not find this request
			ada.Asks(rig.Deploy("S", "late"))
		case 6: // the scan has found this request, which is decided before its page is read
			env.Ann().Allows(asked[12])
		}
		if q.After = p.Next; q.After == "" {
			break
		}
	}
	env.NotContains(seen, "q-12")
	env.Contains(seen, "late")
	env.Len(seen, n)
	env.NoError(nc.Flush())
	env.LessOrEqual(scans.Load(), int64(5), "more scans than those of the first page, of the second, and for records stored later")
}

// PageTimeout limits the time for each page, even if the context has no deadline.
func TestPageTimeoutLimitsEachPage(t *testing.T) {
	t.Parallel()
	env := rig.Start(t)
	desk := connector.NewDesk(env.Conn(roles.ConnectorID("terminal")), "terminal")
	desk.PageTimeout = time.Nanosecond
	_, err := desk.Pending(context.Background(), schemas.Query{})
	env.Error(err)
	desk.PageTimeout = time.Minute
	_, err = desk.Pending(env.Ctx, schemas.Query{})
	env.NoError(err)
}

// The leader of the stream keeps changing. A scan through any of three servers finds every write that was
// acknowledged before the scan began. ChangedSince finds no record that last changed before the given time.
func TestAScanFindsAcknowledgedWrites(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAClusterLosesAServerAndAnEngine reads what was acknowledged")
	n := newNodes(t, rig.Everybody)
	var stores []*bus.Store
	for i := range n.servers {
		store, err := bus.OpenStore(n.ctx, n.conn(i, fmt.Sprint("_INBOX.scan", i)), 3)
		require.NoError(t, err)
		stores = append(stores, store)
	}
	deadline := time.Now().UTC().Add(time.Hour)
	record := schemas.Record{
		Type: schemas.TypeRecord, Agent: "ada", Request: []byte("{}"), Digest: schemas.AnyDigest, Risk: schemas.RiskLow, Tier: schemas.TierDisconnected,
		Deadline: deadline, NextEvent: &schemas.Event{At: deadline, Kind: schemas.EventDeadline},
	}
	stop := n.stepDowns()
	var stored uint64
	for i, began := 0, time.Now(); i < 20 || time.Since(began) < 3*time.Second; i++ {
		key, before := schemas.Key("scan", fmt.Sprint("q", i)), time.Now()
		revision, err := stores[i%3].Records.Create(n.ctx, bus.Entry{Key: key, Record: record})
		require.NoError(t, err)
		var found []bus.ScannedRecord
		require.NoError(t, stores[(i+1)%3].Records.Scan(n.ctx, "scan", stored, func(r bus.ScannedRecord) bool {
			found = append(found, r)
			return true
		}))
		require.Equal(t, []bus.ScannedRecord{{Key: key, Revision: revision}}, found)
		if i%5 == 0 {
			changed, err := stores[(i+2)%3].Records.ChangedSince(n.ctx, "scan", before)
			require.NoError(t, err)
			require.Len(t, changed, 1)
			require.Equal(t, key, changed[0].Key)
		}
		stored = revision
	}
	require.NotZero(t, stop())
}
