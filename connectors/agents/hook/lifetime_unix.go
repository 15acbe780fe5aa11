//go:build unix

package hook

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// awaitReaderGone returns true once the reading end of f is closed, or false if poll
// fails. It may block until the process exits, and occupies a thread.
func awaitReaderGone(f *os.File) bool {
	// Request POLLHUP: most systems report it without a request, but Darwin does not.
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLHUP}}
	for {
		_, err := unix.Poll(fds, -1)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
