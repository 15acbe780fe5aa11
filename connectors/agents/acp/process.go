package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// endWithin is what an agent that is told to stop gets before it is killed.
	endWithin = 5 * time.Second
	// drainWithin is how long what an agent started may keep its output open
	// after it has ended.
	drainWithin = 2 * time.Second
)

// RunCommand starts the agent, stands between it and the editor as Run does,
// and returns the agent's exit code, 128 and its number where a signal ended
// it. When ctx ends the agent is told to stop, and soon killed. The error says
// why the agent could not be started.
func RunCommand(ctx context.Context, argv []string, editor Streams, stderr io.Writer, connect Connect, o Options) (exit int, err error) {
	if len(argv) == 0 {
		return 0, errors.New("name the agent's command after --")
	}
	// Pipes of our own: those of exec are closed as soon as the agent ends, with
	// what it said last.
	input, toAgent, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("make a pipe to the agent: %w", err)
	}
	defer toAgent.Close()
	fromAgent, output, err := os.Pipe()
	if err != nil {
		input.Close()
		return 0, fmt.Errorf("make a pipe from the agent: %w", err)
	}
	defer fromAgent.Close()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, output, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endWithin
	err = cmd.Start()
	input.Close()
	output.Close()
	if err != nil {
		return 0, fmt.Errorf("start the agent: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its state says how it ended
		_ = fromAgent.SetReadDeadline(time.Now().Add(drainWithin))
	}()
	told := make(chan struct{})
	go func() {
		defer close(told)
		_ = Run(ctx, editor, Streams{In: toAgent, Out: fromAgent}, connect, o) // the end of its output, one way or another
	}()
	<-ended
	select {
	case <-told:
	case <-ctx.Done(): // an editor that does not read could hold it up for ever
		select {
		case <-told:
		case <-time.After(withdrawWithin):
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
