//go:build !linux

package chaos

import (
	"errors"
	"syscall"
)

// orphaned returns nil here: a process may outlive the tests.
func orphaned() *syscall.SysProcAttr { return nil }

// smallDisk returns an error: the tests make small disks only on Linux.
func smallDisk(string, int) (unmount func() error, err error) {
	return nil, errors.New("a small disk is only made on Linux")
}
