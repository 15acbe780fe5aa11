package contain

import "golang.org/x/sys/unix"

// oldModeArguments are the rows of modeArguments that newer architectures lack.
var oldModeArguments = map[uint32]uint32{unix.SYS_CHMOD: atSecond, unix.SYS_OPEN: atThird, unix.SYS_CREAT: atSecond, unix.SYS_MKNOD: atSecond}
