package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// A command is a call of systemctl, launchctl or a similar system tool.
type command struct {
	words []string
	// If lax is true, the next commands run even if this command fails, for example because there is
	// no service to end.
	lax bool
	// retries is the number of further tries after a failure, for example while the old service is
	// still ending.
	retries int
	// If fails is true, the command must fail, because it looks for a service that must be gone.
	fails bool
}

func (c command) String() string { return strings.Join(c.words, " ") }

// commandTimeout is the time limit of each command. A start command waits until nod has started, and a
// stop command waits until nod has stopped.
const commandTimeout = time.Minute

// pause is the time between two tries.
const pause = 500 * time.Millisecond

// output runs c, with its retries, and returns the output as one line.
func (c command) output(ctx context.Context) (out string, err error) {
	for try := 0; ; try++ {
		out, err = c.once(ctx)
		if err == nil || try >= c.retries || errors.Is(err, exec.ErrNotFound) {
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, err
		case <-time.After(pause):
		}
	}
}

func (c command) once(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.words[0], c.words[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if c.fails {
		err = c.requireFailure(err)
	}
	return strings.Join(strings.Fields(out.String()), " "), err
}

// requireFailure returns nil if err means that the command ran and returned a failure.
func (c command) requireFailure(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return fmt.Errorf("%s: it is still there", c)
	case errors.As(err, &exit) && exit.Exited():
		return nil
	}
	return err
}

// outputContains runs c and reports whether its output contains the given text as whole words. It returns an
// error if the service manager cannot be reached.
func (c command) outputContains(ctx context.Context, text string) (bool, error) {
	out, err := c.output(ctx)
	var exit *exec.ExitError
	switch {
	case err == nil, errors.As(err, &exit) && !unreachable(out):
		return strings.Contains(" "+out+" ", " "+text+" "), nil
	case out != "":
		return false, errors.New(out)
	}
	return false, err
}

// unreachable reports whether systemctl's output means that the user's session has no service manager.
func unreachable(out string) bool {
	return strings.Contains(out, "Failed to connect") || strings.Contains(out, "not been booted with systemd")
}

// runAll runs commands in order. It stops at the first failure of a command that is not lax, with an
// *Unreached that lists the commands that failed or did not run.
func runAll(ctx context.Context, all []command) error {
	var todo []string
	for i, c := range all {
		out, err := c.output(ctx)
		if err == nil {
			continue
		}
		todo = append(todo, c.String())
		if c.lax {
			continue
		}
		if out != "" {
			err = errors.New(out)
		}
		for _, left := range all[i+1:] {
			todo = append(todo, left.String())
		}
		return &Unreached{Todo: todo, Err: fmt.Errorf("%s: %w", c, err)}
	}
	return nil
}
