package contain

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/nodbus/nod/connectors/agents/contain/inner"
)

// The command has its own process group, so that a signal to this group does not reach other
// processes. nod therefore does for the command what a shell does for a job. It forwards signals,
// makes the command the terminal's foreground job, and stops when the command stops.

// passed are the signals that nod forwards to the command.
var passed = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGCONT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGALRM,
}

type signals struct{ c chan os.Signal }

// watchSignals starts to catch signals. It leaves out the signals that this process ignores, for
// example because of nohup.
func watchSignals() *signals {
	s := &signals{c: make(chan os.Signal, 64)}
	var watch []os.Signal
	for _, sig := range passed {
		if !signal.Ignored(sig) {
			watch = append(watch, sig)
		}
	}
	signal.Notify(s.c, watch...)
	signal.Ignore(syscall.SIGTTOU) // otherwise SIGTTOU would stop nod in takeTerminalBack
	return s
}

func (s *signals) stop() {
	signal.Stop(s.c)
	signal.Reset(syscall.SIGTTOU)
}

// ownsTerminal reports whether nod may make the command the terminal's foreground job. nod must be the
// foreground job and lead its process group, and its input and output must be the terminal. Otherwise
// nod may be part of a pipeline, whose other programs use the terminal too.
func ownsTerminal(s *Spec) bool {
	group := unix.Getpgrp()
	for _, f := range []*os.File{s.Stdin, s.Stdout} {
		if front, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err != nil || front != group {
			return false
		}
	}
	return os.Getpid() == group
}

func (j *job) pass(sig syscall.Signal) {
	if sig == syscall.SIGCONT && j.stopped {
		j.stopped = false
		if front, err := unix.IoctlGetInt(int(j.spec.Stdin.Fd()), unix.TIOCGPGRP); j.foreground && err == nil && front == unix.Getpgrp() {
			j.send(inner.Message{Kind: inner.TakeInput})
		}
	}
	j.send(inner.Message{Kind: inner.Signal, Value: uint32(sig)})
}

// suspend stops nod after the command has stopped, so that nod's shell takes over the terminal.
// nod continues when it gets SIGCONT.
func (j *job) suspend() {
	j.takeTerminalBack()
	j.stopped = true
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
}

// takeTerminalBack makes nod's process group the terminal's foreground job again.
func (j *job) takeTerminalBack() {
	if j.foreground {
		_ = unix.IoctlSetPointerInt(int(j.spec.Stdin.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
	}
}
