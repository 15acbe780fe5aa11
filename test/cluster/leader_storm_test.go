package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors"
	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/actors/engine"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/internal/testports"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// nodes is a cluster of three NATS servers in the test's process, with one engine for each server.
type nodes struct {
	t       *testing.T
	ctx     context.Context
	servers []*server.Server
	engines []*engine.Engine
}

func newNodes(t *testing.T, settings string) *nodes {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	n := &nodes{t: t, ctx: ctx}
	ports := testports.Free(t, 3)
	var routes []*url.URL
	for _, p := range ports {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", p)})
	}
	for i, p := range ports {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), Routes: routes,
			Cluster: server.ClusterOpts{Name: fmt.Sprint("c", ports[0]), Host: "127.0.0.1", Port: p},
		})
		require.NoError(t, err)
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		n.servers = append(n.servers, s)
	}
	for i := range n.servers {
		n.engine(i)
		if i == 0 { // the other engines read these settings at their start
			_, err := n.engines[0].ApplySettings(ctx, rig.Apart(settings), "test")
			require.NoError(t, err)
		}
	}
	return n
}

// conn connects to server i. If the connection breaks, it may reconnect to any server.
func (n *nodes) conn(i int, inbox string) *bus.Conn {
	urls := []string{n.servers[i].ClientURL()}
	for j, s := range n.servers {
		if j != i {
			urls = append(urls, s.ClientURL())
		}
	}
	c, err := bus.Connect(n.ctx, bus.Options{URL: strings.Join(urls, ","), Name: inbox, Inbox: inbox, Log: rig.Quiet()})
	require.NoError(n.t, err)
	n.t.Cleanup(c.Close)
	return c
}

func (n *nodes) engine(i int) {
	sys := actors.NewSystem(rig.Quiet())
	conn := n.conn(i, fmt.Sprint("_INBOX.engine", i))
	e, err := engine.Start(n.ctx, engine.Options{Edge: conn, Store: conn, Replicas: 3, System: sys, Version: "0.0.0", Log: rig.Quiet()})
	require.NoError(n.t, err)
	n.engines = append(n.engines, e)
	n.t.Cleanup(func() {
		require.NoError(n.t, e.Stop(context.Background()))
		sys.Stop()
	})
}

// stepDowns makes each leader of the stream with the records step down 200 ms after its election. The
// returned function ends the step-downs and returns their number.
func (n *nodes) stepDowns() (stop func() int64) {
	nc, err := nats.Connect(n.servers[0].ClientURL())
	require.NoError(n.t, err)
	n.t.Cleanup(nc.Close)
	ctx, cancel := context.WithCancel(n.ctx)
	var times atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		pause := time.NewTimer(0)
		defer pause.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-pause.C:
			}
			if _, err := nc.Request("$JS.API.STREAM.LEADER.STEPDOWN.KV_pending_permissions", nil, time.Second); err == nil {
				times.Add(1)
			}
			for elected := false; !elected && ctx.Err() == nil; { // only a leader replies, and the election of a leader takes long on a loaded machine
				_, err := nc.Request("$JS.API.STREAM.INFO.KV_pending_permissions", nil, time.Second)
				elected = err == nil
			}
			pause.Reset(200 * time.Millisecond)
		}
	})
	return func() int64 { cancel(); wg.Wait(); return times.Load() }
}

// The leader of the stream with the records keeps changing. For each request, two answers, the deadline and
// sometimes a withdrawal come at nearly the same time. Every party gets the one stored decision.
func TestDecidingAtTheDeadlineWhileTheLeaderChanges(t *testing.T) {
	t.Parallel()
	requests := 80
	switch {
	case *rig.Long:
		requests = 300
	case testing.Short():
		requests = 60
		t.Log("-short: 60 requests; the winners are not checked, since under the race detector the clock may win every race")
	default:
		t.Log("80 requests; -long runs 300")
	}
	n := newNodes(t, rig.Everybody)
	asker := bus.NewAsker(n.conn(1, "_INBOX.agent.ada"), "ada")
	t.Cleanup(asker.Close)
	desks := map[string]*connector.Desk{
		"ann": connector.NewDesk(n.conn(2, "_INBOX.connector.terminal"), "terminal"),
		"bob": connector.NewDesk(n.conn(0, "_INBOX.connector.web"), "web"),
	}
	store, err := bus.OpenStore(n.ctx, n.conn(1, "_INBOX.looking"), 3)
	require.NoError(t, err)
	ahead, err := store.BrokerTime(n.ctx)
	require.NoError(t, err)

	stop := n.stepDowns()
	outcomes := map[schemas.Outcome]int{}
	var mu sync.Mutex
	number := 0 // the number of the next request, which makes each request different
	storms := func(timeout time.Duration) {
		var wg sync.WaitGroup
		room := make(chan struct{}, 150)
		for range requests {
			room <- struct{}{}
			i := number
			number++
			wg.Go(func() {
				defer func() { <-room }()
				outcome, err := n.storm(asker, desks, store, i, timeout, ahead)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				outcomes[outcome]++
			})
		}
		wg.Wait()
		t.Log(outcomes)
	}
	missing := func() bool {
		return slices.ContainsFunc([]schemas.Outcome{schemas.Allowed, schemas.Denied, schemas.Withdrawn, schemas.TimedOut},
			func(o schemas.Outcome) bool { return outcomes[o] == 0 })
	}
	timeout := 5 * time.Second
	for storms(timeout); missing() && !testing.Short() && !t.Failed(); storms(timeout) {
		timeout *= 3
		require.Less(t, timeout, time.Minute, "not every outcome occurred, so the races were not real")
		t.Log("this machine is so slow that not every outcome occurred: once more, with longer timeouts")
	}
	times := stop()
	t.Log(times, "step-downs")
	require.NotZero(t, times)
}

// The method storm sends the request with the number i and the given timeout. Near its deadline, one approver
// allows the request and another approver denies it. If i is even, the agent also withdraws it. storm returns
// the outcome, or an error if a party got another decision than the stored one.
func (n *nodes) storm(asker *bus.Asker, desks map[string]*connector.Desk, store *bus.Store, i int, timeout, ahead time.Duration) (schemas.Outcome, error) {
	r := rig.Permission(fmt.Sprint("S", i%10), bus.NewID(), "to fetch", fmt.Sprint("@read:/", i))
	r.Host, r.TimeoutSeconds = "elsewhere", int(timeout.Seconds())
	asked, err := asker.Submit(n.ctx, r)
	if err != nil {
		return "", err
	}
	if asked.Receipt.Revision != 0 { // if the request timed out during a long election, its revision is 0
		<-time.After(time.Until(asked.Receipt.Deadline) - ahead + rand.N(timeout*6/25) - timeout/5)
	}
	var mu sync.Mutex
	told := map[string]string{} // for each party, the id of the decision that it got
	tell := func(who string, d schemas.Decision, err error) {
		mu.Lock()
		defer mu.Unlock()
		var refused *schemas.Error
		switch {
		case err == nil:
			told[who] = d.DecisionID
		case errors.As(err, &refused) && refused.Decision() != nil:
			told[who] = refused.Decision().DecisionID
		}
	}
	var wg sync.WaitGroup
	for who, option := range map[string]string{"ann": "allow_once", "bob": "reject_once"} {
		wg.Go(func() {
			d, err := desks[who].Answer(n.ctx, schemas.Answer{
				SessionID: r.SessionID, PendingID: r.PendingID, Digest: asked.Receipt.Digest, OptionID: option, From: schemas.From{UserID: who},
			})
			tell(who, d, err)
		})
	}
	if i%2 == 0 {
		wg.Go(func() {
			d, err := asker.Withdraw(n.ctx, r.SessionID, r.PendingID, "changed my mind")
			tell("withdrawal", d, err)
		})
	}
	d, err := asked.Await(n.ctx)
	wg.Wait()
	if err != nil {
		return "", fmt.Errorf("%s heard nothing: %w", asked.Key, err)
	}
	told["asker"] = d.DecisionID
	entry, err := store.Records.Get(n.ctx, asked.Key)
	if err != nil || entry.Record.Decision == nil {
		return "", fmt.Errorf("%s has no outcome: %w", asked.Key, err)
	}
	stored := entry.Record.Decision
	for who, id := range told {
		if id != stored.DecisionID {
			return stored.Outcome, fmt.Errorf("%s: %s got decision %s, but the stored one is %s, %s", asked.Key, who, id, stored.DecisionID, stored.Outcome)
		}
	}
	if d.Outcome != stored.Outcome {
		return stored.Outcome, fmt.Errorf("%s: the asker heard %s, but the stored outcome is %s", asked.Key, d.Outcome, stored.Outcome)
	}
	return stored.Outcome, nil
}
