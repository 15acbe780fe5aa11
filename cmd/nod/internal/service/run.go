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

// command is one that the system's own tools understand.
type command struct {
	words []string
	// lax goes on where it fails, as it does where there is nothing to end.
	lax bool
	// again is how often it is tried once more, as what it needs may still be
	// ending.
	again int
}

func (c command) String() string { return strings.Join(c.words, " ") }

// patience bounds each of the system's commands: starting waits for nod to be
// started, and stopping for it to have stopped.
const patience = time.Minute

// pause is between two tries.
const pause = 500 * time.Millisecond

// output runs c and returns all that it said.
func (c command) output(ctx context.Context) (said string, err error) {
	for try := 0; ; try++ {
		said, err = c.once(ctx)
		if err == nil || try >= c.again || errors.Is(err, exec.ErrNotFound) {
			return said, err
		}
		select {
		case <-ctx.Done():
			return said, err
		case <-time.After(pause):
		}
	}
}

func (c command) once(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.words[0], c.words[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.Join(strings.Fields(out.String()), " "), err
}

// says runs c and reports whether it said so. An error means that the system
// cannot be asked.
func (c command) says(ctx context.Context, text string) (bool, error) {
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

// unreachable recognises systemd's word for a session without a manager.
func unreachable(out string) bool {
	return strings.Contains(out, "Failed to connect") || strings.Contains(out, "not been booted with systemd")
}

// runAll runs commands in order. The error of one that fails is an *Unreached
// with all that did not succeed.
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
