//go:build !linux

package exec

import (
	"io"
	"syscall"

	"github.com/nodbus/nod/schemas"
)

func unenforced(schemas.SessionPermissions) []string {
	return []string{"anything (only Linux can hold a command to its permissions)"}
}

func confine(schemas.SessionPermissions, io.Writer) error { return nil }

// replaceProcess replaces this process by a program. On Windows it only returns an error.
func replaceProcess(program string, args, env []string) error {
	return syscall.Exec(program, args, env)
}
