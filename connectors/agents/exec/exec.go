// Package exec runs a command inside exactly what a session's permissions say,
// held to it by the kernel.
//
// The process restricts itself and then becomes the command, so that nothing
// else ever runs restricted, and standard streams, signals and the exit code
// are the command's own. It cannot get out again, nor can what it starts: sudo
// does not work, root is root over the files in reach alone, other open files
// are closed, it types into no terminal, and 32-bit programs do not run.
//
// What the command may do besides its permissions is to run the programs of the
// system and read what those need: see SystemPaths. It may see names, sizes and
// dates everywhere and change the mode and dates of what is its user's: Linux
// does not restrict that yet.
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

	"github.com/nodbus/nod/schemas"
)

// SystemPaths are readable to every command, where they are there: programs and
// libraries, and of /etc and the kernel's own what programs look at when they
// start, look up names and check certificates. None holds keys or a user's own files.
func SystemPaths() []string {
	return []string{
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/nix/store", "/gnu/store",
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld.so.preload", "/etc/ld-musl-x86_64.path", "/etc/ld-musl-aarch64.path",
		"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/host.conf", "/etc/resolv.conf", "/etc/gai.conf",
		"/etc/services", "/etc/protocols", "/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/ca-trust",
		"/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf", "/etc/crypto-policies",
		"/etc/localtime", "/etc/timezone", "/etc/locale.alias", "/etc/locale.conf", "/etc/os-release", "/etc/mime.types", "/etc/magic",
		"/etc/bash.bashrc", "/etc/profile", "/etc/profile.d", "/etc/inputrc", "/etc/terminfo", "/etc/fonts", "/etc/gitconfig",
		"/proc", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
		"/dev/random", "/dev/urandom",
	}
}

// SystemDevices may be read and written by every command.
func SystemDevices() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"}
}

// Command is what to run, and inside what.
type Command struct {
	Args  []string // the program and its arguments
	Env   []string
	Dir   string // where to start; "" is where this process stands
	Scope schemas.SessionPermissions
	// RequireEnforcement refuses to run what the kernel cannot hold to all of
	// Scope. Otherwise that is said in a line on Stderr.
	RequireEnforcement bool
	Stderr             io.Writer
}

// The exit codes of a command that did not run, as shells have them.
const (
	CodeRefused  = 125 // nod did not run it
	CodeCannot   = 126 // it is there and cannot be run
	CodeNotFound = 127
)

// Error says why a command did not run.
type Error struct {
	Code int // its exit code
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Run makes this process the command. It returns only if that fails, always
// with an *Error, and then the process may be restricted already and is good
// for nothing but to say so.
func Run(c Command) error {
	if len(c.Args) == 0 {
		return refused("there is no command to run")
	}
	env := c.Env
	if c.Dir != "" {
		if err := os.Chdir(c.Dir); err != nil {
			return refused("go to the directory to run in: %w", err)
		}
		env = append(slices.Clip(env), "PWD="+c.Dir) // the last one counts
	}
	program, err := osexec.LookPath(c.Args[0])
	if err != nil {
		return notRun(err)
	}
	if open := unenforced(c.Scope); len(open) > 0 {
		what := "this system does not keep the command from " + strings.Join(open, " and from ")
		if c.RequireEnforcement {
			return refused("%s, and enforcement is required: run it on a kernel that can, or without that", what)
		}
		fmt.Fprintf(c.Stderr, "nod: warning: %s\n", what)
	}
	runtime.LockOSThread() // for good: this thread becomes the command
	if err := confine(c.Scope, c.Stderr); err != nil {
		return refused("hold the command to its permissions: %w", err)
	}
	if err := become(program, c.Args, env); err != nil {
		return notRun(fmt.Errorf("run %s: %w", program, err))
	}
	return nil
}

func refused(format string, args ...any) error {
	return &Error{CodeRefused, fmt.Errorf(format, args...)}
}

func notRun(err error) error {
	switch {
	case errors.Is(err, osexec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return &Error{CodeNotFound, err}
	case errors.Is(err, syscall.EACCES):
		err = fmt.Errorf("%w: it is not executable, or lies outside of what it may read (--permission @read:<its directory>)", err)
	}
	return &Error{CodeCannot, err}
}
