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

// BenchmarkLogPage reads the entries of one page of the history, from the middle of a log of 100,000:
//
//	go test -run xxx -bench LogPage -benchtime 20x ./test/bench
func BenchmarkLogPage(b *testing.B) {
	log := fullLog(b, 100_000)
	for _, session := range []string{"", "s7"} {
		b.Run("session="+session, func(b *testing.B) {
			for b.Loop() {
				past, err := log.Before(b.Context(), 50_000, session, 1000)
				require.NoError(b, err)
				require.Greater(b, len(past.Entries), 900)
			}
		})
	}
}

func fullLog(b *testing.B, n int) *bus.Log {
	b.Helper()
	quiet := slog.New(slog.DiscardHandler)
	server, err := bus.Embed(b.Context(), bus.EmbedOptions{DataDir: b.TempDir(), SyncInterval: 2 * time.Minute, Log: quiet})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, server.Close()) })
	conn, err := bus.Connect(b.Context(), bus.Options{URL: server.URL(), Inbox: roles.ID{Role: roles.EngineStore}.InboxPrefix(), Log: quiet})
	require.NoError(b, err)
	b.Cleanup(conn.Close)
	store, err := bus.OpenStore(b.Context(), conn, 1)
	require.NoError(b, err)
	var all sync.WaitGroup
	for first := range 200 {
		all.Go(func() {
			for i := first; i < n; i += 200 {
				_, _, err := store.Log.Append(b.Context(), fmt.Sprint(i), schemas.LogEntry{
					Type: schemas.TypeLogEntry, At: time.Now().UTC(), Kind: schemas.LogDecided, SessionID: fmt.Sprint("s", i%10), PendingID: fmt.Sprint("r", i),
					Actor: "Ann@web", Agent: "ada", AskedAt: time.Now().UTC(), ToolName: "Bash", Outcome: schemas.Denied,
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return store.Log
}
