package contain

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/connectors/agents/contain/egress"
	"github.com/nodbus/nod/connectors/agents/contain/inner"
)

type ending struct {
	code     int
	timedOut bool
}

// setupError is a failure before the command has started.
type setupError struct {
	what string
	err  error
}

func (e *setupError) Error() string { return e.what + ": " + e.err.Error() }
func (e *setupError) Unwrap() error { return e.err }

// unavailable reports whether err occurred because this machine does not allow namespaces.
func unavailable(err error) bool {
	var setup *setupError
	if !errors.As(err, &setup) {
		return false
	}
	for _, errno := range []syscall.Errno{unix.EPERM, unix.EACCES, unix.EINVAL, unix.ENOSPC, unix.ENOSYS, unix.EUSERS, unix.ENODEV, unix.EOPNOTSUPP} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// innerCapabilities are the capabilities of the inner process in its own namespaces. It needs them
// to build the file system, and drops all of them before it starts the command.
var innerCapabilities = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_ADMIN, unix.CAP_MKNOD,
}

// launch starts the inner process, calls the function plan with its process id, and sends it the
// resulting plan. It then waits until the command has ended. If plan returns an error, launch starts
// no command and returns that error.
func launch(ctx context.Context, s *Spec, level Level, plan func(pid int) (*inner.Plan, error), proxy *egress.Proxy) (ending, error) {
	// Keep this thread, because the kernel kills the inner process when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	j := &job{spec: s, proxy: proxy, foreground: ownsTerminal(s)}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ending{}, refused("connect to the inner process: %w", err)
	}
	j.control = os.NewFile(uintptr(pair[0]), "control")
	defer j.control.Close()
	theirs := os.NewFile(uintptr(pair[1]), "control")
	j.process, err = os.StartProcess("/proc/self/exe", []string{inner.Name}, &os.ProcAttr{
		Dir: "/", Env: []string{inner.Variable + "=1", "GOMAXPROCS=2"},
		Files: []*os.File{s.Stdin, s.Stdout, s.Stderr, theirs}, Sys: innerAttributes(s, level),
	})
	theirs.Close()
	if err != nil {
		return ending{}, &setupError{"start in namespaces", err}
	}
	p, err := plan(j.process.Pid)
	if err != nil {
		_ = j.process.Kill() // this only saves time, because the inner process waits for its plan and ends when control is closed
		_, _ = j.process.Wait()
		return ending{}, err
	}
	p.Foreground = j.foreground
	return j.run(ctx, p)
}

func innerAttributes(s *Spec, level Level) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if level != Namespaces { // without namespaces, the inner process must outlive nod, so that it can kill the command's processes
		return a
	}
	a.Pdeathsig = syscall.SIGKILL
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if !s.AnyNetwork {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	uid, gid := os.Geteuid(), os.Getegid()
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	a.AmbientCaps = innerCapabilities
	return a
}

// job is a running command.
type job struct {
	spec       *Spec
	proxy      *egress.Proxy
	control    *os.File
	process    *os.Process
	foreground bool // the command is the foreground job, so that the terminal itself sends signals to the command
	stopped    bool
}

func (j *job) run(ctx context.Context, p *inner.Plan) (ending, error) {
	signals := watchSignals()
	defer signals.stop()
	defer j.proxy.Close()
	// This goroutine is necessary because a plan can be larger than the socket's buffer, and the
	// inner process may send its first message before it has read the whole plan.
	go func() { _, _ = j.control.Write(p.Encode()) }()
	messages := make(chan inner.Message)
	go j.receive(messages)
	var timeout <-chan time.Time
	if j.spec.Limits.Time > 0 {
		timer := time.NewTimer(j.spec.Limits.Time)
		defer timer.Stop()
		timeout = timer.C
	}
	end, err := ending{code: 128 + int(syscall.SIGKILL)}, error(nil)
	for done := ctx.Done(); ; {
		select {
		case m, ok := <-messages:
			if !ok {
				_, _ = j.process.Wait()
				j.takeTerminalBack()
				if err != nil && (end.timedOut || ctx.Err() != nil) {
					err = refused("the command was stopped before it started")
				}
				return end, err
			}
			switch m.Kind {
			case inner.Failed:
				err = &setupError{m.Text, syscall.Errno(m.Value)}
			case inner.NotRun:
				err = notRun(m)
			case inner.Stopped:
				j.suspend()
			case inner.Ended:
				end.code = exitCode(syscall.WaitStatus(m.Value))
			}
		case sig := <-signals.c:
			j.pass(sig.(syscall.Signal))
		case <-timeout:
			end.timedOut, timeout = true, nil
			j.kill()
		case <-done:
			done = nil
			j.kill()
		}
	}
}

func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

func notRun(m inner.Message) error {
	errno := syscall.Errno(m.Value)
	switch errno {
	case unix.ENOENT:
		return &agents.ExitError{Code: agents.CodeNotFound, Err: fmt.Errorf("%s: not found inside: the program does not exist, or lies outside what a contained command sees", m.Text)}
	case unix.EACCES:
		return &agents.ExitError{Code: agents.CodeCannot, Err: fmt.Errorf("%s: %w: it is not executable", m.Text, errno)}
	}
	return &agents.ExitError{Code: agents.CodeCannot, Err: fmt.Errorf("%s: %w", m.Text, errno)}
}

func (j *job) kill() {
	_ = unix.Shutdown(int(j.control.Fd()), unix.SHUT_WR) // when the inner process reads the end of the connection, it kills the command and ends
	go func() {
		time.Sleep(2 * time.Second)
		_ = j.process.Kill()
	}()
}

func (j *job) send(m inner.Message) { _, _ = j.control.Write(m.Encode()) }

// receive passes the messages of the inner process on to the channel messages, except for the
// message with the proxy's sockets. With that message, receive starts the proxy. When the inner
// process has ended, receive closes the channel.
func (j *job) receive(messages chan<- inner.Message) {
	defer close(messages)
	fd := int(j.control.Fd())
	head, oob := make([]byte, inner.MessageHead), make([]byte, unix.CmsgSpace(2*4))
	for {
		n, oobn, err := readWithFiles(fd, head, oob)
		if err != nil || n == 0 {
			return
		}
		m, size := inner.DecodeHead(head)
		text := make([]byte, size)
		if _, _, err := readWithFiles(fd, text, nil); err != nil {
			return
		}
		m.Text = string(text)
		if m.Kind == inner.Listener {
			j.serve(oob[:oobn])
			continue
		}
		messages <- m
	}
}

// readWithFiles reads until b is full. It also receives the open files that the sender attached
// to the first byte.
func readWithFiles(fd int, b, oob []byte) (n, oobn int, err error) {
	for n < len(b) {
		got, gotOob, _, _, err := unix.Recvmsg(fd, b[n:], oob, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || got == 0 {
			return 0, 0, err
		}
		if n += got; gotOob > 0 {
			oobn, oob = gotOob, nil
		}
	}
	return n, oobn, nil
}

// serve starts the proxy on the sockets that came with a message. After an error there is no
// proxy. This is safe, because the command then has no network at all.
func (j *job) serve(oob []byte) {
	parts, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(parts) != 1 {
		return
	}
	fds, err := unix.ParseUnixRights(&parts[0])
	if err != nil {
		return
	}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "proxy")
		if i == 0 {
			if l, err := net.FileListener(f); err == nil {
				go j.proxy.Serve(l)
			}
		} else if c, err := net.FilePacketConn(f); err == nil {
			go j.proxy.ServeNames(c)
		}
		f.Close()
	}
}
