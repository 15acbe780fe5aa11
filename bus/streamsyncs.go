package bus

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/nodbus/nod/bus/roles"
)

// Values of EmbedOptions.SyncInterval that are not an interval.
const (
	// With SyncGroup, a connection with Options.Server reports a write as stored once it is
	// synced. One sync serves all waiting writes.
	SyncGroup time.Duration = 0
	// With SyncAlways, the server syncs each write on its own before it acknowledges it.
	SyncAlways time.Duration = -1
)

type streamSyncs struct {
	nats     *server.Server
	storeDir string
	account  string
	before   func(stream string) error // the function EmbedOptions.BeforeSync
	log      *slog.Logger
	failed   chan error // gets the error of the first failed sync

	mu      sync.Mutex
	streams map[string]*groupSync
	closed  bool
}

func newStreamSyncs(ns *server.Server, storeDir string, o EmbedOptions) *streamSyncs {
	account := string(roles.Store)
	if len(o.Users) == 0 {
		account = server.DEFAULT_GLOBAL_ACCOUNT
	}
	return &streamSyncs{
		nats: ns, storeDir: storeDir, account: account, before: o.BeforeSync, log: cmp.Or(o.Log, slog.Default()),
		failed: make(chan error, 1), streams: map[string]*groupSync{},
	}
}

// of returns the groupSync of a stream. If the layout of this nats-server's streams is unknown,
// it returns nil, and the server syncs each message.
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
	g := newGroupSync(&syncedFiles{files, func() error { return s.beforeSync(stream) }}, s.fail)
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

func (s *streamSyncs) fail(err error) {
	fix := "check the disk"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		fix = "make room on the disk"
	}
	select {
	case s.failed <- fmt.Errorf("nothing more can be stored in %s (%w): %s, then start nod again; all that nod confirmed is stored", s.storeDir, err, fix):
	default: // the channel has the error of another stream already
	}
}

// close ends all waits for syncs.
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
