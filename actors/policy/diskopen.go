//go:build unix

package policy

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// openPlain opens the file at a clean absolute path for reading. It follows no link, even if a program has
// just replaced a directory of the path by a link. It does not wait for a named pipe.
func openPlain(name string) (*os.File, error) {
	dir, err := unix.Open("/", openDir, 0)
	for err == nil {
		first, rest, more := strings.Cut(strings.TrimPrefix(name, "/"), "/")
		if !more {
			var fd int
			fd, err = unix.Openat(dir, first, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			_ = unix.Close(dir) // an error of Close does no harm, because the directory was only a step of the path
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
