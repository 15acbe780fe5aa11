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

// command is a call of one of the system's own tools.
type command struct {
	words []string
	// lax means that the next commands run even if this one fails, for example because
	// there is no service to end.
	lax bool
	// retries is the number of further tries after a failure, for example while the
	// old service is still ending.
	retries int
	// fails means that the command has to fail: it looks for something that must be gone.
	fails bool
}

func (c command) String() string { return strings.Join(c.words, " ") }

// commandTimeout is the time limit of each command. A start waits until nod has started,
// and a stop until nod has stopped.
const commandTimeout = time.Minute

// pause is the time between two tries.
const pause = 500 * time.Millisecond

// output runs c, with its retries, and returns its output as one line.
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

// requireFailure returns nil if err means that c ran and failed by itself.
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

// outputContains runs c and reports whether its output contains text, as whole words. An
// error means that the system cannot be reached.
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

// unreachable reports whether systemctl's output means that the session has no
// service manager.
func unreachable(out string) bool {
	return strings.Contains(out, "Failed to connect") || strings.Contains(out, "not been booted with systemd")
}

// runAll runs commands in order until one that is not lax fails. The error is an
// *Unreached with all commands that failed or did not run.
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
