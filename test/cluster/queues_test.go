package cluster

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
	"github.com/nodbus/nod/test/internal/rig"
)

// If the consumer of an engine's or a carrier's queue is deleted, nod creates it again, and the queue
// delivers its messages.
func TestAQueueWhoseConsumerIsLostIsServedAgain(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, func(s *rig.Setup) { s.Settings = rig.WithCarrier })
	shown := env.Carrier()
	lose := func(stream, consumer string) {
		env.NoError(env.Raw.DeleteConsumer(env.Ctx, stream, consumer))
	}
	lose("KV_pending_permissions", "nod-outbox")
	lose("KV_pending_permissions", "nod-clock")
	lose("permission_prompts", "tg")
	env.Registers("tg", "carrier", false) // a worker renews its lease every few seconds
	env.Timeout("S", 2*time.Second)
	q := env.Agent("ada").Asks(rig.Deploy("S", "1"))
	env.Soon("the carrier is given its prompt", func() bool { return shown.Times(q.Key, q.Receipt.Revision) > 0 })
	q.Ends(schemas.TimedOut)
}

// If the pull request of a queue does not reach the server, the queue sends the pull request again.
func TestAPullThatIsLostIsRepeated(t *testing.T) {
	t.Parallel()
	env := rig.Start(t, rig.OverTheNetwork, func(s *rig.Setup) { s.Engines = 0 })
	w := env.Wire()
	conn := env.Dial(roles.ID{Role: roles.EngineStore}, w.URL)
	env.Wires = append(env.Wires, conn.Close)
	store, err := bus.OpenStore(env.Ctx, conn, 1)
	env.NoError(err)
	queue, err := store.Records.Outbox(env.Ctx, time.Minute)
	env.NoError(err)
	w.Lose(".MSG.NEXT.")
	began, delivered := time.Now(), make(chan struct{}, 1)
	end, err := queue.Consume(func(d *bus.Delivery) { d.Done(); delivered <- struct{}{} })
	env.NoError(err)
	t.Cleanup(end)
	env.Soon("the pull is lost", w.HasLost)
	storeRecord(t, env.Ctx, store.Records, "S.1")
	select {
	case <-delivered:
		t.Log("after", time.Since(began))
	case <-time.After(20 * time.Second): // nats.go itself sends another pull request only after 30 s
		t.Fatal("the queue did not pull again within 20 s")
	}
}

// storeRecord stores a pending record directly, without sending a request.
func storeRecord(t *testing.T, ctx context.Context, records *bus.Records, key string) {
	t.Helper()
	deadline := time.Now().UTC().Add(time.Hour)
	_, err := records.Create(ctx, bus.Entry{Key: key, Record: schemas.Record{
		Type: schemas.TypeRecord, Agent: "ada", Request: []byte("{}"), Digest: schemas.AnyDigest, Risk: schemas.RiskLow, Tier: schemas.TierDisconnected,
		Deadline: deadline, NextEvent: &schemas.Event{At: deadline, Kind: schemas.EventDeadline},
	}})
	require.NoError(t, err)
}

// store connects to the server with the given URL and opens the stores, with three replicas.
func (c *cluster) store(ctx context.Context, url string) *bus.Store {
	store, err := bus.OpenStore(ctx, c.connect(ctx, url, roles.ID{Role: roles.EngineStore}), 3)
	require.NoError(c.t, err)
	return store
}

func (c *cluster) connect(ctx context.Context, url string, id roles.ID) *bus.Conn {
	conn, err := bus.Connect(ctx, bus.Options{URL: url, Name: "test", Creds: filepath.Join(c.dir, "keys", id.String()+".nk"), Inbox: id.InboxPrefix(), Wait: time.Minute, Log: rig.Quiet()})
	require.NoError(c.t, err)
	c.t.Cleanup(conn.Close)
	return conn
}

// consumer waits until a consumer has a leader, and returns its state. It asks the server with the given URL.
func (c *cluster) consumer(ctx context.Context, url, stream, consumer string) (info *jetstream.ConsumerInfo) {
	js, done := c.jetStream(url)
	defer done()
	require.Eventually(c.t, func() bool {
		found, err := js.Consumer(ctx, stream, consumer)
		if err != nil || found.CachedInfo().Cluster.Leader == "" {
			return false
		}
		info = found.CachedInfo()
		return true
	}, rig.Patience, rig.Tick)
	return info
}

// The method leads returns the index in c.servers of the server that leads the given consumer.
func (c *cluster) leads(ctx context.Context, url, stream, consumer string) int {
	return int(c.consumer(ctx, url, stream, consumer).Cluster.Leader[1] - '0')
}

// The server that leads a queue's consumer hangs, while the queue is connected to another server. A further
// server takes over the consumer and delivers the next message within 40 s, before the queue would repeat a
// lost message.
func TestAQueueWhoseLeaderIsStoppedIsServedSoon(t *testing.T) {
	t.Parallel()
	rig.OnlyLong(t, "TestAQueueWhoseConsumerIsLostIsServedAgain serves a queue again")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := newCluster(t)
	urls := strings.Split(c.urls, ",")
	_, err := c.store(ctx, urls[0]).Records.Outbox(ctx, time.Minute)
	require.NoError(t, err)
	leader := c.leads(ctx, urls[0], "KV_pending_permissions", "nod-outbox")
	records := c.store(ctx, urls[(leader+1)%3]).Records
	queue, err := records.Outbox(ctx, time.Minute)
	require.NoError(t, err)
	var mu sync.Mutex
	heard := map[string]time.Time{}
	end, err := queue.Consume(func(d *bus.Delivery) {
		entry, err := records.Entry(d)
		if err == nil {
			mu.Lock()
			heard[entry.Key] = time.Now()
			mu.Unlock()
		}
		d.Done()
	})
	require.NoError(t, err)
	t.Cleanup(end)
	at := func(key string) time.Time {
		mu.Lock()
		defer mu.Unlock()
		return heard[key]
	}
	storeRecord(t, ctx, records, "S.before")
	require.Eventually(t, func() bool { return !at("S.before").IsZero() }, rig.Patience, rig.Tick)

	stopped := time.Now()
	require.NoError(t, c.servers[leader].Process.Signal(syscall.SIGSTOP))
	storeRecord(t, ctx, records, "S.after")
	stored := time.Now()
	// The election of a new leader takes up to 10 of the 40 s, and longer on a loaded machine.
	require.Eventually(t, func() bool { return !at("S.after").IsZero() }, 40*time.Second-time.Since(stopped), rig.Tick)
	t.Logf("stored %s after the stop, delivered %s after that", stored.Sub(stopped).Round(time.Millisecond), at("S.after").Sub(stored).Round(time.Millisecond))
}

// A worker dies. It was connected to another server than the leader of its queue, and the leader does not
// learn of the death, because the worker's pull request comes from another account. The broker may send
// prompts to the dead worker only until this pull request ends, which is soon.
func TestADeadWorkersPullsEndSoon(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := newCluster(t)
	urls := strings.Split(c.urls, ",")
	prompts, err := bus.OpenPrompts(ctx, c.connect(ctx, urls[0], roles.ID{Role: roles.EngineStore}), 3)
	require.NoError(t, err)
	require.NoError(t, prompts.Serve(ctx, "tg"))
	leader := c.leads(ctx, urls[0], "permission_prompts", "tg")
	worker := c.connect(ctx, urls[(leader+1)%3], roles.ConnectorID("tg"))
	queue, err := worker.PromptQueue(ctx, "tg")
	require.NoError(t, err)
	end, err := queue.Consume(func(d *bus.Delivery) { d.Done() })
	require.NoError(t, err)
	t.Cleanup(end)
	pulls := func() int { return c.consumer(ctx, urls[leader], "permission_prompts", "tg").NumWaiting }
	require.Eventually(t, func() bool { return pulls() == 1 }, rig.Patience, rig.Tick)
	worker.Close()
	require.Eventually(t, func() bool { return pulls() == 0 }, 15*time.Second, rig.Tick, "nats.go's default pull lasts 30 s")
}
