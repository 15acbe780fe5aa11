//go:build unix

package hook

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// awaitReaderGone waits until the reading end of f is closed, and then returns true. If poll fails, it
// returns false. It may block one thread until the process exits.
func awaitReaderGone(f *os.File) bool {
	// POLLHUP must be requested, because Darwin does not report it otherwise.
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLHUP}}
	for {
		_, err := unix.Poll(fds, -1)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
