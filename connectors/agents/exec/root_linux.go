package exec

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// rootCapabilities returns the capabilities that a command keeps if it runs as root. They are for
// access to permitted files, changes of user id, signals and low ports. With any other capability,
// such as loading modules or reading other processes, the command could escape its restrictions.
func rootCapabilities() []int {
	return []int{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL,
		unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE,
	}
}

// dropCapabilities drops all capabilities except rootCapabilities for the program that replaces this
// thread. For a user other than root, it only clears the ambient capabilities, and the program
// inherits no capability.
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
