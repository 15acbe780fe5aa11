package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/actors/connector"
	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/embed"
	"github.com/nodbus/nod/internal/bench"
	"github.com/nodbus/nod/schemas"
)

const many = 100_000

// BenchmarkMany lists many pending requests and then denies them by a freeze. One run takes minutes. Its
// metrics are times in seconds:
//
//   - list-s: to list all requests
//
//   - session-s: to list the requests of one session
//
//   - told-s: until nod acknowledges the freeze
//
//   - freeze-s: until no request is pending
//
//     go test -run xxx -bench Many -benchtime 1x ./test/bench
func BenchmarkMany(b *testing.B) {
	ctx := b.Context()
	quiet := slog.New(slog.DiscardHandler)
	server, err := bus.Embed(ctx, bus.EmbedOptions{DataDir: b.TempDir(), SyncInterval: 2 * time.Minute, Log: quiet})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, server.Close()) })
	fill(b, ctx, server.URL())
	n, err := embed.Start(ctx, embed.Options{URL: server.URL(), Log: quiet, Settings: []byte(`{"approvers":{"people":[{"name":"Ann","identities":[{"connector":"terminal","user_id":"ann"}]}]}}`)})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, n.Stop(context.Background())) })
	conn, err := n.Connect(ctx, roles.ConnectorID("terminal"))
	require.NoError(b, err)
	b.Cleanup(conn.Close)
	desk := connector.NewDesk(conn, "terminal")

	idle(b, ctx, server.URL())

	b.ResetTimer()
	for range b.N {
		began := time.Now()
		prompts, err := desk.Pending(ctx, schemas.Query{})
		require.NoError(b, err)
		require.Len(b, prompts, many)
		b.ReportMetric(time.Since(began).Seconds(), "list-s")

		began = time.Now()
		_, err = desk.Pending(ctx, schemas.Query{SessionID: "S7"})
		require.NoError(b, err)
		b.ReportMetric(time.Since(began).Seconds(), "session-s")

		began = time.Now()
		frozen, err := desk.Freeze(ctx, schemas.FreezeRequest{From: schemas.From{UserID: "ann"}})
		require.NoError(b, err)
		b.ReportMetric(time.Since(began).Seconds(), "freeze-ack-s")
		b.Log("denied when the freeze was acknowledged:", frozen.Denied)
		for len(prompts) > 0 {
			prompts, err = desk.Pending(ctx, schemas.Query{})
			require.NoError(b, err)
		}
		b.ReportMetric(time.Since(began).Seconds(), "freeze-s")
	}
}

// idle waits until the outbox has handled the records that fill has stored.
func idle(b *testing.B, ctx context.Context, url string) {
	nc, err := nats.Connect(url)
	require.NoError(b, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(b, err)
	require.Eventually(b, func() bool {
		outbox, err := js.Consumer(ctx, "KV_pending_permissions", "nod-outbox")
		return err == nil && outbox.CachedInfo().NumPending == 0 && outbox.CachedInfo().NumAckPending == 0
	}, 5*time.Minute, 100*time.Millisecond)
}

// fill stores many pending requests as an engine would, before any engine runs.
func fill(b *testing.B, ctx context.Context, url string) {
	conn, err := bus.Connect(ctx, bus.Options{URL: url, Name: "fill", Log: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	defer conn.Close()
	store, err := bus.OpenStore(ctx, conn, 1)
	require.NoError(b, err)
	at := time.Now().UTC()
	deadline := at.Add(24 * time.Hour)
	var work sync.WaitGroup
	for part := range inFlight {
		work.Go(func() {
			for i := part; i < many; i += inFlight {
				r := bench.Request(fmt.Sprint("S", i%100), "Frobnicate", fmt.Sprintf(`{"command":"rm -rf build%06d","cwd":"/workspace"}`, i), schemas.ActionOther)
				r.Type, r.PendingID, r.CreatedAt = schemas.TypeRequest, fmt.Sprint("p", i), at
				r.Options = schemas.DefaultOptions()
				data, err := json.Marshal(r)
				if err != nil {
					b.Error(err)
				}
				_, err = store.Records.Create(ctx, bus.Entry{Key: schemas.Key(r.SessionID, r.PendingID), Record: schemas.Record{
					Type: schemas.TypeRecord, Agent: "local", Request: data, Digest: schemas.AnyDigest, Risk: schemas.RiskLow,
					Tier: "disconnected", TimeoutSeconds: 86400, Deadline: deadline,
					NextEvent: &schemas.Event{At: deadline, Kind: schemas.EventDeadline},
				}})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	work.Wait()
}
