//go:build unix

package policy

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// openPlain opens a file for reading by its clean absolute path. It follows no link, also not one that
// has just replaced a directory of the path, and waits for no named pipe.
func openPlain(name string) (*os.File, error) {
	dir, err := unix.Open("/", openDir, 0)
	for err == nil {
		first, rest, more := strings.Cut(strings.TrimPrefix(name, "/"), "/")
		if !more {
			var fd int
			fd, err = unix.Openat(dir, first, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			_ = unix.Close(dir) // it was only a step on the way, so an error loses nothing
			if err != nil {
				break
			}
			return os.NewFile(uintptr(fd), name), nil
		}
		next, failed := unix.Openat(dir, first, openDir|unix.O_NOFOLLOW, 0)
		_ = unix.Close(dir)
		dir, err, name = next, failed, rest
	}
	return nil, &os.PathError{Op: "open", Path: name, Err: err}
}
