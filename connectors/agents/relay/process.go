package relay

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// endWithin is the time between SIGTERM and SIGKILL for a program that has not ended.
	endWithin = 5 * time.Second
	// drainWithin is how long Run still reads the program's output after the program has ended, because
	// child processes may keep the output open.
	drainWithin = 2 * time.Second
	// passWithin is how long Run waits for the function pass after ctx has ended.
	passWithin = 5 * time.Second
)

// Program is a program that a sidecar starts.
type Program struct {
	Role   string // for errors, such as "the agent"
	Args   []string
	Stderr io.Writer
}

// Run starts the program, and calls the function pass with the program's input and output. pass must
// return when the output has ended. When ctx ends, the program gets SIGTERM, and SIGKILL after
// endWithin. Run returns the program's exit code, or 128 plus the signal's number if a signal ended the
// program. It returns an error only if it could not start the program.
func (p Program) Run(ctx context.Context, pass func(in io.WriteCloser, out io.Reader)) (exit int, err error) {
	if len(p.Args) == 0 {
		return 0, fmt.Errorf("name the command of %s after --", p.Role)
	}
	// os.Pipe makes these pipes, because os/exec closes its own pipes as soon as the program ends, and
	// the program's last output would be lost.
	input, in, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("make a pipe to %s: %w", p.Role, err)
	}
	defer in.Close()
	out, output, err := os.Pipe()
	if err != nil {
		input.Close()
		return 0, fmt.Errorf("make a pipe from %s: %w", p.Role, err)
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, p.Args[0], p.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, output, p.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endWithin
	err = cmd.Start()
	input.Close()
	output.Close()
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", p.Role, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // cmd.ProcessState also has the result
		_ = out.SetReadDeadline(time.Now().Add(drainWithin))
	}()
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		pass(in, out)
	}()
	<-ended
	select {
	case <-passed:
	case <-ctx.Done(): // do not wait for pass, because a peer that does not read could block pass forever
		select {
		case <-passed:
		case <-time.After(passWithin):
		}
	}
	return exitCode(cmd.ProcessState), nil
}

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
