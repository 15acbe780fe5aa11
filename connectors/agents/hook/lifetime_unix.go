//go:build unix

package hook

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// awaitReaderGone returns true once the reading end of f is closed. It may
// never return: it holds a thread until the process exits.
func awaitReaderGone(f *os.File) bool {
	// Errors and hang-ups need no asking for, except that Darwin watches nothing
	// where nothing is asked for.
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLHUP}}
	for {
		_, err := unix.Poll(fds, -1)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
