//go:build unix

package hook

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// awaitReaderGone returns true when the reading end of f is closed, or false if poll fails. It may
// block one thread until the process exits.
func awaitReaderGone(f *os.File) bool {
	// Request POLLHUP explicitly: Darwin does not report it otherwise.
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLHUP}}
	for {
		_, err := unix.Poll(fds, -1)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
