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
	// reserveName is the file in the data directory that reserves room on the disk for decisions.
	reserveName = "reserve"
	// maxReserve is the greatest size of the reserve, in bytes. On a small disk the reserve is
	// 1/reserveShare of the disk.
	maxReserve   = 32 << 20
	reserveShare = 16
	// checkRoomEvery is the interval of checks while no request comes, because the server also writes
	// without requests, for example fired timers.
	checkRoomEvery = time.Second
	// roomCheckedFor is how long the result of one check counts for all requests.
	roomCheckedFor = 20 * time.Millisecond
)

// diskRoom keeps room on the disk for the decisions of pending requests. The disk must not become full at
// all, because after one failed write nats-server stores nothing more in that stream. diskRoom therefore
// takes two measures:
//
//   - While less room is free than the size of the reserve, the method look returns an error, and engines
//     accept no new request.
//   - The reserve is a file whose room diskRoom has allocated. If other programs fill the disk
//     nevertheless, diskRoom removes the reserve, and the decisions of pending requests use its room.
//
// Once there is room for new requests and the reserve, diskRoom allocates the reserve again, and look
// returns nil. If the system cannot allocate a reserve, only the free room counts. If the system cannot
// measure the free room, look always returns nil.
type diskRoom struct {
	dir      string
	size     uint64 // the reserve's size, which is also the free room below which no request is accepted
	log      *slog.Logger
	measure  func(dir string) (free, total uint64, err error)
	allocate func(path string, size uint64) error

	mu      sync.Mutex
	held    bool // the reserve is allocated now
	never   bool // this system can never allocate a reserve
	checked time.Time
	low     *lowDisk // why no new request is accepted; nil if requests are accepted

	watch sync.WaitGroup
	stop  context.CancelFunc // ends the checks that the method start began
}

// newDiskRoom allocates the reserve of a data directory, or takes over the reserve of an earlier server.
func newDiskRoom(dir string, log *slog.Logger) *diskRoom {
	r := &diskRoom{dir: dir, log: log, measure: diskSpace, allocate: allocateFile}
	_, total, err := r.measure(dir)
	if err != nil {
		return r // with the size 0, every request is accepted
	}
	r.size = min(maxReserve, total/reserveShare)
	info, err := os.Stat(r.path())
	r.held = err == nil && uint64(info.Size()) == r.size
	if err == nil && !r.held { // the size of the disk has changed since the reserve was made
		_ = os.Remove(r.path()) // if Remove fails, the file remains and is not used as a reserve
	}
	r.update()
	return r
}

func (r *diskRoom) path() string { return filepath.Join(r.dir, reserveName) }

// look returns an error if no new request can be accepted, and else nil. Each write calls look first,
// because look frees the reserve if the disk is full.
func (r *diskRoom) look() *lowDisk {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.checked) > roomCheckedFor {
		r.update()
	}
	return r.low
}

// update measures the disk, and removes or allocates the reserve. If requests are refused, update
// accepts them again only if the free room exceeds the limit by a quarter of the reserve, so that
// refusal and acceptance do not alternate quickly. The caller holds mu, unless no other goroutine
// knows r.
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

// needed returns the free room below which no new request is accepted. The caller holds mu.
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

// report stores and logs whether new requests are accepted. The caller holds mu.
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

// giveUp removes the reserve after a failed write, because the next server on the data directory
// needs the room to start.
func (r *diskRoom) giveUp() {
	if r == nil { // some tests use a diskFailure without a diskRoom
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

// close ends all checks and changes of the reserve, because the directory may then be used by another
// server.
func (r *diskRoom) close() {
	r.stop()
	r.watch.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size, r.held = 0, false
}

// lowDisk is the ErrFull of an embedded server, with the reason.
type lowDisk struct {
	free, needed uint64
	failed       error // why the reserve could not be allocated even though the disk has room
}

func (e *lowDisk) Error() string {
	if e.failed != nil {
		return fmt.Sprintf("nod cannot keep room on the disk of its data directory for the decisions of pending requests (%v), so it accepts no new request: make room for its user on that disk; nod then goes on by itself", e.failed)
	}
	return fmt.Sprintf("the disk of nod's data directory is almost full (%.1f MB are free), and nod accepts no new request below %.1f MB, to have room for the decisions of pending ones: make room on that disk; nod then goes on by itself", float64(e.free)/1e6, float64(e.needed)/1e6)
}

func (e *lowDisk) Is(target error) bool { return target == ErrFull }

// Room returns an ErrFull if the stores can take no new request, and else nil. If the server is in
// another process, Room returns nil, because such a server refuses the write itself.
func (s *Store) Room() error {
	if s.conn.server == nil {
		return nil
	}
	if low := s.conn.server.room.look(); low != nil {
		return low
	}
	return nil
}
