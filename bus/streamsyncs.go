package bus

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/nodbus/nod/bus/roles"
)

// The values of EmbedOptions.SyncInterval that are not an interval.
const (
	// SyncGroup syncs a write before a connection with Options.Server reports it as stored.
	// One sync serves all writes that wait for it.
	SyncGroup time.Duration = 0
	// SyncAlways syncs each write on its own, before the server acknowledges it.
	SyncAlways time.Duration = -1
)

// streamSyncs holds the groupSync of each stream of the embedded server.
type streamSyncs struct {
	nats     *server.Server
	storeDir string
	account  string
	before   func(stream string) error // see EmbedOptions.BeforeSync
	log      *slog.Logger
	disk     *diskFailure

	mu      sync.Mutex
	streams map[string]*groupSync
	closed  bool
}

func newStreamSyncs(ns *server.Server, storeDir string, disk *diskFailure, o EmbedOptions) *streamSyncs {
	return &streamSyncs{
		nats: ns, storeDir: storeDir, account: string(roles.Store), before: o.BeforeSync, log: cmp.Or(o.Log, slog.Default()),
		disk: disk, streams: map[string]*groupSync{},
	}
}

// of returns the groupSync of a stream. It returns nil, so that the server syncs each message
// of the stream, if it does not know the layout of this version of nats-server.
func (s *streamSyncs) of(stream string) *groupSync {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	files, err := findBlockFiles(s.nats, s.storeDir, s.account, stream)
	if err != nil {
		s.log.Warn("bus: the syncs of a stream cannot be grouped; the server syncs each of its writes", "stream", stream, "error", err)
		return nil
	}
	if g := s.streams[stream]; g != nil && g.store.(*syncedFiles).store == files.store {
		return g
	}
	g := newGroupSync(&syncedFiles{files, func() error { return s.beforeSync(stream) }}, s.disk.report)
	if s.closed {
		g.close()
	}
	s.streams[stream] = g
	return g
}

// syncedFiles is blockFiles with a call before each sync.
type syncedFiles struct {
	*blockFiles
	before func() error
}

func (f *syncedFiles) sync() error {
	if err := f.before(); err != nil {
		return err
	}
	return f.blockFiles.sync()
}

func (s *streamSyncs) beforeSync(stream string) error {
	if s.before == nil {
		return nil
	}
	return s.before(stream)
}

// close ends the waits for syncs.
func (s *streamSyncs) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, g := range s.streams {
		g.close()
	}
}
