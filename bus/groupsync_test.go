package bus_test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nodbus/nod/bus"
	"github.com/nodbus/nod/bus/roles"
	"github.com/nodbus/nod/schemas"
)

const patience = 30 * time.Second

// disk is the disk of an embedded server. A test can delay its syncs and make them fail.
type disk struct {
	mu     sync.Mutex
	gate   chan struct{} // syncs wait until this channel is closed; if it is nil, they do not wait
	err    error
	waited chan string // receives the name of the stream of each sync that waits
}

func (d *disk) beforeSync(stream string) error {
	d.mu.Lock()
	gate, err := d.gate, d.err
	d.mu.Unlock()
	if gate != nil {
		d.waited <- stream
		<-gate
	}
	return err
}

// hang delays all syncs that begin after the call, until the returned function is called.
func (d *disk) hang() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	gate := make(chan struct{})
	d.gate = gate
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.gate == gate {
			d.gate = nil
		}
		close(gate)
	})
}

func (d *disk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

type grouped struct {
	*disk
	server *bus.Server
	store  *bus.Store
}

func startGrouped(t *testing.T, dir string) *grouped {
	t.Helper()
	g := &grouped{disk: &disk{waited: make(chan string, 100)}}
	keys, users := keysOf(t, dir, asEngineStore)
	var err error
	g.server, err = bus.Embed(t.Context(), bus.EmbedOptions{DataDir: dir, Users: users, Log: quiet(), BeforeSync: g.beforeSync})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.server.Close()) })
	conn, err := bus.Connect(t.Context(), bus.Options{URL: g.server.URL(), Server: g.server, Creds: keys.Path(asEngineStore), Inbox: asEngineStore.InboxPrefix(), Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	g.store, err = bus.OpenStore(t.Context(), conn, 1)
	require.NoError(t, err)
	return g
}

func pendingEntry(id string) bus.Entry {
	at := time.Now().Add(time.Hour)
	return bus.Entry{Key: "S." + id, Record: schemas.Record{
		Type: schemas.TypeRecord, Agent: "ada", Digest: "d", Deadline: at,
		NextEvent: &schemas.Event{Kind: schemas.EventDeadline, At: at},
		Waiters:   []schemas.Waiter{{PendingID: id, Digest: "d", Deadline: at}},
	}}
}

// Every operation returns only once the data that it has written or read is on disk.
func TestNothingIsReportedBeforeItsSync(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g := startGrouped(t, t.TempDir())
	outbox, err := g.store.Records.Outbox(ctx, time.Minute)
	require.NoError(t, err)
	clock, err := g.store.Records.Due(ctx, time.Minute)
	require.NoError(t, err)
	entry := pendingEntry("1")
	entry.Revision, err = g.store.Records.Create(ctx, entry)
	require.NoError(t, err)
	soon := pendingEntry("2")
	soon.Record.NextEvent.At = time.Now()

	release := g.hang()
	t.Cleanup(release)
	done := make(chan string, 100)
	operations := map[string]func() error{
		"create": func() error { _, err := g.store.Records.Create(ctx, soon); return err },
		"update": func() error { _, err := g.store.Records.Update(ctx, entry); return err },
		"append": func() error {
			_, _, err := g.store.Log.Append(ctx, "id", schemas.LogEntry{Type: schemas.TypeLogEntry, Kind: schemas.LogAsked, At: time.Now(), SessionID: "S"})
			return err
		},
	}
	errs := make(chan error, 100)
	run := func(name string, f func() error) {
		go func() {
			err := f()
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			errs <- err
			done <- name
		}()
	}
	for name, f := range operations {
		run(name, f)
	}
	require.Eventually(t, func() bool { return len(g.waited) == 2 }, patience, time.Millisecond, "both streams sync")
	stops := make([]func(), 0, 2)
	for name, q := range map[string]*bus.Queue{"outbox": outbox, "clock": clock} {
		stop, err := q.Consume(func(d *bus.Delivery) {
			d.Done()
			done <- name
		})
		require.NoError(t, err)
		stops = append(stops, stop)
	}
	defer func() {
		for _, stop := range stops {
			stop()
		}
	}()
	awaitStored(t, g)
	reads := map[string]func() error{
		"get":  func() error { _, err := g.store.Records.Get(ctx, "S.2"); return err },
		"read": func() error { _, err := g.store.Log.Read(ctx, 1); return err },
		"scan": func() error {
			return g.store.Records.Scan(ctx, "", 0, func(bus.ScannedRecord) bool { return true })
		},
	}
	for name, f := range reads {
		run(name, f)
	}
	select {
	case name := <-done:
		require.Fail(t, "reported before its sync", name)
	case <-time.After(time.Second):
	}
	release()
	want := map[string]bool{"create": true, "update": true, "append": true, "outbox": true, "clock": true, "get": true, "read": true, "scan": true}
	for deadline := time.After(patience); len(want) > 0; {
		select {
		case name := <-done:
			delete(want, name)
		case <-deadline:
			require.Empty(t, want, "not reported after the sync")
		}
	}
	for range len(operations) + len(reads) {
		require.NoError(t, <-errs)
	}
}

// awaitStored waits until the server has a new record and the record's fired timer.
func awaitStored(t *testing.T, g *grouped) {
	t.Helper()
	require.Eventually(t, func() bool {
		fired, err := g.store.Records.CountFired(t.Context())
		return err == nil && fired == 1
	}, patience, 10*time.Millisecond)
}

// No operation reports success after a failed sync. The log reports the failure once, with the fix.
func TestAFailedSyncConfirmsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := startGrouped(t, dir)
	told := pendingEntry("1")
	_, err := g.store.Records.Create(t.Context(), told)
	require.NoError(t, err)
	g.fail(syscall.ENOSPC)
	_, err = g.store.Records.Create(t.Context(), pendingEntry("2"))
	require.ErrorIs(t, err, bus.ErrUnknown)
	g.fail(nil) // the success of this later sync proves nothing, because the kernel may have dropped the data after the failure
	_, err = g.store.Records.Create(t.Context(), pendingEntry("3"))
	require.ErrorIs(t, err, bus.ErrUnknown)
	select {
	case err := <-g.server.Failed():
		require.ErrorContains(t, err, "make room on the disk, then start nod again")
	case <-time.After(patience):
		require.Fail(t, "the failure was not reported")
	}
	require.NoError(t, g.server.Close())
	g = startGrouped(t, dir)
	_, err = g.store.Records.Get(t.Context(), told.Key)
	require.NoError(t, err)
}

// If a server closes while its disk hangs, all waits for a sync end with an error.
func TestAServerClosesWhileASyncHangs(t *testing.T) {
	t.Parallel()
	g := startGrouped(t, t.TempDir())
	t.Cleanup(g.hang())
	failed := make(chan error, 1)
	go func() {
		_, err := g.store.Records.Create(context.Background(), pendingEntry("1"))
		failed <- err
	}()
	<-g.waited
	require.NoError(t, g.server.Close())
	select {
	case err := <-failed:
		require.ErrorIs(t, err, bus.ErrUnknown)
	case <-time.After(patience):
		require.Fail(t, "the write still waits for its sync")
	}
}

// A sync confirms only those writes that were stored before the sync began.
func TestAWriteDuringASyncWaitsForTheNextSync(t *testing.T) {
	t.Parallel()
	g := startGrouped(t, t.TempDir())
	endFirst := g.hang()
	t.Cleanup(endFirst)
	create := func(id string) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := g.store.Records.Create(t.Context(), pendingEntry(id))
			done <- err
		}()
		return done
	}
	first := create("1")
	<-g.waited
	endSecond := g.hang()
	t.Cleanup(endSecond)
	second := create("2")
	require.Eventually(t, func() bool {
		n, err := g.store.Records.CountPending(t.Context(), "")
		return err == nil && n == 2
	}, patience, time.Millisecond, "the server has both timers")
	endFirst()
	require.NoError(t, <-first)
	select {
	case <-g.waited:
	case err := <-second:
		require.Fail(t, "reported before its sync", err)
	case <-time.After(patience):
		require.Fail(t, "there is no second sync")
	}
	endSecond()
	require.NoError(t, <-second)
}

func TestOneSyncServesAllWaitingWrites(t *testing.T) {
	t.Parallel()
	g := startGrouped(t, t.TempDir())
	release := g.hang()
	t.Cleanup(release)
	errs := make(chan error, 32)
	for i := range cap(errs) {
		go func() {
			_, err := g.store.Records.Create(t.Context(), pendingEntry(fmt.Sprint(i)))
			errs <- err
		}()
	}
	<-g.waited
	release()
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
}

func TestEnginesOfOtherProcessesCannotUseGroupedStores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys, users := keysOf(t, dir, asEngineStore, asOwnerStore)
	s, err := bus.Embed(t.Context(), bus.EmbedOptions{DataDir: dir, Users: users, Log: quiet()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	connect := func(id roles.ID, in *bus.Server) error {
		conn, err := bus.Connect(t.Context(), bus.Options{URL: s.URL(), Server: in, Creds: keys.Path(id), Inbox: id.InboxPrefix()})
		if err == nil {
			conn.Close()
		}
		return err
	}
	require.NoError(t, connect(asEngineStore, s))
	require.NoError(t, connect(asOwnerStore, nil))
	require.ErrorContains(t, connect(asEngineStore, nil), "refused these credentials")
}
