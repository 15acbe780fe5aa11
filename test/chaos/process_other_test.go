//go:build !linux

package chaos

import (
	"errors"
	"syscall"
)

// orphaned does nothing here: a process outlives tests that end without killing it.
func orphaned() *syscall.SysProcAttr { return nil }

// smallDisk fails: small disks exist only on Linux.
func smallDisk(string, int) (unmount func() error, err error) {
	return nil, errors.New("a small disk is only made on Linux")
}
