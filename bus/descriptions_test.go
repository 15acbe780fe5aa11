package bus_test

import (
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/internal/testlog"
)

// described is a data directory with an entry in each kind of stream, and with consumers that have
// acknowledged messages.
type described struct {
	t      *testing.T
	dir    string
	said   *testlog.Buffer
	server *bus.Server
	conn   *bus.Conn
	js     jetstream.JetStream
}

func (d *described) start() {
	d.t.Helper()
	keys, users := keysOf(d.t, d.dir, asEngineStore)
	d.said = &testlog.Buffer{}
	log := slog.New(slog.NewTextHandler(d.said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var err error
	d.server, err = bus.Embed(d.t.Context(), bus.EmbedOptions{DataDir: d.dir, Users: users, Log: log})
	require.NoError(d.t, err)
	d.t.Cleanup(func() { _ = d.server.Close() }) // the function stop may have closed the server already
	d.conn, err = bus.Connect(d.t.Context(), bus.Options{URL: d.server.URL(), Server: d.server, Creds: keys.Path(asEngineStore), Inbox: asEngineStore.InboxPrefix(), Log: quiet()})
	require.NoError(d.t, err)
	d.t.Cleanup(d.conn.Close)
	key, err := nats.NkeyOptionFromSeed(keys.Path(asEngineStore))
	require.NoError(d.t, err)
	nc, err := nats.Connect(d.server.URL(), d.server.InProcess(), key, nats.CustomInboxPrefix(asEngineStore.InboxPrefix()))
	require.NoError(d.t, err)
	d.t.Cleanup(nc.Close)
	d.js, err = jetstream.New(nc)
	require.NoError(d.t, err)
}

func (d *described) stop() {
	d.t.Helper()
	d.conn.Close()
	require.NoError(d.t, d.server.Close())
}

func (d *described) open() *bus.Store {
	d.t.Helper()
	store, err := bus.OpenStore(d.t.Context(), d.conn, 1)
	require.NoError(d.t, err)
	return store
}

// fill stores two records, and acknowledges the messages about them in the outbox.
func (d *described) fill() {
	store := d.open()
	for _, id := range []string{"1", "2"} {
		_, err := store.Records.Create(d.t.Context(), pendingEntry(id))
		require.NoError(d.t, err)
	}
	prompts, err := bus.OpenPrompts(d.t.Context(), d.conn, 1)
	require.NoError(d.t, err)
	require.NoError(d.t, prompts.Serve(d.t.Context(), "tg"))
	_, err = store.Records.Due(d.t.Context(), time.Minute)
	require.NoError(d.t, err)
	outbox, err := store.Records.Outbox(d.t.Context(), time.Minute)
	require.NoError(d.t, err)
	acknowledged := make(chan bool, 2)
	stop, err := outbox.Consume(func(m *bus.Delivery) {
		m.Done()
		acknowledged <- true
	})
	require.NoError(d.t, err)
	<-acknowledged
	<-acknowledged
	stop()
	require.Eventually(d.t, func() bool { return d.outbox().AckFloor.Consumer == 2 }, patience, time.Millisecond)
}

func (d *described) outbox() *jetstream.ConsumerInfo {
	d.t.Helper()
	c, err := d.js.Consumer(d.t.Context(), "KV_pending_permissions", "nod-outbox")
	require.NoError(d.t, err)
	return c.CachedInfo()
}

func (d *described) files() map[string]string {
	files := map[string]string{}
	require.NoError(d.t, filepath.WalkDir(filepath.Join(d.dir, "nats"), func(path string, _ fs.DirEntry, err error) error {
		if name := filepath.Base(path); name == "meta.inf" || name == "meta.sum" {
			data, err := os.ReadFile(path)
			files[path] = string(data)
			return err
		}
		return err
	}))
	return files
}

// A power cut may damage the descriptions of streams and consumers. The server then starts with all
// messages, and with the consumers at their positions.
func TestADamagedDescriptionIsWrittenAnew(t *testing.T) {
	t.Parallel()
	d := &described{t: t, dir: t.TempDir()}
	d.start()
	d.fill()
	d.stop()
	intact := d.files()
	require.Len(t, intact, 2*(7+3), "seven streams and three consumers")

	for name, damage := range map[string]func(path string, data []byte) error{
		"empty": func(path string, _ []byte) error { return os.WriteFile(path, nil, 0o600) },
		"torn":  func(path string, data []byte) error { return os.WriteFile(path, data[:len(data)/2], 0o600) },
		"zeros": func(path string, data []byte) error { return os.WriteFile(path, make([]byte, len(data)), 0o600) },
		"gone":  func(path string, _ []byte) error { return os.Remove(path) },
		"description gone": func(path string, _ []byte) error {
			if filepath.Base(path) == "meta.inf" {
				return os.Remove(path)
			}
			return nil
		},
		"old checksum": func(path string, data []byte) error {
			if filepath.Base(path) == "meta.sum" {
				return os.WriteFile(path, []byte("0123456789abcdef"), 0o600)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			d.t = t
			for path, data := range d.files() {
				require.NoError(t, damage(path, []byte(data)))
			}
			d.start()
			require.Contains(t, d.said.String(), "KV_pending_permissions/meta.inf")
			require.EqualValues(t, 2, d.outbox().AckFloor.Consumer)
			require.Zero(t, d.outbox().NumPending, "the outbox has acknowledged both records")
			store, err := bus.OpenExistingStore(t.Context(), d.conn)
			require.NoError(t, err)
			for _, id := range []string{"1", "2"} {
				_, err = store.Records.Get(t.Context(), "S."+id)
				require.NoError(t, err)
			}
			store = d.open()
			_, err = store.Records.Outbox(t.Context(), time.Minute)
			require.NoError(t, err)
			_, err = store.Records.Due(t.Context(), time.Minute)
			require.NoError(t, err)
			prompts, err := bus.OpenPrompts(t.Context(), d.conn, 1)
			require.NoError(t, err)
			require.NoError(t, prompts.Serve(t.Context(), "tg"))
			d.stop()
			require.Len(t, d.files(), len(intact))
		})
	}
}

// If a power cut has damaged a consumer's position, the consumer delivers all messages again.
func TestAConsumerWithADamagedPositionDeliversAgain(t *testing.T) {
	t.Parallel()
	d := &described{t: t, dir: t.TempDir()}
	d.start()
	d.fill()
	d.stop()
	position := filepath.Join(d.dir, "nats/jetstream/STORE/streams/KV_pending_permissions/obs/nod-outbox/o.dat")
	intact, err := os.ReadFile(position)
	require.NoError(t, err)
	for length := range len(intact) {
		require.NoError(t, os.WriteFile(position, intact[:length], 0o600))
		d.start()
		require.Contains(t, d.said.String(), position)
		require.EqualValues(t, 2, d.outbox().NumPending)
		d.stop()
	}
}

// A description that cannot be read is not replaced, because it may be intact.
func TestADescriptionThatCannotBeReadIsNamed(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"meta.inf", "meta.sum", "obs/nod-outbox/meta.inf", "obs/nod-outbox/o.dat"} {
		t.Run(file, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "nats/jetstream/STORE/streams/KV_pending_permissions", file)
			require.NoError(t, os.MkdirAll(path, 0o700)) // the directory stands for a file that cannot be read
			_, users := keysOf(t, dir, asEngineStore)
			_, err := bus.Embed(t.Context(), bus.EmbedOptions{DataDir: dir, Users: users, Log: quiet()})
			requireOneLine(t, err, path, "check the disk")
			require.DirExists(t, path)
		})
	}
}

// A start leaves an intact description as it is, even if the description differs from nod's own
// configuration. It also leaves a consumer's position with unacknowledged and redelivered messages as it
// is.
func TestAnIntactDescriptionStays(t *testing.T) {
	t.Parallel()
	d := &described{t: t, dir: t.TempDir()}
	d.start()
	d.fill()
	store := d.open()
	require.NoError(t, store.Log.Retain(t.Context(), time.Hour, 1<<20))
	_, err := store.Records.Create(t.Context(), pendingEntry("3"))
	require.NoError(t, err)
	outbox, err := store.Records.Outbox(t.Context(), time.Minute)
	require.NoError(t, err)
	redelivered := make(chan bool, 1)
	stop, err := outbox.Consume(func(m *bus.Delivery) {
		if m.Times < 3 {
			m.Again(time.Millisecond)
			return
		}
		redelivered <- true
	})
	require.NoError(t, err)
	<-redelivered
	stop()
	d.stop()
	before := d.files()
	d.start()
	require.Empty(t, d.said.String())
	require.Equal(t, 1, d.outbox().NumAckPending)
	require.Equal(t, 1, d.outbox().NumRedelivered)
	d.stop()
	require.True(t, maps.Equal(before, d.files()))
}
