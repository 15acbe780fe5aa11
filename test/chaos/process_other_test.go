//go:build !linux

package chaos

import "errors"

// smallDisk fails, because the tests can make small disks only on Linux.
func smallDisk(string, int) (unmount func() error, err error) {
	return nil, errors.New("a small disk is only made on Linux")
}
