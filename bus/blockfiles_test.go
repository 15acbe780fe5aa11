package bus

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus/roles"
)

// CountFired returns the number of the server's fired timers, including those not on disk yet.
func (r *Records) CountFired(ctx context.Context) (int, error) {
	info, err := r.stream.Info(ctx, jetstream.WithSubjectFilter(duePrefix+">"))
	if err != nil {
		return 0, err
	}
	return len(info.State.Subjects), nil
}

func startForBlocks(t *testing.T) (*Server, *Store) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	dir, id := t.TempDir(), roles.ID{Role: roles.EngineStore}
	keys, err := roles.OpenKeys(dir)
	require.NoError(t, err)
	require.NoError(t, keys.Ensure(id))
	users, err := keys.Users()
	require.NoError(t, err)
	s, err := Embed(t.Context(), EmbedOptions{DataDir: dir, Users: users, Log: log})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	conn, err := Connect(t.Context(), Options{URL: s.URL(), Server: s, Creds: keys.Path(id), Inbox: id.InboxPrefix()})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	store, err := OpenStore(t.Context(), conn, 1)
	require.NoError(t, err)
	return s, store
}

func TestTheServerHasTheKnownLayout(t *testing.T) {
	t.Parallel()
	_, store := startForBlocks(t)
	for _, k := range []*kvStream{store.Records.kvStream, store.Log.kvStream} {
		require.NotNil(t, k.disk, k.name)
		files := k.disk.store.(*syncedFiles).blockFiles
		require.NoError(t, files.sync())
		require.False(t, files.syncAlways.Load())
		require.True(t, files.syncOnFlush.Load())
		require.DirExists(t, files.dir)
	}
	require.NotNil(t, store.Records.disk)
	require.Nil(t, store.Sessions.disk)
}

func TestDurabilityNamesEveryStream(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/reference/durability.md")
	require.NoError(t, err)
	_, store := startForBlocks(t)
	for _, k := range []*kvStream{store.Records.kvStream, store.Log.kvStream, store.Sessions.kvStream, store.Settings.kvStream, store.Shown.kvStream, store.Presence.kvStream} {
		synced := "by the server, each write"
		switch {
		case k.disk != nil:
			synced = "in groups"
		case k.stream.CachedInfo().Config.PersistMode == jetstream.AsyncPersistMode:
			synced = "later"
		}
		require.Contains(t, string(page), fmt.Sprintf("| `%s` | %s |", k.name, synced))
	}
}

// If a stream's layout is unknown, the server itself syncs the stream, and the log has a warning.
func TestAnUnknownLayoutIsSyncedByTheServer(t *testing.T) {
	t.Parallel()
	s, store := startForBlocks(t)
	_, err := store.conn.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "in_memory", Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	var said strings.Builder
	s.syncs.log = slog.New(slog.NewTextHandler(&said, nil))
	for _, stream := range []string{"in_memory", "missing"} {
		require.Nil(t, s.syncs.of(stream))
	}
	require.Equal(t, 2, strings.Count(said.String(), "the server syncs each of its writes"))
}

// A message that replaces a message in an older block is synced immediately, because the server may
// remove that block before the next group sync. After a write with an unknown outcome, all messages are
// synced immediately (see lateWrite).
func TestAMessageThatReplacesOneInAnOlderBlockIsSyncedAtOnce(t *testing.T) {
	t.Parallel()
	_, store := startForBlocks(t)
	files := store.Log.disk.store.(*syncedFiles).blockFiles
	require.NoError(t, files.sync())
	text := make([]byte, 1<<19)
	publish := func() uint64 {
		ack, err := store.Log.publish(t.Context(), &nats.Msg{Subject: "nod.v1.log.S", Data: text}, 0)
		require.NoError(t, err)
		return ack.Sequence
	}
	first := publish()
	require.True(t, files.inLastBlock(first, 100))
	require.False(t, files.inLastBlock(first, files.blockSize), "no room")
	sent := files.replacing(first, 100)
	require.False(t, files.syncAlways.Load())
	sent(false)
	for newest := first; files.inLastBlock(first, 0) || !files.inLastBlock(newest, 0); {
		newest = publish()
	}
	sent = files.replacing(first, 100)
	require.True(t, files.syncAlways.Load())
	require.NoError(t, files.sync())
	require.True(t, files.syncAlways.Load(), "a sync leaves it on")
	sent(false)
	require.False(t, files.syncAlways.Load())
	files.replacing(first, 100)(true)
	require.True(t, files.syncAlways.Load())
	files.unforce()
	require.False(t, files.syncAlways.Load())
}

// A store that is stopping reports success without a sync. Callers that wait for a sync of that store
// must get an error.
func TestASyncOfAStoppedStreamFails(t *testing.T) {
	t.Parallel()
	s, store := startForBlocks(t)
	_, err := store.Log.publish(t.Context(), &nats.Msg{Subject: "nod.v1.log.S"}, 0)
	require.NoError(t, err)
	files := store.Log.disk.store.(*syncedFiles).blockFiles
	s.nats.ShutdownJetStream()
	require.ErrorIs(t, files.sync(), errStreamStopped)
	require.ErrorIs(t, store.Log.disk.wait(t.Context(), 1<<40), errDisk)
	select {
	case err := <-s.Failed():
		require.ErrorContains(t, err, fmt.Sprint(errStreamStopped))
	case <-time.After(30 * time.Second):
		require.Fail(t, "the failure was not reported")
	}
}

// A stream that is opened while the server closes confirms no write.
func TestAStreamThatOpensWhileTheServerCloses(t *testing.T) {
	t.Parallel()
	s, store := startForBlocks(t)
	clear(s.syncs.streams)
	s.syncs.close()
	require.ErrorIs(t, s.syncs.of(store.Log.name).wait(t.Context(), 1), errServerClosed)
}

// If the server's log reports a failed disk, the channel that Failed returns gets an error; see also
// test/power.
func TestTheServersMessagesAboutItsDiskAreReported(t *testing.T) {
	t.Parallel()
	for _, format := range []string{
		"Filestore [%s] Critical write error: %v", "JetStream stream '%s' critical write error: %v", "JetStream out of %s resources, will be DISABLED: %v",
	} {
		l := &natsLog{log: slog.New(slog.DiscardHandler), disk: newDiskFailure("/data", nil, EmbedOptions{})}
		l.Errorf(format, "S", syscall.ENOSPC)
		require.EqualError(t, <-l.disk.failed, "nothing more can be stored in /data (no space left on device): make room on the disk, then start nod again; all that nod confirmed is stored")
	}
}
