//go:build linux || darwin

package bus

import "golang.org/x/sys/unix"

// diskSpace returns the free bytes and the size of the file system that contains dir. Only the bytes that
// this user may use count as free.
func diskSpace(dir string) (free, total uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), nil
}
