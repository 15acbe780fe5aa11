package contain

import "golang.org/x/sys/unix"

// oldModeArguments are the entries of modeArguments for system calls that newer architectures do not
// have.
var oldModeArguments = map[uint32]uint32{unix.SYS_CHMOD: atSecond, unix.SYS_OPEN: atThird, unix.SYS_CREAT: atSecond, unix.SYS_MKNOD: atSecond}
