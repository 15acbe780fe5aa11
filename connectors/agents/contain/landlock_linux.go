package contain

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/nodbus/nod/connectors/agents/contain/inner"
)

// landlockABI returns the version of the kernel's Landlock, or 0 if it has none.
func landlockABI() int {
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// abstractSocketScope returns Landlock's scope that keeps a command from abstract Unix sockets
// outside, or 0 if the kernel lacks it.
func abstractSocketScope() uint64 {
	if landlockABI() < 6 {
		return 0
	}
	return unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
}

func (v *view) landlockPlan() (*inner.Plan, error) { return nil, errors.New("not built") }
