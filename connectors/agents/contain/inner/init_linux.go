package inner

import (
	"syscall"
	"unsafe"
)

// init checks whether nod has started this process as the inner process. If so, init does all
// the work and never returns. The environment variable is not enough, because a user's
// environment must not change what nod does.
func init() {
	if _, ok := syscall.Getenv(Variable); ok && commandLine() == Name+"\x00" {
		syscall.Exit(run())
	}
}

func commandLine() string {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer syscall.Close(fd)
	buf := make([]byte, 64)
	n, err := syscall.Read(fd, buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

type failure struct {
	what string
	err  syscall.Errno
}

func fail(what string, err error) *failure {
	errno, ok := err.(syscall.Errno) // not errors.As, because this package imports only syscall
	if !ok {
		errno = syscall.EINVAL
	}
	return &failure{what, errno}
}

// run carries out the plan, and returns the exit code of this process. nod learns the command's
// own status from a message.
func run() int {
	if _, _, errno := syscall.RawSyscall(sysCloseRange, Control, 1<<32-1, closeRangeCloexec); errno != 0 {
		return report(Failed, fail("close other files", errno))
	}
	plan, f := readPlan()
	if f == nil && plan.Namespaces {
		f = enter(plan)
	}
	if f == nil {
		f = restrict(plan)
	}
	if f != nil {
		return report(Failed, f)
	}
	return serve(plan)
}

func report(kind byte, f *failure) int {
	send(Message{Kind: kind, Value: uint32(f.err), Text: f.what})
	return 1
}

func send(m Message) {
	for b := m.Encode(); len(b) > 0; {
		n, err := syscall.Write(Control, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return // nod has ended
		}
		b = b[n:]
	}
}

func readPlan() (*Plan, *failure) {
	head := make([]byte, 8)
	if !readFull(head) {
		return nil, fail("read the plan", syscall.EPIPE)
	}
	size := uint64(0)
	for i, b := range head {
		size |= uint64(b) << (8 * i)
	}
	if size > 1<<28 {
		return nil, fail("read the plan", syscall.E2BIG)
	}
	body, p := make([]byte, size), new(Plan)
	if !readFull(body) || !p.Decode(body) {
		return nil, fail("read the plan", syscall.EPIPE)
	}
	return p, nil
}

// readFull fills b from the control connection. It returns false if nod has closed the connection.
func readFull(b []byte) bool {
	for len(b) > 0 {
		n, err := syscall.Read(Control, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

// pointer returns a pointer to a zero-terminated copy of s, for system calls.
func pointer(s string) unsafe.Pointer {
	p, err := syscall.BytePtrFromString(s)
	if err != nil { // s contains a zero byte
		p, _ = syscall.BytePtrFromString("")
	}
	return unsafe.Pointer(p)
}
