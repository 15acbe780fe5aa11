package bus

import (
	"errors"
	"fmt"
	"syscall"
)

// diskFailure receives the disk failures of an embedded server and passes on the first of them.
type diskFailure struct {
	room    *diskRoom  // frees its reserve of disk room if the failure is a lack of room
	dir     string     // the directory of the server's files
	durable bool       // whether the server confirms a write only once the write is on disk
	failed  chan error // gets the first failure
}

func newDiskFailure(dir string, room *diskRoom, o EmbedOptions) *diskFailure {
	return &diskFailure{room: room, dir: dir, durable: o.SyncInterval <= 0, failed: make(chan error, 1)}
}

// report passes on the first failure that it gets, with a text that names the fix, and ignores later
// failures.
func (f *diskFailure) report(err error) {
	fix := "check the disk"
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		fix = "make room on the disk"
		f.room.giveUp()
	}
	err = fmt.Errorf("nothing more can be stored in %s (%w): %s, then start nod again", f.dir, err, fix)
	if f.durable {
		err = fmt.Errorf("%w; all that nod confirmed is stored", err)
	}
	select {
	case f.failed <- err:
	default: // an earlier failure was passed on
	}
}
