package contain

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/nodbus/nod/connectors/agents/contain/inner"
)

// The command has a process group of its own, because a signal to its group must not reach
// processes outside. So nod does for it what a shell does for a job: it passes on signals,
// gives it the terminal, and stops when it stops.

// passed are the signals that nod passes on to the command.
var passed = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGCONT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGALRM,
}

type signals struct{ c chan os.Signal }

// watchSignals begins to catch signals, except those that this process ignores, as under nohup.
func watchSignals() *signals {
	s := &signals{c: make(chan os.Signal, 64)}
	var watch []os.Signal
	for _, sig := range passed {
		if !signal.Ignored(sig) {
			watch = append(watch, sig)
		}
	}
	signal.Notify(s.c, watch...)
	signal.Ignore(syscall.SIGTTOU) // it would stop nod when it takes the terminal back
	return s
}

func (s *signals) stop() {
	signal.Stop(s.c)
	signal.Reset(syscall.SIGTTOU)
}

// ownsTerminal reports whether the command can take the terminal: nod is the foreground job,
// alone in its process group, and both its input and its output are the terminal. In a
// pipeline, another program of the group may use the terminal too.
func ownsTerminal(s *Spec) bool {
	group := unix.Getpgrp()
	for _, f := range []*os.File{s.Stdin, s.Stdout} {
		if front, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err != nil || front != group {
			return false
		}
	}
	return os.Getpid() == group
}

// pass handles a signal to nod.
func (j *job) pass(sig syscall.Signal) {
	if sig == syscall.SIGCONT && j.stopped {
		j.stopped = false
		if front, err := unix.IoctlGetInt(int(j.spec.Stdin.Fd()), unix.TIOCGPGRP); j.foreground && err == nil && front == unix.Getpgrp() {
			j.send(inner.Message{Kind: inner.TakeInput})
		}
	}
	j.send(inner.Message{Kind: inner.Signal, Value: uint32(sig)})
}

// suspend stops nod because the command has stopped, so that the shell that waits for nod goes
// on. It continues with the signal SIGCONT.
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
