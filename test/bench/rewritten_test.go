package bench

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

// BenchmarkRewritten reads the records of all sessions. Each record was written five times, as usual for
// a decided record. The benchmark shows whether the server's work per message grows with the number of
// records:
//
//	go test -run xxx -bench Rewritten -benchtime 3x ./test/bench
func BenchmarkRewritten(b *testing.B) {
	for _, records := range []int{2_000, 8_000} {
		b.Run(fmt.Sprint(records), func(b *testing.B) {
			ctx := b.Context()
			quiet := slog.New(slog.DiscardHandler)
			server, err := bus.Embed(ctx, bus.EmbedOptions{DataDir: b.TempDir(), SyncInterval: 2 * time.Minute, Log: quiet})
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, server.Close()) })
			id := roles.ID{Role: roles.EngineStore}
			conn, err := bus.Connect(ctx, bus.Options{URL: server.URL(), Inbox: id.InboxPrefix(), Log: quiet})
			require.NoError(b, err)
			b.Cleanup(conn.Close)
			store, err := bus.OpenStore(ctx, conn, 1)
			require.NoError(b, err)
			record := schemas.Record{
				Type: schemas.TypeRecord, Agent: "ada", Request: []byte("{}"), Digest: schemas.AnyDigest, Risk: schemas.RiskLow,
				Tier: schemas.TierDisconnected, Deadline: time.Now().UTC().Add(time.Hour),
			}
			var writers sync.WaitGroup
			for w := range 16 {
				writers.Go(func() {
					for i := w; i < records; i += 16 {
						e := bus.Entry{Key: schemas.Key(fmt.Sprint("S", i%100), fmt.Sprint("q", i)), Record: record}
						for range 5 {
							if e.Revision, err = store.Records.Amend(ctx, e, bus.Retention); err != nil {
								b.Error(err)
								return
							}
						}
					}
				})
			}
			writers.Wait()
			b.ResetTimer()
			for range b.N {
				found := 0
				require.NoError(b, store.Records.Scan(ctx, "", 0, func(bus.ScannedRecord) bool { found++; return true }))
				require.Equal(b, records, found)
			}
		})
	}
}
