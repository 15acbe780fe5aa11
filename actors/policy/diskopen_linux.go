package policy

import "golang.org/x/sys/unix"

// openDir opens a directory on the way to a file. The user needs no right to list the directory.
const openDir = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
