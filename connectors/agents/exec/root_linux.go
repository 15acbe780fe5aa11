package exec

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// rootCapabilities are the powers that a command of root's keeps: over files that it
// may reach at all, users and ports. With the others (loading modules, making
// devices, reading other processes) it would leave any set of permissions.
func rootCapabilities() []int {
	return []int{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL,
		unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE,
	}
}

// dropCapabilities keeps this thread from passing others on to what it becomes. Who
// is not root passes none on once the ambient ones are gone.
func dropCapabilities() error {
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("give up ambient powers: %w", err)
	}
	if unix.Geteuid() != 0 && unix.Getuid() != 0 {
		return nil
	}
	for power := 0; ; power++ {
		has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(power), 0, 0, 0)
		if err != nil {
			return nil // there are no more
		}
		if has == 0 || slices.Contains(rootCapabilities(), power) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(power), 0, 0, 0); err != nil {
			return fmt.Errorf("give up root's power %d: %w", power, err)
		}
	}
}
