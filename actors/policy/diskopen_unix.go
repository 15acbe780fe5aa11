//go:build unix && !linux

package policy

import "golang.org/x/sys/unix"

// openDir opens a directory on the way to a file.
const openDir = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
