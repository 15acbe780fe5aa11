package contain

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// play does the act with the name what. The tests make a contained command try such acts.
func play(what string, args []string) error {
	switch what {
	case "read":
		data, err := os.ReadFile(args[0])
		if err == nil && len(data) == 0 {
			return errors.New("it is empty")
		}
		return err
	case "list":
		entries, err := os.ReadDir(args[0])
		if err == nil && len(entries) == 0 {
			return errors.New("it is empty")
		}
		return err
	case "write":
		return os.WriteFile(args[0], []byte("bad"), 0o600)
	case "append":
		f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_APPEND, 0)
		if err == nil {
			_, err = f.WriteString("bad")
			f.Close()
		}
		return err
	case "truncate":
		return os.Truncate(args[0], 0)
	case "remove":
		return os.RemoveAll(args[0])
	case "mkdir":
		return os.Mkdir(args[0], 0o755)
	case "rename":
		return os.Rename(args[0], args[1])
	case "exchange":
		return unix.Renameat2(unix.AT_FDCWD, args[0], unix.AT_FDCWD, args[1], unix.RENAME_EXCHANGE)
	case "link":
		return os.Link(args[0], args[1])
	case "symlink":
		return os.Symlink(args[0], args[1])
	case "chmod":
		mode, _ := strconv.ParseUint(args[1], 8, 32)
		return unix.Chmod(args[0], uint32(mode))
	case "tmpfile": // creates a file without a name, and then links it to a name
		fd, err := unix.Open(args[0], unix.O_TMPFILE|unix.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, args[1], unix.AT_SYMLINK_FOLLOW)
	case "dial":
		return dial(args[0], args[1])
	case "signal":
		pid, _ := strconv.Atoi(args[0])
		return unix.Kill(pid, 0)
	case "files": // fails if any file is open except the standard streams and Go's own files
		return openFiles()
	}
	return playCall(what, args)
}

func openFiles() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && e.Name() > "2" && to[0] == '/' && !strings.HasPrefix(to, "/proc/") && !strings.HasPrefix(to, "/sys/fs/cgroup/") { // skip the files that Go itself opens
			return nil
		}
	}
	return errors.New("no other files are open")
}

// playCall makes the system call with the name what, which a contained command must not make.
func playCall(what string, args []string) error {
	runtime.LockOSThread() // if the call changes the thread, Go discards the thread at the end of the goroutine
	call := func(number, a, b, c uintptr) error {
		if _, _, errno := unix.Syscall(number, a, b, c); errno != 0 {
			return errno
		}
		return nil
	}
	switch what {
	case "mount":
		return unix.Mount(args[0], args[1], "", unix.MS_BIND, "")
	case "umount":
		return unix.Unmount(args[0], unix.MNT_DETACH)
	case "remount":
		return unix.Mount("", args[0], "", unix.MS_REMOUNT|unix.MS_BIND, "")
	case "opentree":
		return call(unix.SYS_OPEN_TREE, 0, 0, 0)
	case "chroot":
		return unix.Chroot(args[0])
	case "unshare":
		return unix.Unshare(unix.CLONE_NEWUSER)
	case "clone":
		return call(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0)
	case "clone3":
		return call(unix.SYS_CLONE3, 0, 0, 0)
	case "setns":
		return unix.Setns(0, 0)
	case "ptrace":
		return unix.PtraceAttach(1)
	case "vmread":
		buf := make([]byte, 8)
		_, err := unix.ProcessVMReadv(1, []unix.Iovec{{Base: &buf[0], Len: 8}}, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
		return err
	case "getfd":
		return call(unix.SYS_PIDFD_GETFD, 0, 0, 0)
	case "iouring":
		var params [120]byte
		return call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	case "keyctl":
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
		return err
	case "bpf":
		return call(unix.SYS_BPF, 0, 0, 0)
	case "perf":
		return call(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0)
	case "userfaultfd":
		return call(unix.SYS_USERFAULTFD, 0, 0, 0)
	case "handle":
		_, err := unix.OpenByHandleAt(unix.AT_FDCWD, unix.NewFileHandle(1, []byte{1, 2, 3, 4, 5, 6, 7, 8}), 0)
		return err
	case "mknod":
		return unix.Mknod(args[0], unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0)))
	case "socket":
		domain, _ := strconv.Atoi(args[0])
		kind, _ := strconv.Atoi(args[1])
		fd, err := unix.Socket(domain, kind, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	case "type": // puts a character into the terminal's input
		request, _ := strconv.ParseUint(args[0], 0, 64)
		key := byte('x')
		return call(unix.SYS_IOCTL, 0, uintptr(request), uintptr(unsafe.Pointer(&key)))
	case "suid":
		fd, err := unix.Open(args[0], unix.O_CREAT|unix.O_WRONLY, 0o4755)
		if err == nil {
			unix.Close(fd)
		}
		return err
	case "core":
		var l unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil || l.Max > 1 {
			return err
		}
		return errors.New("core dumps are off")
	case "privileges":
		n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		if err != nil || n == 0 {
			return err
		}
		return errors.New("new privileges are off")
	case "hostname":
		return unix.Sethostname([]byte("bad"))
	}
	panic("no act " + what)
}
