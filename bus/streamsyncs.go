package bus

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/nodbus/nod/bus/roles"
)

// These values of EmbedOptions.SyncInterval are not intervals.
const (
	// With SyncGroup, a connection with Options.Server reports a write as stored only after the sync.
	// One sync serves all waiting writes.
	SyncGroup time.Duration = 0
	// With SyncAlways, the server syncs each write by itself before it acknowledges the write.
	SyncAlways time.Duration = -1
)

type streamSyncs struct {
	nats     *server.Server
	storeDir string
	account  string
	before   func(stream string) error // the function EmbedOptions.BeforeSync
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

// The method of returns the groupSync of a stream. If nod does not know how this version of
// nats-server stores streams, the result is nil, and the server syncs each message.
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
