package bus_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/internal/testlog"
	"github.com/nodbus/nod/schemas"
)

// buckets are the streams of the buckets to which the test adds replicas.
var buckets = []string{"KV_pending_permissions", "KV_permission_sessions", "KV_permission_settings"}

// The server of a bucket with one replica answers direct reads. With several replicas only the leader
// answers reads, even the reads of clients that opened the store while the bucket had one replica.
func TestOnlyTheLeaderServesReadsOfAReplicatedBucket(t *testing.T) {
	t.Parallel() // this test mostly waits for servers
	servers := embeds(t, members(t, 3)...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	open := func(replicas int) *bus.Store {
		conn, err := bus.Connect(ctx, bus.Options{URL: servers[replicas-1].URL(), Name: "engine", Inbox: "_INBOX.engine", Log: quiet()})
		require.NoError(t, err)
		t.Cleanup(conn.Close)
		store, err := bus.OpenStore(ctx, conn, replicas)
		require.NoError(t, err)
		return store
	}
	nc, err := nats.Connect(servers[0].URL())
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	direct := func(name string) bool {
		stream, err := js.Stream(ctx, name)
		require.NoError(t, err)
		return stream.CachedInfo().Config.AllowDirect
	}
	session := schemas.Session{Type: schemas.TypeSession, SessionID: "S", Agent: "ada"}
	reads := func(store *bus.Store, user string) {
		t.Helper()
		var s schemas.Session
		revision, err := store.Sessions.Get(ctx, "session.S", &s)
		if !errors.Is(err, bus.ErrNotFound) {
			require.NoError(t, err)
		}
		session.User = user
		_, err = store.Sessions.Put(ctx, "session.S", session, revision, 0)
		require.NoError(t, err)
		_, err = store.Sessions.Get(ctx, "session.S", &s)
		require.NoError(t, err)
		require.Equal(t, user, s.User)
	}

	before := open(1)
	for _, name := range buckets {
		require.True(t, direct(name), name)
	}
	require.False(t, direct("permission_log"), "observers read it, who may do no more")
	reads(before, "of one")

	for _, name := range buckets { // adds replicas as an operator does when one machine is not enough
		stream, err := js.Stream(ctx, name)
		require.NoError(t, err)
		config := stream.CachedInfo().Config
		config.Replicas = 3
		require.Eventually(t, func() bool { // until the leader has heard of the other servers, it puts no replica on them
			_, err = js.UpdateStream(ctx, config)
			return err == nil
		}, 30*time.Second, 50*time.Millisecond, name)
	}
	after := open(3)
	for _, name := range buckets {
		require.False(t, direct(name), name)
	}
	reads(after, "of three")
	reads(before, "opened before")
}

// An engine may start before all servers of its cluster are up. It waits for them, although its first
// tries to make the stores find too few servers.
func TestOpeningAStoreWaitsForServers(t *testing.T) {
	t.Parallel() // this test mostly waits for servers
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := members(t, 3)
	for i := range all[:2] { // the first two servers do not know of the third, so they start without it
		all[i].Routes = all[i].Routes[:2]
	}
	servers, log := embeds(t, all[:2]...), &testlog.Buffer{}
	conn, err := bus.Connect(ctx, bus.Options{
		URL: servers[0].URL(), Name: "engine", Inbox: "_INBOX.engine", Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	opened := make(chan error, 1)
	go func() {
		_, err := bus.OpenStore(ctx, conn, 3)
		opened <- err
	}()
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), "level=WARN msg=\"bus: waiting for more servers of the NATS cluster\" store=KV_pending_permissions replicas=3")
	}, 30*time.Second, 10*time.Millisecond)
	require.Empty(t, opened)
	embeds(t, all[2])
	require.NoError(t, <-opened)
}

// A program that only reads can open a store, and changes nothing on the server.
func TestAnExistingStoreStaysAsItIs(t *testing.T) {
	t.Parallel()
	s, err := bus.Embed(t.Context(), bus.EmbedOptions{DataDir: t.TempDir(), Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	conn, err := bus.Connect(t.Context(), bus.Options{URL: s.URL(), Name: "doctor", Inbox: "_INBOX.doctor", Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	nc, err := nats.Connect(s.URL())
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)

	_, err = bus.OpenExistingStore(t.Context(), conn)
	requireOneLine(t, err, "KV_pending_permissions", "does not exist")
	account, err := js.AccountInfo(t.Context())
	require.NoError(t, err)
	require.Zero(t, account.Streams, "no store was made")

	_, err = bus.OpenStore(t.Context(), conn, 1)
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), buckets[0])
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	config.AllowDirect = false
	_, err = js.UpdateStream(t.Context(), config)
	require.NoError(t, err)
	store, err := bus.OpenExistingStore(t.Context(), conn)
	require.NoError(t, err)
	_, err = store.Presence.LiveKeys(t.Context(), "worker.telegram.*")
	require.NoError(t, err)
	stream, err = js.Stream(t.Context(), buckets[0])
	require.NoError(t, err)
	require.False(t, stream.CachedInfo().Config.AllowDirect, "its read mode stays too")
}
