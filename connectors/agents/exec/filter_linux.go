package exec

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock restricts TCP alone up to its version 10, and before version 9 lets
// anyone reach the socket of a container engine or a session bus, which will
// run whatever they are told. So the command's sockets are refused by a filter
// of system calls: those of the network where it is not held, and Unix sockets
// where Landlock cannot tell which they are. Pairs of connected sockets are no
// way out and stay.
//
// The same filter keeps the command from typing into the terminal that it was
// started at: what it typed would be run by its caller's shell afterwards.

// machine is how the kernel names this process's system calls; 0 where the
// filter does not know them.
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

// canFilter reports whether system calls can be refused here.
func canFilter() bool {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return auditArch() != 0 && errno == 0
}

// filterCalls refuses this thread, and what it becomes, the sockets that are not
// allowed, and to type for others.
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

// Where the kernel shows a filter the call's number, its machine, and the low
// halves of its first two arguments (all machines above are little-endian).
const (
	atNumber  = 0
	atMachine = 4
	atFirst   = 16
	atSecond  = 24
)

// x32 is the bit in the numbers of a second set of calls on amd64.
const x32 = 0x40000000

func callFilter(unixAllowed, network bool) []unix.SockFilter {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	ret := func(what uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what} }
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
	ioUring := refuse(unix.ENOSYS) // it makes sockets unseen
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
		skip(unix.BPF_JEQ, unix.TIOCLINUX, 0, 1), // a console pastes what is selected on it
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
