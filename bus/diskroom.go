package bus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// reserveName is the file in the data directory that keeps room for decisions.
	reserveName = "reserve"
	// maxReserve bounds the size of the reserve, in bytes. On a small disk the reserve is
	// reserveShare of the disk.
	maxReserve   = 32 << 20
	reserveShare = 16
	// checkRoomEvery is the interval of the checks without a new request: the server writes by
	// itself too, for example fired timers.
	checkRoomEvery = time.Second
	// roomCheckedFor is how long one check serves all requests.
	roomCheckedFor = 20 * time.Millisecond
)

// diskRoom keeps a disk from becoming so full that the decisions of pending requests cannot be
// stored. nats-server stores nothing more in a stream after one failed write, so its disk must
// not become full at all. diskRoom therefore takes two measures:
//
//   - If less than the size of the reserve is free, look returns an error, and engines accept no
//     new request.
//   - If other programs fill the disk all the same, diskRoom removes a file that it had
//     allocated for this, the reserve, and the decisions of pending requests get its room.
//
// Once there is room for both, it allocates the reserve again, and look returns nil. On a system
// that cannot allocate room, the free room alone counts; on one that cannot measure it, look
// always returns nil.
type diskRoom struct {
	dir      string
	size     uint64 // of the reserve; also the room below which no request is accepted
	log      *slog.Logger
	measure  func(dir string) (free, total uint64, err error)
	allocate func(path string, size uint64) error

	mu      sync.Mutex
	held    bool // the reserve is allocated
	never   bool // this system cannot allocate a reserve
	checked time.Time
	low     *lowDisk // no new request is accepted for this reason

	watch sync.WaitGroup
	stop  context.CancelFunc // ends the checks at intervals
}

// newDiskRoom allocates the reserve of a data directory, unless an earlier server has left it.
func newDiskRoom(dir string, log *slog.Logger) *diskRoom {
	r := &diskRoom{dir: dir, log: log, measure: diskSpace, allocate: allocateFile}
	_, total, err := r.measure(dir)
	if err != nil {
		return r // a size of 0 refuses nothing
	}
	r.size = min(maxReserve, total/reserveShare)
	info, err := os.Stat(r.path())
	r.held = err == nil && uint64(info.Size()) == r.size
	if err == nil && !r.held { // the disk has another size than before
		_ = os.Remove(r.path()) // a file that stays counts as no reserve
	}
	r.update()
	return r
}

func (r *diskRoom) path() string { return filepath.Join(r.dir, reserveName) }

// look returns why no new request can be accepted, or nil. It gives up the reserve if the disk is
// full, so it comes before each write.
func (r *diskRoom) look() *lowDisk {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.checked) > roomCheckedFor {
		r.update()
	}
	return r.low
}

// update measures the disk, and removes or allocates the reserve. The caller holds mu, or is the
// only one that knows r. It takes a quarter more to end a refusal than to begin it, so that it
// does not alternate.
func (r *diskRoom) update() {
	r.checked = time.Now()
	if r.size == 0 {
		return
	}
	free, _, err := r.measure(r.dir)
	if err != nil {
		r.log.Warn("bus: the free room of the disk cannot be measured", "dir", r.dir, "error", err)
		return
	}
	var failed error
	switch more := r.size / 4; {
	case r.held && free < more:
		free += r.release()
	case !r.held && !r.never && free >= 2*r.size+more:
		if failed = r.allocate(r.path(), r.size); failed == nil {
			free, r.held = free-r.size, true
		}
	}
	if errors.Is(failed, errors.ErrUnsupported) {
		r.never, failed = true, nil
	}
	r.report(lowDisk{free: free, needed: r.needed(), failed: failed})
}

// needed returns the free room below which no request is accepted. The caller holds mu.
func (r *diskRoom) needed() uint64 {
	switch {
	case !r.held && !r.never:
		return 2*r.size + r.size/4
	case r.low != nil:
		return r.size + r.size/4
	}
	return r.size
}

// release removes the reserve and returns its size. The caller holds mu.
func (r *diskRoom) release() uint64 {
	r.held = false
	if err := os.Remove(r.path()); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.log.Warn("bus: the room kept for decisions cannot be used", "error", err)
		}
		return 0
	}
	r.log.Warn("bus: the disk is full: the decisions of pending requests now use the room that was kept for them", "dir", r.dir, "bytes", r.size)
	return r.size
}

// report notes whether there is room. The caller holds mu.
func (r *diskRoom) report(now lowDisk) {
	was := r.low
	r.low = nil
	if now.failed != nil || now.free < now.needed {
		r.low = &now
	}
	switch {
	case was == nil && r.low != nil:
		r.log.Error("bus: no new request is accepted: "+now.Error(), "dir", r.dir)
	case was != nil && r.low == nil:
		r.log.Warn("bus: the disk has room again: new requests are accepted", "dir", r.dir, "free", now.free)
	}
}

// giveUp removes the reserve because a write has failed: the next server on this directory needs
// the room to start.
func (r *diskRoom) giveUp() {
	if r == nil { // a test of diskFailure has no room
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		r.release()
	}
}

// start checks the room at intervals, until close is called.
func (r *diskRoom) start() {
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	r.watch.Go(func() {
		tick := time.NewTicker(checkRoomEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				r.look()
			case <-ctx.Done():
				return
			}
		}
	})
}

// close ends all checks: after it, the directory may be another server's.
func (r *diskRoom) close() {
	r.stop()
	r.watch.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size, r.held = 0, false
}

// lowDisk is the ErrFull of an embedded server.
type lowDisk struct {
	free, needed uint64
	failed       error // the reserve could not be allocated, although the disk has room
}

func (e *lowDisk) Error() string {
	if e.failed != nil {
		return fmt.Sprintf("nod cannot keep room on the disk of its data directory for the decisions of pending requests (%v), so it accepts no new request: make room for its user on that disk; nod then goes on by itself", e.failed)
	}
	return fmt.Sprintf("the disk of nod's data directory is almost full (%.1f MB are free), and nod accepts no new request below %.1f MB, to have room for the decisions of pending ones: make room on that disk; nod then goes on by itself", float64(e.free)/1e6, float64(e.needed)/1e6)
}

func (e *lowDisk) Is(target error) bool { return target == ErrFull }

// Room returns why the stores can take no new request, or nil. The error is ErrFull. Only stores
// of an embedded server know; other servers refuse the write.
func (s *Store) Room() error {
	if s.conn.server == nil {
		return nil
	}
	if low := s.conn.server.room.look(); low != nil {
		return low
	}
	return nil
}
