package contain

import (
	"encoding/binary"
	"maps"
	"runtime"

	"golang.org/x/sys/unix"
)

// refusedCalls are the system calls that a contained command must not make. Some act on other processes,
// mounts, namespaces, keys or the kernel. Others would make system calls that the filter does not see.
var refusedCalls = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_SYSLOG,
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_FANOTIFY_INIT, unix.SYS_VHANGUP, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
}

// missingCalls fail with ENOSYS, as on a kernel without them, so that programs use older calls
// instead. The filter cannot read the flags of clone3 and openat2, because the flags are in the
// memory of the process. io_uring makes other calls that the filter does not see.
var missingCalls = []uint32{unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}

const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// The offsets in struct seccomp_data of the number of the system call, the architecture, and the low
// halves of the first four arguments. All architectures that auditArch knows are little-endian.
const (
	atNumber  = 0
	atMachine = 4
	atFirst   = 16
	atSecond  = 24
	atThird   = 32
	atFourth  = 40
)

// modeArguments returns the system calls that set a file's mode. For each, the value is the offset of
// the argument with the mode. The filter refuses the setuid bit, because other users could otherwise
// run a file of the command with the rights of this user.
func modeArguments() map[uint32]uint32 {
	calls := map[uint32]uint32{unix.SYS_FCHMOD: atSecond, unix.SYS_FCHMODAT: atThird, unix.SYS_FCHMODAT2: atThird, unix.SYS_OPENAT: atFourth, unix.SYS_MKNODAT: atThird}
	maps.Copy(calls, oldModeArguments)
	return calls
}

// auditArch returns the kernel's number for this process's system call interface. It returns 0 if the
// filter does not support the architecture.
func auditArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

// filter returns a seccomp filter in the kernel's format. families are the socket families that the
// command may use.
func filter(families ...uint32) []byte {
	const x32 = 0x40000000 // the bit that marks a system call of amd64's second ABI, x32
	refuse := func(errno unix.Errno) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	unless := func(jump uint16, k uint32, skip uint8) unix.SockFilter { // if the comparison is false, the filter skips the next instructions; skip is their number
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | jump, K: k, Jf: skip}
	}
	program := []unix.SockFilter{
		load(atMachine),
		{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, K: auditArch(), Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS},
		load(atNumber),
		unless(unix.BPF_JGE, x32, 1), refuse(unix.ENOSYS),
	}
	for _, call := range refusedCalls {
		program = append(program, unless(unix.BPF_JEQ, call, 1), refuse(unix.EPERM))
	}
	for _, call := range missingCalls {
		program = append(program, unless(unix.BPF_JEQ, call, 1), refuse(unix.ENOSYS))
	}
	for call, at := range modeArguments() {
		program = append(program, unless(unix.BPF_JEQ, call, 4), load(at), unless(unix.BPF_JSET, unix.S_ISUID, 1), refuse(unix.EPERM), allow)
	}
	program = append(program,
		unless(unix.BPF_JEQ, unix.SYS_CLONE, 4),
		load(atFirst), unless(unix.BPF_JSET, newNamespaces, 1), refuse(unix.EPERM), allow,
		unless(unix.BPF_JEQ, unix.SYS_IOCTL, 6),
		load(atSecond), unless(unix.BPF_JEQ, unix.TIOCSTI, 1), refuse(unix.EPERM), unless(unix.BPF_JEQ, unix.TIOCLINUX, 1), refuse(unix.EPERM), allow,
		unless(unix.BPF_JEQ, unix.SYS_SOCKETPAIR, 4),
		load(atFirst), unless(unix.BPF_JEQ, unix.AF_UNIX, 1), allow, refuse(unix.EACCES),
		unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, K: unix.SYS_SOCKET, Jt: 1}, allow,
		// The rest of the filter checks only the system call socket. The low bits of that call's
		// second argument are the socket type.
		load(atSecond), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xf},
		unless(unix.BPF_JEQ, unix.SOCK_RAW, 1), refuse(unix.EACCES), unless(unix.BPF_JEQ, unix.SOCK_PACKET, 1), refuse(unix.EACCES),
		load(atFirst))
	for _, family := range families {
		program = append(program, unless(unix.BPF_JEQ, family, 1), allow)
	}
	program = append(program, refuse(unix.EACCES))
	var out []byte
	for _, line := range program {
		out = binary.LittleEndian.AppendUint16(out, line.Code)
		out = append(out, line.Jt, line.Jf)
		out = binary.LittleEndian.AppendUint32(out, line.K)
	}
	return out
}
