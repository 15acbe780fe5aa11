package chaos

import (
	"fmt"
	"os"
	"syscall"
)

// smallDisk mounts a file system of the given size in bytes at a directory. It returns a function that
// unmounts the file system. Only root can call it.
func smallDisk(dir string, bytes int) (unmount func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprint("size=", bytes)); err != nil {
		return nil, fmt.Errorf("mount a small disk at %s: %w", dir, err)
	}
	return func() error { return syscall.Unmount(dir, syscall.MNT_DETACH) }, nil
}
