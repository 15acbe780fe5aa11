package bus

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// blockFiles is the storage of one stream of the embedded server. It rests on these facts about
// nats-server 2.15:
//
//   - A stream's messages are in numbered block files under <store>/<account>/streams/<stream>/msgs. The
//     server writes a message to the newest block file before it acknowledges the message and before
//     FastState counts it.
//   - With sync_interval "always", the flag syncAlways of the stream's file store is set. The store then
//     syncs the block file for each message, inside the stream's loop.
//   - If syncOnFlush is set and syncAlways is not, as the server sets the flags for replicated streams,
//     the store remembers which block files are not synced, and FlushAllPending syncs them. The store
//     still syncs all its other files, and any block that it rewrites, at each write.
//   - A change of the stream's configuration sets syncAlways again, under the store's lock mu.
//   - The store does not sync the name of a new block file. blockFiles syncs the name.
//   - As soon as a new message replaces an old one, the store may durably delete or rewrite the block
//     file of the old message, except for the newest block file. If the new message is not synced yet, a
//     power cut would then lose both messages. blockFiles therefore sets syncAlways while the new message
//     is written (see replacing).
//   - A store that is stopping closes its blocks unsynced, and reports success.
//
// The store's fields are unexported, so findBlockFiles checks their names and types. If blockFiles has
// not changed a stream's flags, the server syncs each message of that stream.
type blockFiles struct {
	store                   server.StreamStore
	mu                      *sync.RWMutex // the mutex of the server's store
	syncAlways, syncOnFlush *atomic.Bool
	closing                 *bool
	lastBlock               reflect.Value // the store's pointer to its newest block
	blockSize               uint64        // a block that has reached this size gets no more messages
	dir                     string
	named                   time.Time // the directory's modification time, as read before the last sync of dir

	writes  sync.Mutex // guards the fields pending and forced; locked before the store's mutex
	pending uint64     // the bytes of those messages that replace older messages and that the server may still store
	forced  int        // the server syncs each message while this is not 0
}

// errUnknownLayout means that blockFiles does not know the layout of this version of
// nats-server.
var errUnknownLayout = errors.New("unknown layout of the server's streams")

// findBlockFiles returns the storage of a stream, with the flags through which blockFiles controls the
// syncs.
func findBlockFiles(ns *server.Server, storeDir, account, stream string) (b *blockFiles, err error) {
	defer func() { // package reflect panics if a field has an unexpected kind
		if p := recover(); p != nil {
			b, err = nil, fmt.Errorf("%w: %v", errUnknownLayout, p)
		}
	}()
	js := value(field(reflect.ValueOf(ns).Elem(), "js")).Addr().MethodByName("Load").Call(nil)[0]
	accounts := lockedEntry(js, "accounts", account)
	found := lockedEntry(accounts, "streams", stream)
	store, ok := found.MethodByName("Store").Call(nil)[0].Interface().(server.StreamStore)
	if !ok || store.Type() != server.FileStorage {
		return nil, errUnknownLayout
	}
	b = &blockFiles{store: store, dir: filepath.Join(storeDir, "jetstream", account, "streams", stream, "msgs")}
	fields := reflect.ValueOf(store).Elem()
	b.mu = value(field(fields, "mu")).Addr().Interface().(*sync.RWMutex)
	b.syncAlways = value(field(fields, "syncAlways")).Addr().Interface().(*atomic.Bool)
	b.syncOnFlush = value(field(fields, "syncOnFlush")).Addr().Interface().(*atomic.Bool)
	b.closing = value(field(fields, "closing")).Addr().Interface().(*bool)
	b.lastBlock = value(field(fields, "lmb"))
	b.blockSize = value(field(value(field(fields, "fcfg")), "BlockSize")).Interface().(uint64)
	b.inLastBlock(1, 0) // this test call panics if the block's fields have unexpected types
	if b.syncAlways.Load() == b.syncOnFlush.Load() {
		return nil, errUnknownLayout
	}
	return b, b.syncNames(storeDir)
}

// lockedEntry returns the value under a key of a map. The map is the field with this name in the
// struct to which v points. lockedEntry reads the map under the struct's lock mu.
func lockedEntry(v reflect.Value, name, key string) reflect.Value {
	mu := value(field(v.Elem(), "mu")).Addr().Interface().(*sync.RWMutex)
	mu.RLock()
	defer mu.RUnlock()
	entry := value(field(v.Elem(), name)).MapIndex(reflect.ValueOf(key))
	if !entry.IsValid() || entry.IsNil() {
		panic(fmt.Sprintf("%s has no %q", name, key))
	}
	return entry
}

func field(v reflect.Value, name string) reflect.Value {
	f := v.FieldByName(name)
	if !f.IsValid() {
		panic(fmt.Sprintf("%s has no field %s", v.Type(), name))
	}
	return f
}

// value returns the value of an unexported field, which package reflect alone does not let a caller use.
func value(f reflect.Value) reflect.Value {
	return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
}

func (b *blockFiles) last() uint64 {
	var state server.StreamState
	b.store.FastState(&state)
	return state.LastSeq
}

// errStreamStopped means that the server has stopped the stream, so that a sync proves nothing. The
// server stops streams when it shuts down or when the disk is full.
var errStreamStopped = errors.New("the server has stopped the stream")

func (b *blockFiles) sync() error {
	for {
		b.setFlags()
		if err := b.store.FlushAllPending(); err != nil {
			return err
		}
		if b.stopping() {
			return errStreamStopped
		}
		if b.syncOnFlush.Load() { // if the server has reset the flags before the flush, the flush has synced nothing and is repeated
			return b.syncNewNames()
		}
	}
}

func (b *blockFiles) stopping() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return *b.closing
}

// setFlags sets the flags so that only FlushAllPending syncs messages, unless messages must be synced
// one by one. It sets syncOnFlush before it clears syncAlways, so that at least one of the two flags
// is set for every message.
func (b *blockFiles) setFlags() {
	b.writes.Lock()
	defer b.writes.Unlock()
	b.setFlagsLocked()
}

func (b *blockFiles) setFlagsLocked() {
	always := b.forced > 0
	if b.syncOnFlush.Load() && b.syncAlways.Load() == always {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.syncOnFlush.Store(true)
	b.syncAlways.Store(always)
}

const (
	// inLastBlock counts the last 1/blockMargin of the newest block as full, because other messages may
	// fill that part before the server writes the caller's message.
	blockMargin = 4
	// lateWrite is how long after a write with an unknown outcome the server may still store the
	// message.
	lateWrite = time.Minute
)

// replacing prepares for a new message that replaces the message at the given revision. The server
// syncs the new message immediately, unless the newest block contains the old message and has room
// for the new one. The caller sends the new message and then calls the returned function sent.
func (b *blockFiles) replacing(revision uint64, size int) (sent func(unknown bool)) {
	b.writes.Lock()
	defer b.writes.Unlock()
	b.pending += uint64(size)
	forced := !b.inLastBlock(revision, b.pending)
	if forced {
		b.forced++
		b.setFlagsLocked()
	}
	return func(unknown bool) {
		b.writes.Lock()
		defer b.writes.Unlock()
		b.pending -= uint64(size)
		switch {
		case unknown && !forced:
			b.forced++
			b.setFlagsLocked()
			fallthrough
		case unknown:
			time.AfterFunc(lateWrite, b.unforce)
		case forced:
			b.forced--
			b.setFlagsLocked()
		}
	}
}

func (b *blockFiles) unforce() {
	b.writes.Lock()
	defer b.writes.Unlock()
	b.forced--
	b.setFlagsLocked()
}

// inLastBlock reports whether the newest block contains the message at the given revision and has
// room for size more bytes.
func (b *blockFiles) inLastBlock(revision, size uint64) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.lastBlock.IsNil() {
		return false
	}
	block := b.lastBlock.Elem()
	mu := value(field(block, "mu")).Addr().Interface().(*sync.RWMutex)
	mu.RLock()
	defer mu.RUnlock()
	first := value(field(value(field(block, "first")), "seq")).Addr().Interface().(*uint64)
	used := value(field(block, "rbytes")).Interface().(uint64)
	return revision >= atomic.LoadUint64(first) && used+size < b.blockSize-b.blockSize/blockMargin
}

// tick is longer than the resolution of file times in any kernel.
const tick = 100 * time.Millisecond

// syncNewNames syncs the names of new block files, if the directory has changed since its last sync.
func (b *blockFiles) syncNewNames() error {
	info, err := os.Stat(b.dir)
	if err != nil {
		return err
	}
	changed := info.ModTime()
	if changed.Equal(b.named) {
		return nil
	}
	now := time.Now()
	if err := syncDir(b.dir); err != nil {
		return err
	}
	if now.Sub(changed) > tick { // only a time older than a tick is kept, because a later change in the same tick could leave the time unchanged
		b.named = changed
	}
	return nil
}

// syncNames syncs the names of the stream's directories and of all their parents.
func (b *blockFiles) syncNames(storeDir string) error {
	for dir := b.dir; ; dir = filepath.Dir(dir) {
		if err := syncDir(dir); err != nil {
			return err
		}
		if dir == storeDir || dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// syncTree syncs all files and directories under dir. This is needed because a killed process may
// have left data that other processes can read although it is not on disk yet.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir():
			return syncDir(path)
		case e.Type().IsRegular():
			return syncFile(path)
		}
		return nil
	})
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncDir syncs the names in a directory. On Windows, which cannot sync them, it does nothing.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// SyncStores syncs the stores in a data directory to disk. No server may run on the directory.
func SyncStores(dataDir string) error { return syncTree(filepath.Join(dataDir, storeName)) }
