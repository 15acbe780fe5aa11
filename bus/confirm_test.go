package bus_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// cluster starts the servers of a cluster, which end with the test. It opens the stores through the first
// server.
func cluster(t *testing.T, ctx context.Context, servers, replicas int) *bus.Store {
	t.Helper()
	options := []bus.EmbedOptions{{DataDir: t.TempDir(), Log: quiet(), SyncInterval: time.Minute}}
	if servers > 1 {
		options = members(t, servers)
	}
	first := embeds(t, options...)[0]
	conn, err := bus.Connect(ctx, bus.Options{URL: first.URL(), Name: "engine", Inbox: "_INBOX.engine", Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	store, err := bus.OpenStore(ctx, conn, replicas)
	require.NoError(t, err)
	return store
}

// Confirm succeeds until the key changes, both on one server and on three. Concurrent callers share one
// write.
func TestAReadingIsConfirmedUntilTheKeyChanges(t *testing.T) {
	t.Parallel() // this test mostly waits for servers
	for name, servers := range map[string]int{"one server": 1, "three": 3} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			b := cluster(t, ctx, servers, servers).Sessions
			put := func(key string, revision uint64) uint64 {
				revision, err := b.Put(ctx, key, schemas.Session{Type: schemas.TypeSession, SessionID: "S"}, revision, 0)
				require.NoError(t, err)
				return revision
			}
			newest, err := b.NewestOf(ctx, "standing.session.S.*")
			require.NoError(t, err)
			require.Zero(t, newest)
			first, other := put("standing.session.S.a", 0), put("standing.session.S.b", 0)
			newest, err = b.NewestOf(ctx, "standing.session.S.*")
			require.NoError(t, err)
			require.Equal(t, other, newest)
			require.NoError(t, b.Confirm(ctx, "standing.session.S.a", first))
			require.NoError(t, b.Confirm(ctx, "standing.session.none", 0))

			const readers = 200
			before, err := b.Newest(ctx)
			require.NoError(t, err)
			var all sync.WaitGroup
			errs := make([]error, readers)
			for i := range readers {
				all.Go(func() { errs[i] = b.Confirm(ctx, "standing.session.S.a", first) })
			}
			all.Wait()
			for _, err := range errs {
				require.NoError(t, err)
			}
			after, err := b.Newest(ctx)
			require.NoError(t, err)
			require.Less(t, after-before, uint64(readers), "they share writes")

			changed := put("standing.session.S.a", first)
			require.ErrorIs(t, b.Confirm(ctx, "standing.session.S.a", first), bus.ErrMoved)
			require.NoError(t, b.Confirm(ctx, "standing.session.S.a", changed))
		})
	}
}
