// Package exec runs a command with only the permissions of a session. The Linux kernel enforces them.
//
// The process restricts itself and then becomes the command (execve). No other process is restricted.
// The command keeps the standard streams, the signals and its own exit code. The command and its
// children cannot escape the restrictions: sudo does not work, root keeps few capabilities, 32-bit
// programs do not run, the command inherits no other open file, and no call can put text into a
// terminal's input.
//
// The command may also read the paths of readable.System, and read and write SystemDevices. Linux
// cannot yet prevent two kinds of access. The command can read the size and dates of any file whose
// path it knows, and can change the mode and dates of the files of its user.
package exec

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/nodbus/nod/connectors/agents"
	"github.com/nodbus/nod/schemas"
)

// SystemDevices returns the devices that every command may read and write.
func SystemDevices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"}
}

// Command is a command to run, with its permissions.
type Command struct {
	Args  []string // the program, as a path or a name in this process's PATH, and its arguments
	Env   []string // the whole environment; nil means an empty one
	Dir   string   // the working directory; "" means this process's own
	Scope schemas.SessionPermissions
	// RequireEnforcement makes Run refuse the command if the kernel cannot enforce Scope completely. If
	// RequireEnforcement is false, Run writes a warning to Stderr and then runs the command.
	RequireEnforcement bool
	Stderr             io.Writer
}

// Run replaces this process by the command. It returns only if that fails, with an *agents.ExitError.
// The caller must then report the error and exit, because Run may have restricted this process already.
func Run(c Command) error {
	if len(c.Args) == 0 {
		return refused("there is no command to run")
	}
	env := c.Env
	if c.Dir != "" {
		if err := os.Chdir(c.Dir); err != nil {
			return refused("change to the working directory: %w", err)
		}
		env = append(slices.Clip(env), "PWD="+c.Dir) // if PWD is set twice, the last value counts
	}
	program, err := osexec.LookPath(c.Args[0])
	if err != nil {
		return notRun(err)
	}
	if open := unenforced(c.Scope); len(open) > 0 {
		missing := "this system cannot keep the command from " + strings.Join(open, " and from ")
		if c.RequireEnforcement {
			return refused("%s, and enforcement is required: run it on a kernel that can, or do not require it", missing)
		}
		fmt.Fprintf(c.Stderr, "nod: warning: %s\n", missing)
	}
	runtime.LockOSThread() // never unlocked, because this thread becomes the command
	if err := confine(c.Scope, c.Stderr); err != nil {
		return refused("restrict the command to its permissions: %w", err)
	}
	if err := replaceProcess(program, c.Args, env); err != nil {
		return notRun(fmt.Errorf("run %s: %w", program, err))
	}
	return nil
}

func refused(format string, args ...any) error {
	return &agents.ExitError{Code: agents.CodeRefused, Err: fmt.Errorf(format, args...)}
}

func notRun(err error) error {
	switch {
	case errors.Is(err, osexec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return &agents.ExitError{Code: agents.CodeNotFound, Err: err}
	case errors.Is(err, syscall.EACCES):
		err = fmt.Errorf("%w: it is not executable, or lies outside the paths that it may read (--permission @read:<its directory>)", err)
	}
	return &agents.ExitError{Code: agents.CodeCannot, Err: err}
}
