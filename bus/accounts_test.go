package bus_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
)

// A worker uses its consumer through an import from another account. It fetches prompts, asks the server
// for more time or for a later redelivery, and acknowledges. The test covers both forms of nats-server's
// acknowledgement subjects.
func TestWorkerTakesItsPromptsThroughTheImport(t *testing.T) {
	t.Parallel() // this test mostly waits for servers
	inBothModes(t, func(t *testing.T, m mode) {
		newAcks := layout{config: func(config string) string { return config + "feature_flags { js_ack_fc_v2: true }\n" }}
		for form, l := range map[string]layout{"$JS.ACK.permission_prompts.tg.": asShipped, "$JS.ACK._.": newAcks} {
			t.Run(form, func(t *testing.T) {
				g := startLayout(t, m, l)
				engine := g.jetstream(asEngineStore)
				own, err := g.jetstream(asTg).Consumer(t.Context(), "permission_prompts", "tg")
				require.NoError(t, err)

				first, err := own.Next()
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(first.Reply(), form), first.Reply())
				require.NoError(t, first.InProgress())
				require.NoError(t, first.NakWithDelay(time.Millisecond))
				again, err := own.Next()
				require.NoError(t, err)
				require.Equal(t, first.Subject(), again.Subject())
				require.NoError(t, again.DoubleAck(t.Context()))

				seen := make(chan string, 600) // this number is larger than the number of prompts that one pull fetches
				consuming, err := own.Consume(func(m jetstream.Msg) {
					if m.DoubleAck(context.Background()) == nil {
						seen <- m.Subject()
					}
				})
				require.NoError(t, err)
				defer consuming.Stop()
				for range cap(seen) {
					g.feed(engine)
				}
				for range cap(seen) {
					<-seen
				}
				rest, err := engine.Consumer(t.Context(), "permission_prompts", "tg")
				require.NoError(t, err)
				require.Zero(t, rest.CachedInfo().NumPending+uint64(rest.CachedInfo().NumAckPending))
			})
		}
	})
}

// After a worker is gone, the server must not deliver prompts to the worker's pull. Otherwise no other
// worker would get these prompts until AckWait has passed.
func TestPromptsDoNotGoToAWorkerThatIsGone(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		g := startLayout(t, m, asShipped)
		engine := g.jetstream(asEngineStore)
		gone := g.as(asTg)
		waiting := func() int {
			tg, err := engine.Consumer(context.Background(), "permission_prompts", "tg")
			require.NoError(t, err)
			return tg.CachedInfo().NumWaiting
		}
		emptyPull(t, gone, nats.NewInbox())
		_, err := gone.SubscribeSync(asTg.InboxPrefix() + ".x") // the test makes this subscription before the pull, because the server ends a pull whose reply subject has no subscriber
		require.NoError(t, err)
		require.NoError(t, gone.PublishRequest(nextOfTg, asTg.InboxPrefix()+".x", []byte(`{"expires":60000000000}`)))
		require.NoError(t, gone.Flush())
		require.Eventually(t, func() bool { return waiting() == 1 }, 10*time.Second, time.Millisecond)
		gone.Close()
		require.Eventually(t, func() bool { return waiting() == 0 }, 10*time.Second, time.Millisecond)
	})
}

// Engines and connectors are micro services, which reply to the owner's $SRV requests.
func TestOwnerFindsTheServices(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, m mode) {
		g := startLayout(t, m, asShipped)
		g.serveEngine()
		for _, id := range []roles.ID{asTg, asTerminal} {
			nc := g.as(id)
			_, err := micro.AddService(nc, micro.Config{Name: "nod-connector-" + id.Name, Version: "1.0.0"})
			require.NoError(t, err)
			require.NoError(t, nc.Flush())
			require.NoError(t, nc.LastError())
		}
		owner := g.as(asOwner)
		answers, err := owner.SubscribeSync(owner.NewInbox())
		require.NoError(t, err)
		require.NoError(t, owner.PublishRequest("$SRV.INFO", answers.Subject, nil))
		found := ""
		for range 3 {
			msg, err := answers.NextMsg(5 * time.Second)
			require.NoError(t, err)
			found += string(msg.Data)
		}
		for _, name := range []string{"nod-engine", "nod-connector-tg", "nod-connector-terminal"} {
			require.Contains(t, found, `"name":"`+name+`"`)
		}
	})
}

func TestAccountsInACluster(t *testing.T) {
	t.Parallel() // this test mostly waits for servers
	inBothModes(t, func(t *testing.T, m mode) {
		members := startCluster(t, m, 3)
		engine := members[0].jetstream(asEngineStore)
		var stream jetstream.Stream
		require.Eventually(t, func() bool { // CreateStream fails until the cluster has a leader
			s, err := engine.CreateStream(context.Background(), jetstream.StreamConfig{
				Name: "permission_prompts", Retention: jetstream.WorkQueuePolicy, Subjects: []string{"nod.v1.prompt.>"}, Replicas: 3,
			})
			stream = s
			return err == nil
		}, 30*time.Second, 10*time.Millisecond)
		_, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "tg", AckPolicy: jetstream.AckExplicitPolicy})
		require.NoError(t, err)

		for _, at := range members {
			own, err := at.jetstream(asTg).Consumer(t.Context(), "permission_prompts", "tg")
			require.NoError(t, err)
			members[0].feed(engine)
			prompt, err := own.Next()
			require.NoError(t, err)
			require.NoError(t, prompt.DoubleAck(t.Context()))
		}
	})
}

// startCluster runs the servers of a cluster, with keys for all roles.
func startCluster(t *testing.T, m mode, n int) (at []*guarded) {
	t.Helper()
	if m == operatorMode {
		g, _, _ := startOperatorCluster(t, n)
		for url := range strings.SplitSeq(g.url, ",") {
			at = append(at, &guarded{t: t, dir: g.dir, url: url, keys: g.keys})
		}
		return at
	}
	keys, users := keysOf(t, t.TempDir(), everybody()...)
	options := members(t, n)
	for i := range options {
		options[i].Users = users
	}
	for _, s := range embeds(t, options...) {
		at = append(at, &guarded{t: t, url: s.URL(), keys: keys})
	}
	return at
}
