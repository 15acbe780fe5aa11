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
	// endWithin is the time between SIGTERM and SIGKILL for an agent that has not ended.
	endWithin = 5 * time.Second
	// drainWithin is how long the sidecar reads the agent's output after the agent has ended. The
	// agent's child processes may keep the output open for longer.
	drainWithin = 2 * time.Second
)

// RunCommand starts the agent with the command argv and connects it to the editor with Run. It returns
// the agent's exit code, or 128 plus the signal's number if a signal ended the agent. When ctx ends,
// the agent gets SIGTERM, and SIGKILL after endWithin. RunCommand returns an error only if the agent
// could not be started.
func RunCommand(ctx context.Context, argv []string, editor Streams, stderr io.Writer, connect Connect, o Options) (exit int, err error) {
	if len(argv) == 0 {
		return 0, errors.New("name the agent's command after --")
	}
	// The pipes are made with os.Pipe, because os/exec closes its own pipes as soon as the agent
	// ends, and the agent's last output would be lost.
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
		_ = cmd.Wait() // cmd.ProcessState also has the result
		_ = fromAgent.SetReadDeadline(time.Now().Add(drainWithin))
	}()
	told := make(chan struct{})
	go func() {
		defer close(told)
		_ = Run(ctx, editor, Streams{In: toAgent, Out: fromAgent}, connect, o) // an error means that the output has ended
	}()
	<-ended
	select {
	case <-told:
	case <-ctx.Done(): // do not wait for Run: an editor that does not read could block it forever
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
