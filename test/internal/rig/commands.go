package rig

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
)

// Ran is the exit code and the output of a command.
type Ran struct {
	Code        int
	Stdout, Err string
}

// Command returns a nod command with the Env's data directory, without starting it.
func (e *Env) Command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(e.Ctx, Binary, args...)
	cmd.Env = append(os.Environ(), "NOD_DATA="+e.Dir, "NOD_URL=", "NOD_CREDS=", "TZ=UTC", "COLUMNS=")
	return cmd
}

// Nod runs a nod command with the Env's data directory, as the user who runs the tests.
func (e *Env) Nod(args ...string) Ran {
	e.T.Helper()
	var out, errs bytes.Buffer
	cmd := e.Command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		e.NoError(err)
	}
	return Ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// Exits checks the exit code, and that stdout and stderr contain the given texts. If the exit code is 1,
// stderr must be one line.
func (e *Env) Exits(r Ran, code int, stdout, stderr string) {
	e.T.Helper()
	e.Equal(code, r.Code, "%+v", r)
	e.Contains(r.Stdout, stdout)
	e.Contains(r.Err, stderr)
	if code == 1 {
		e.Equal(1, strings.Count(r.Err, "\n"), r.Err)
		e.True(strings.HasPrefix(r.Err, "nod: "), r.Err)
	}
}
