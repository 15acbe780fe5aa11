package inner

import (
	"runtime"
	"syscall"
	"unsafe"
)

// serve runs the command, forwards signals from nod to it, and tells nod when it stops or ends. The
// command has its own process group, so that a signal to this group reaches no other process.
func serve(p *Plan) int {
	pid, f := start(p)
	if f != nil {
		return report(NotRun, f)
	}
	go follow(pid)
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR, err == nil && got != pid:
		case err == syscall.ECHILD:
			select {} // block for ever: follow has killed the command, and will end this process
		case err != nil:
			return report(Failed, fail("wait for the command", err))
		case status.Stopped():
			send(Message{Kind: Stopped, Value: uint32(status.StopSignal())})
		default:
			if !p.Namespaces {
				killRest()
			}
			send(Message{Kind: Ended, Value: uint32(status)})
			return 0
		}
	}
}

// start starts the program of the plan, which is a path or a name in PATH.
func start(p *Plan) (int, *failure) {
	attr := &syscall.ProcAttr{
		Env: p.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Setpgid: true, Foreground: p.Foreground, Ctty: 0},
	}
	name := p.Argv[0]
	dirs := ":"
	for _, v := range p.Env {
		if len(v) > 5 && v[:5] == "PATH=" {
			dirs = v[5:] + ":"
		}
	}
	for i := range len(name) {
		if name[i] == '/' {
			dirs = ":"
		}
	}
	last := error(syscall.ENOENT)
	for begin, i := 0, 0; i < len(dirs); i++ {
		if dirs[i] != ':' {
			continue
		}
		path := name
		if begin < i {
			path = dirs[begin:i] + "/" + name
		}
		begin = i + 1
		if err := syscall.Access(path, 0); err == syscall.ENOENT || err == syscall.ENOTDIR { // a failed start would take longer than this check
			continue
		}
		pid, err := syscall.ForkExec(path, p.Argv, attr)
		if err == nil {
			return pid, nil
		}
		if err != syscall.ENOENT && err != syscall.ENOTDIR && (err != syscall.EACCES || last == syscall.ENOENT) {
			last = err
		}
		if err != syscall.ENOENT && err != syscall.ENOTDIR && err != syscall.EACCES {
			break
		}
	}
	return 0, fail("run "+name, last)
}

// follow carries out nod's messages. When nod ends, follow kills the command and ends this process.
func follow(pid int) {
	head := make([]byte, MessageHead)
	for readFull(head) {
		m, _ := DecodeHead(head)
		switch m.Kind {
		case Signal:
			_ = syscall.Kill(-pid, syscall.Signal(m.Value))
		case TakeInput:
			takeInput(pid)
		}
	}
	killRest()
	syscall.Exit(1)
}

// takeInput makes a process group the foreground job of the terminal. It blocks SIGTTOU during the call,
// because the kernel sends this signal to a background process that changes the foreground job.
func takeInput(group int) {
	const block, setMask = 0, 2
	runtime.LockOSThread() // stay on one thread, because each thread has its own signal mask
	defer runtime.UnlockOSThread()
	var old, mask uint64
	mask = 1 << (syscall.SIGTTOU - 1)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, block, uintptr(unsafe.Pointer(&mask)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	at := int32(group)
	_, _, _ = syscall.RawSyscall(syscall.SYS_IOCTL, 0, syscall.TIOCSPGRP, uintptr(unsafe.Pointer(&at)))
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&old)), 0, 8, 0, 0)
}

// killRest kills all descendants of this process. It is for a command without its own process
// namespace, whose end makes the kernel kill its processes. Orphaned descendants become children of
// this process, so killRest kills its children until none is left.
func killRest() {
	for range 10_000 {
		for _, pid := range childrenOf(syscall.Getpid()) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		// The list of children may be incomplete while processes end. Only the kernel knows whether
		// any child is left.
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil); {
		case err == syscall.ECHILD:
			return
		case pid == 0:
			_ = syscall.Nanosleep(&syscall.Timespec{Nsec: 1_000_000}, nil)
		}
	}
}

func childrenOf(pid int) []int {
	fd, err := syscall.Open("/proc/self/task/"+decimal(pid)+"/children", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	buf := make([]byte, 1<<16)
	n, err := syscall.Read(fd, buf)
	if err != nil {
		return nil
	}
	var all []int
	pid = 0
	for _, c := range buf[:n] {
		if c == ' ' {
			all, pid = append(all, pid), 0
		} else {
			pid = pid*10 + int(c-'0')
		}
	}
	return all
}

func decimal(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return decimal(n/10) + string(rune('0'+n%10))
}
