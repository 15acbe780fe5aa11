package exec

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// rootCapabilities returns the capabilities that a command of root keeps. They serve to access permitted
// files, to change the user id, to send signals and to use low ports. With any other capability, such as
// those to load modules or to read other processes, the command could escape its restrictions.
func rootCapabilities() []int {
	return []int{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL,
		unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE,
	}
}

// dropCapabilities makes sure that the program that replaces this thread has no capabilities except
// rootCapabilities. If the user is not root, it only clears the ambient capabilities, because the
// program then inherits none.
func dropCapabilities() error {
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	if unix.Geteuid() != 0 && unix.Getuid() != 0 {
		return nil
	}
	for power := 0; ; power++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(power), 0, 0, 0)
		if err != nil {
			return nil // the kernel has no capability with this number or a higher one
		}
		if has == 0 || slices.Contains(rootCapabilities(), power) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(power), 0, 0, 0); err != nil {
			return fmt.Errorf("drop root's capability %d: %w", power, err)
		}
	}
}
