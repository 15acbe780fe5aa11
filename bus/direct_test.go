package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/schemas"
)

// buckets are the streams to which the test adds replicas.
var buckets = []string{"KV_pending_permissions", "KV_permission_sessions", "KV_permission_settings"}

// A bucket of one replica answers direct reads. With several replicas only the leader answers
// reads, even to clients that opened the store while the bucket had one replica.
func TestOnlyTheLeaderServesReadsOfAReplicatedBucket(t *testing.T) {
	var servers []*bus.Server
	var routes []string
	for _, name := range []string{"n1", "n2", "n3"} {
		s, err := bus.Embed(t.Context(), bus.EmbedOptions{
			DataDir: t.TempDir(), Log: quiet(), SyncInterval: time.Minute,
			ServerName: name, ClusterName: "c", ClusterPort: -1, Routes: routes,
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		servers, routes = append(servers, s), append(routes, s.RouteURL())
	}
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

	for _, name := range buckets { // an operator adds replicas like this when one machine is not enough
		stream, err := js.Stream(ctx, name)
		require.NoError(t, err)
		config := stream.CachedInfo().Config
		config.Replicas = 3
		_, err = js.UpdateStream(ctx, config)
		require.NoError(t, err)
	}
	after := open(3)
	for _, name := range buckets {
		require.False(t, direct(name), name)
	}
	reads(after, "of three")
	reads(before, "opened before")
}

func TestAnExistingStoreStaysAsItIs(t *testing.T) {
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
