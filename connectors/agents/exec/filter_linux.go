package exec

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The seccomp filter closes gaps of Landlock. Landlock restricts network protocols other than TCP only
// since version 10 of its ABI, and connections to Unix sockets only since version 9. Through the Unix
// socket of a container engine or of a session bus (D-Bus), a command could start other commands
// without restrictions. If the network is not permitted, the filter therefore refuses new network
// sockets. If Landlock cannot restrict Unix sockets, it refuses new Unix sockets. Socket pairs are
// allowed, because they connect to no other program.
//
// The filter also prevents the command from putting text into its terminal's input, because the
// caller's shell would later run that text.

// auditArch returns the kernel's number for this process's system call interface. It returns 0 if the
// filter does not support the architecture.
func auditArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	case "riscv64":
		return unix.AUDIT_ARCH_RISCV64
	}
	return 0
}

// canFilter reports whether the kernel supports seccomp filters, and the filter supports the architecture.
func canFilter() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return auditArch() != 0 && errno == 0
}

// filterCalls restricts this thread and the program that this thread becomes. The program can create
// only the permitted sockets, and cannot put text into a terminal's input. If canFilter returns false,
// filterCalls does nothing.
func filterCalls(unixAllowed, network bool) error {
	if !canFilter() {
		return nil
	}
	program := callFilter(unixAllowed, network)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("filter its system calls: %w", errno)
	}
	return nil
}

// The kernel passes a filter the structure seccomp_data. These are the offsets in it of the system
// call's number, the architecture, and the low halves of the first two arguments. All architectures
// that auditArch knows are little-endian.
const (
	atNumber  = 0
	atMachine = 4
	atFirst   = 16
	atSecond  = 24
)

// x32 is a bit in the number of a system call. It marks a call of x32, the second ABI of amd64.
const x32 = 0x40000000

func callFilter(unixAllowed, network bool) []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	ret := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	refuse := func(why unix.Errno) unix.SockFilter { return ret(unix.SECCOMP_RET_ERRNO | uint32(why)) }
	skip := func(jump uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | jump, K: k, Jt: yes, Jf: no}
	}
	verdict := func(allowed bool) unix.SockFilter {
		if allowed {
			return ret(unix.SECCOMP_RET_ALLOW)
		}
		return refuse(unix.EACCES)
	}
	ioUring := refuse(unix.ENOSYS) // io_uring could create sockets that the filter does not see
	if unixAllowed && network {
		ioUring = ret(unix.SECCOMP_RET_ALLOW)
	}
	return []unix.SockFilter{
		load(atMachine),
		skip(unix.BPF_JEQ, auditArch(), 1, 0),
		ret(unix.SECCOMP_RET_KILL_PROCESS),
		load(atNumber),
		skip(unix.BPF_JGE, x32, 0, 1),
		refuse(unix.ENOSYS),
		skip(unix.BPF_JEQ, unix.SYS_IO_URING_SETUP, 0, 1),
		ioUring,
		skip(unix.BPF_JEQ, unix.SYS_IOCTL, 0, 5),
		load(atSecond),
		skip(unix.BPF_JEQ, unix.TIOCSTI, 1, 0),
		skip(unix.BPF_JEQ, unix.TIOCLINUX, 0, 1), // TIOCLINUX can make a console paste its selected text into the input
		refuse(unix.EPERM),
		ret(unix.SECCOMP_RET_ALLOW),
		skip(unix.BPF_JEQ, unix.SYS_SOCKET, 1, 0),
		ret(unix.SECCOMP_RET_ALLOW),
		load(atFirst),
		skip(unix.BPF_JEQ, unix.AF_UNIX, 0, 1),
		verdict(unixAllowed),
		verdict(network),
	}
}
