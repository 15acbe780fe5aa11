//go:build unix && !linux

package policy

import "golang.org/x/sys/unix"

// openDir opens a directory as a step of a path.
const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
