package bus

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocateFile makes a file of this size and reserves all its room on the disk. The error is
// errors.ErrUnsupported if the file system cannot reserve room.
func allocateFile(path string, size uint64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, int64(size)); err != nil {
		return errors.Join(err, f.Close(), os.Remove(path))
	}
	return f.Close()
}
